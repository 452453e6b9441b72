package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/cmd/semel/demo/internal/proc"
)

func do(t *testing.T, h http.Handler, url, body string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), "POST", url, strings.NewReader(body))
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

const order1 = `{"order":"order-1","amount":4200}`

func payment(t *testing.T, h http.Handler, fence string) *httptest.ResponseRecorder {
	t.Helper()
	return do(t, h, "/payments", order1, TenantHeader, ada.Tenant, KeyHeader, ada.Key, FenceHeader, fence)
}

func question1(t *testing.T, h http.Handler, fence int) string {
	t.Helper()
	w := do(t, h, "/reconcile", fmt.Sprintf(`{"operation":"http","tenant":"ada","key":"key-1","request_digest":"00","fence":%d,"attempts":1,"first_seen":"2026-01-01T00:00:00Z"}`, fence))
	if w.Code != 200 {
		t.Fatalf("reconcile: %d %s", w.Code, w.Body)
	}
	return strings.TrimSpace(w.Body.String())
}

func newHandler(t *testing.T) *Handler {
	return &Handler{Book: openBook(t, path(t)), Pause: func(time.Duration) {}}
}

func TestServer_Payment_AnsweredWithReceipt(t *testing.T) {
	w := payment(t, newHandler(t), "5")
	if w.Code != 201 || w.Body.String() != `{"receipt":"ch-000001","order":"order-1","amount":4200}`+"\n" || w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("got %d %s %v", w.Code, w.Body, w.Header())
	}
}

func TestReconcile_AnswerLost_ReturnsIt(t *testing.T) {
	h := newHandler(t)
	w := payment(t, h, "5")
	payment(t, h, "6") // a second charge does not change what the first was answered
	var v struct {
		Happened bool
		Response struct {
			Status  int
			Headers map[string]string
			Body    string
		}
	}
	if err := json.Unmarshal([]byte(question1(t, h, 7)), &v); err != nil {
		t.Fatal(err)
	}
	if !v.Happened || v.Response.Status != w.Code || v.Response.Body != w.Body.String() || v.Response.Headers["Content-Type"] != w.Header().Get("Content-Type") {
		t.Errorf("got %+v, the payment had %d %s", v, w.Code, w.Body)
	}
}

func TestReconcile_SaidNo_RequestIsRefused(t *testing.T) {
	h := newHandler(t)
	if got := question1(t, h, 7); got != `{"happened":false,"final":true}` {
		t.Fatalf("got %s", got)
	}
	if w := payment(t, h, "7"); w.Code != http.StatusPreconditionFailed {
		t.Errorf("a late request got %d %s", w.Code, w.Body)
	}
	if w := payment(t, h, "8"); w.Code != http.StatusCreated {
		t.Errorf("the next run got %d %s", w.Code, w.Body)
	}
}

func TestReconcile_RequestRuns_DoesNotKnow(t *testing.T) {
	h := newHandler(t)
	var answers []string
	h.Pause = func(time.Duration) { answers = append(answers, question1(t, h, 9)) }
	if w := payment(t, h, "5"); w.Code != 201 {
		t.Fatalf("got %d", w.Code)
	}
	if len(answers) != 2 || answers[0] != `{"happened":null}` || !strings.HasPrefix(answers[1], `{"happened":true,`) {
		t.Errorf("before and after the charge: %q", answers)
	}
}

func TestServer_Work_HalfBeforeAndHalfAfterCharge(t *testing.T) {
	h := newHandler(t)
	h.Work = 8 * time.Millisecond
	type look struct {
		d       time.Duration
		charged int
	}
	var looks []look
	h.Pause = func(d time.Duration) { looks = append(looks, look{d, h.Book.s.Charged}) }
	payment(t, h, "5")
	do(t, h, "/payments", order1, KeyHeader, "k", WorkHeader, "30ms")
	want := fmt.Sprint([]look{{4e6, 0}, {4e6, 1}, {15e6, 1}, {15e6, 2}})
	if got := fmt.Sprint(looks); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestServer_InvalidRequest_Refused(t *testing.T) {
	h := newHandler(t)
	for _, c := range []struct {
		url, body, fence string
	}{
		{"/payments", "{", ""}, {"/payments", "{}", ""}, {"/payments", order1, "x"},
		{"/reconcile", "{", ""}, {"/reconcile", `{"key":"k"}`, ""}, {"/reconcile", `{"fence":3}`, ""},
	} {
		if w := do(t, h, c.url, c.body, FenceHeader, c.fence); w.Code != 400 {
			t.Errorf("%s %s with fence %q: %d", c.url, c.body, c.fence, w.Code)
		}
	}
	if w := do(t, h, "/else", ""); w.Code != 404 {
		t.Errorf("got %d", w.Code)
	}
	if h.Book.s.Runs != 0 || h.Book.s.Asked != 0 {
		t.Error("a refused request left a trace")
	}
}

func TestServer_CannotWrite_ReportsIt(t *testing.T) {
	h := newHandler(t)
	h.Book.j.Close()
	if w := payment(t, h, "5"); w.Code != 500 {
		t.Errorf("a payment got %d", w.Code)
	}
	if w := do(t, h, "/reconcile", `{"key":"k","fence":3}`); w.Code != 500 {
		t.Errorf("a question got %d", w.Code)
	}
}

func TestServer_AddressInUse_IsAnError(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p := path(t)
	if err := Serve(t.Context(), l.Addr().String(), p, 0); err == nil {
		t.Error("an address in use was taken")
	}
	if tail := NewTail(p); tail.Update() != nil || tail.State.Boots != 0 {
		t.Error("the one that came too late wrote to the file")
	}
}

func TestServe_ContextEnds_Returns(t *testing.T) {
	address, err := proc.Address()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, address, path(t), 0) }()
	for deadline := time.Now().Add(time.Minute); ; {
		r, err := http.Get("http://" + address + "/healthz")
		if err == nil {
			r.Body.Close()
			if r.StatusCode != http.StatusNoContent {
				t.Errorf("got %s", r.Status)
			}
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
}
