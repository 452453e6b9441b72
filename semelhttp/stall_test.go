package semelhttp_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/semelhttp"
)

// A server, or a gateway, stalls inside the body of a problem.
func TestTransport_ProblemBodyStalls_DoesNotWaitForIt(t *testing.T) {
	for name, c := range map[string]struct {
		after  string
		status int // of the answer that the caller gets
	}{
		"asks again later": {"0", 201},
		"asks for nothing": {"", 409},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			goOn, asked := make(chan struct{}), 0
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if asked++; asked > 1 {
					w.WriteHeader(201)
					return
				}
				w.Header().Set("Content-Type", "application/problem+json")
				if c.after != "" {
					w.Header().Set("Retry-After", c.after)
				}
				w.WriteHeader(409)
				_, _ = io.WriteString(w, `{"code":`)
				_ = http.NewResponseController(w).Flush()
				select {
				case <-goOn:
				case <-r.Context().Done():
				}
				_, _ = io.WriteString(w, `"taken"}`)
			}))
			defer s.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // a caller may have none
			defer cancel()
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, strings.NewReader("x"))
			if err != nil {
				t.Fatal(err)
			}
			transport, err := semelhttp.NewTransport(nil, &semelhttp.TransportOptions{MaxAttempts: 3, Backoff: time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			res, err := transport.RoundTrip(r)
			close(goOn)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			body, err := io.ReadAll(res.Body)
			if res.StatusCode != c.status || err != nil || c.status == 409 && string(body) != `{"code":"taken"}` {
				t.Errorf("got %d %q, %v", res.StatusCode, body, err)
			}
		})
	}
}
