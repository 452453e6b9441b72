package problem_test

import (
	"encoding/json"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/problem"
	"github.com/semel-go/semel/semelhttp"
)

func TestWrite_ErrorNotShown(t *testing.T) {
	w := httptest.NewRecorder()
	problem.Write(w, semelhttp.Problem{Status: 503, Code: "c", Title: "T", Detail: "D", RetryAfter: 1100 * time.Millisecond, Err: errors.New("canary")})
	var got map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if w.Code != 503 || got["code"] != "c" || got["title"] != "T" || got["detail"] != "D" || got["status"] != 503.0 || got["type"] != "https://github.com/semel-go/semel/blob/main/docs/reference/errors.md#c" {
		t.Errorf("got %d, %v", w.Code, got)
	}
	h := w.Header()
	if h.Get("Content-Type") != "application/problem+json" || h.Get("Cache-Control") != "no-store" || h.Get("Retry-After") != "2" {
		t.Errorf("got %v", h)
	}
	if strings.Contains(w.Body.String(), "canary") {
		t.Error("the error was sent")
	}
}
