//go:build unix

package chaos

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
)

// newBank is the ledger as a service behind semel proxy: POST /pay has the
// effect, and POST /reconcile answers --reconcile-url. Without protection its
// requests come from clients.
func newBank(t *testing.T, l *ledger, protected bool) *httptest.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /pay", func(w http.ResponseWriter, r *http.Request) {
		if body, err := io.ReadAll(r.Body); err != nil || string(body) != payment {
			panic(http.ErrAbortHandler) // cut short on the way
		}
		fence, ferr := strconv.ParseUint(r.Header.Get("Semel-Fence"), 10, 64)
		attempt, aerr := strconv.Atoi(r.Header.Get("Semel-Attempt"))
		if protected && (ferr != nil || aerr != nil) {
			t.Errorf("Semel-Fence %v, Semel-Attempt %v", ferr, aerr)
		}
		receipt, ok := l.pay(0, r.Header.Get("Idempotency-Key"), attempt, fence)
		if !ok {
			w.WriteHeader(http.StatusPreconditionFailed)
			return
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, receipt)
	})
	mux.HandleFunc("POST /reconcile", func(w http.ResponseWriter, r *http.Request) {
		var q struct {
			Key   string
			Fence uint64
		}
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
			t.Errorf("reconcile: %v", err)
		}
		a := map[string]any{"happened": false, "final": true}
		if receipt, happened := l.ask(q.Key, q.Fence); happened {
			a = map[string]any{"happened": true, "response": map[string]any{"status": http.StatusCreated, "body": receipt}}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(a)
	})
	s := httptest.NewServer(mux)
	s.Config.SetKeepAlivesEnabled(false) // each request meets a fault of its own on its way here
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

const payment = `{"amount":1}`
