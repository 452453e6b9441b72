package semelhttp_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/semelhttp"
)

// acceptAll makes a handler of Accept whose function answers with fn.
func acceptAll(t *testing.T, fn http.HandlerFunc) http.Handler {
	t.Helper()
	h, err := semelhttp.Accept(newGuard(t, nil, nil), byAccount, func(w http.ResponseWriter, r *http.Request, _ semel.Ticket) { fn(w, r) }, payments(nil))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// Only the function of Accept says what its answer means, and an answer that an outer
// handler writes after a panic is not the function's.
func TestAccept_ResultHeaderOfOthers_DoesNotCount(t *testing.T) {
	for name, c := range map[string]struct {
		outer    string // Semel-Result that the outer handler has set
		fn       http.HandlerFunc
		status   int
		replayed bool // of the second answer
	}{
		"final":     {"final", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }, 503, false},
		"no effect": {"no-effect", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(202) }, 202, true},
		"silence":   {"no-effect", func(http.ResponseWriter, *http.Request) {}, 200, true},
		"panic":     {"", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set(resultHeader, "final"); panic("boom") }, 500, false},
	} {
		t.Run(name, func(t *testing.T) {
			accept := acceptAll(t, c.fn)
			site := &testSite{t: t}
			site.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set(resultHeader, c.outer)
				defer func() {
					if recover() != nil {
						w.WriteHeader(500)
					}
				}()
				accept.ServeHTTP(w, r)
			}), false)
			wantNoResult(t, site.post("k", "hello"))
			a := site.post("k", "hello")
			wantNoResult(t, a)
			if a.StatusCode != c.status || a.replayed() != c.replayed {
				t.Errorf("got %d, marked as a replay: %v; want %d, %v", a.StatusCode, a.replayed(), c.status, c.replayed)
			}
		})
	}
}

// The function learns that its server cannot flush, as from net/http.
func TestAccept_ServerCannotFlush_FunctionLearnsIt(t *testing.T) {
	var err error
	accept := acceptAll(t, func(w http.ResponseWriter, _ *http.Request) { err = http.NewResponseController(w).Flush() })
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/pay", http.NoBody)
	r.Header.Set("Idempotency-Key", "k")
	accept.ServeHTTP(struct{ http.ResponseWriter }{httptest.NewRecorder()}, r)
	if !errors.Is(err, http.ErrNotSupported) {
		t.Errorf("got %v, want ErrNotSupported", err)
	}
}
