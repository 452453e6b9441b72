package semelhttp

import (
	"errors"
	"net/http"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/driver"
)

// The values of the header Semel-Outcome.
const (
	outcomeNotKept     = "not-kept"
	outcomeNotStored   = "not-stored"
	outcomeUnknown     = "unknown"
	outcomeUnprotected = "unprotected"
)

// stream ends the buffering: it stores "done, body not kept" and then sends the
// buffered part. This is the last moment at which a handler that has lost its
// lease can be kept from answering. The handler has written its status.
//
// If the outcome cannot be stored yet, the answer stays buffered (mustBuffer). This
// is so in a transaction, whose commit comes later, and under
// semel.Options.Rerun.
func (a *response) stream() error {
	marker, effect := "", a.verdict().Effect
	switch {
	case a.unprotected():
		marker = outcomeUnprotected
	case effect != Kept:
		if a.execution.Policy() == semel.Park && effect == Doubt {
			marker = outcomeUnknown
		}
	case driver.Completed(a.execution): // by the handler itself
	default:
		err := driver.Complete(a.request.Context(), a.execution, a.outcome(true))
		switch {
		case errors.Is(err, errors.ErrUnsupported):
			a.mustBuffer = true
			return nil
		case errors.Is(err, semel.ErrLeaseLost):
			a.refuse(err)
			return err
		case err != nil:
			marker = outcomeNotStored // the Guard tries once more when the handler returns
		}
	}
	a.mode = streaming
	return a.send(marker)
}

// unprotected reports whether this run has no record.
func (a *response) unprotected() bool { return a.execution.Fence() == 0 }

// sendInformational sends an answer such as 103 without the header Semel-Result, which
// belongs to the final answer.
func sendInformational(w http.ResponseWriter, status int) {
	h := w.Header()
	result, ok := h[resultHeader]
	delete(h, resultHeader)
	w.WriteHeader(status)
	if ok {
		h[resultHeader] = result
	}
}

// send writes the header, in its state when the handler wrote its status, and the
// buffered body. Headers that were set afterwards are put back for the trailers. The
// header Semel-Result is for Semel, and not for the client.
func (a *response) send(marker string) error {
	h := a.server.Header()
	var later http.Header
	if !sameHeader(h, a.header) {
		later = h.Clone()
		setHeader(h, a.header)
	}
	delete(h, resultHeader)
	if marker != "" {
		h.Set(outcomeHeader, marker)
	}
	a.server.WriteHeader(a.status)
	var err error
	if len(a.body) > 0 {
		_, err = a.server.Write(a.body)
	}
	if err == nil && a.heldFlush && hasUnannouncedTrailer(later) {
		// Without a flush the server sends a length instead of trailers.
		_ = http.NewResponseController(a.server).Flush()
	}
	for name, values := range later {
		if name != resultHeader {
			h[name] = values
		}
	}
	return err
}

// hasUnannouncedTrailer reports whether h has a trailer that the header Trailer
// does not name.
func hasUnannouncedTrailer(h http.Header) bool {
	for name := range h {
		if strings.HasPrefix(name, http.TrailerPrefix) {
			return true
		}
	}
	return false
}
