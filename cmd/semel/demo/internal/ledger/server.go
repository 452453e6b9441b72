package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// The headers of a payment.
const (
	KeyHeader    = "Idempotency-Key"
	TenantHeader = "X-Tenant"
	FenceHeader  = "Semel-Fence" // set by semel proxy
	WorkHeader   = "X-Demo-Work" // how long this one takes
)

// maxBody is far beyond any payment.
const maxBody = 64 << 10

// Payment is the body of a payment.
type Payment struct {
	Order  string `json:"order"`
	Amount int64  `json:"amount"` // in cents
}

// Handler is the HTTP server of a ledger.
type Handler struct {
	Book *Book
	// Work is how long a payment without WorkHeader takes: half of it before
	// the charge, half after.
	Work time.Duration
	// Pause does the work. Nil: time.Sleep.
	Pause func(time.Duration)
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method + " " + r.URL.Path {
	case "POST /payments":
		h.pay(w, r)
	case "POST /reconcile":
		h.reconcile(w, r)
	case "GET /healthz":
		w.WriteHeader(http.StatusNoContent)
	default:
		http.NotFound(w, r)
	}
}

// pay works, charges, works, and answers. It goes on when the client has gone,
// as most services do.
func (h *Handler) pay(w http.ResponseWriter, r *http.Request) {
	var p Payment
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&p); err != nil || p.Order == "" {
		http.Error(w, `send {"order":"…","amount":…}`, http.StatusBadRequest)
		return
	}
	fence, err := fenceOf(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	half, pause := h.work(r)/2, h.Pause
	if pause == nil {
		pause = time.Sleep
	}
	id := ID{r.Header.Get(TenantHeader), r.Header.Get(KeyHeader)}
	run, err := h.Book.Begin(id, fence)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	pause(half)
	charge, err := h.Book.Charge(run, id, fence, p.Order, p.Amount)
	if err == nil {
		pause(half)
	}
	switch err := errors.Join(err, h.Book.End(run)); {
	case errors.Is(err, ErrStale):
		http.Error(w, err.Error(), http.StatusPreconditionFailed)
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	default:
		receipt := charge.Receipt()
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Content-Length", strconv.Itoa(len(receipt)))
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(receipt) // the client has left; it will come again
	}
}

const contentType = "application/json"

func (h *Handler) work(r *http.Request) time.Duration {
	if d, err := time.ParseDuration(r.Header.Get(WorkHeader)); err == nil && d >= 0 && d <= time.Minute {
		return d
	}
	return h.Work
}

// fenceOf is 0 if there is none.
func fenceOf(r *http.Request) (uint64, error) {
	v := r.Header.Get(FenceHeader)
	if v == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(v, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: %q is not a number", FenceHeader, v)
	}
	return n, nil
}
