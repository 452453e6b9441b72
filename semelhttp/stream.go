package semelhttp

import (
	"errors"
	"net/http"
	"slices"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/driver"
)

// What Semel-Outcome says.
const (
	outcomeNotKept     = "not-kept"
	outcomeNotStored   = "not-stored"
	outcomeUnknown     = "unknown"
	outcomeUnprotected = "unprotected"
)

// stream stops buffering: "done, body not kept" is stored first, and then what
// there is of the answer is sent. It is the last moment at which a handler
// that has lost its lease can be stopped from answering. The answer stays
// buffered (pinned) where it cannot be stored yet: in a transaction, whose
// commit is to come, and in a Guard that reruns. The header is written.
func (c *capture) stream() error {
	marker := ""
	switch {
	case c.unprotected():
		marker = outcomeUnprotected
	case c.verdict() != kept:
		if c.x.Policy() == semel.Park && c.verdict() == doubt {
			marker = outcomeUnknown
		}
	case driver.Completed(c.x): // by the handler itself
	default:
		err := driver.Complete(c.r.Context(), c.x, c.outcome(true))
		switch {
		case errors.Is(err, errors.ErrUnsupported):
			c.pinned = true
			return nil
		case errors.Is(err, semel.ErrLeaseLost):
			c.refuse(err)
			return err
		case err != nil:
			marker = outcomeNotStored // it is tried once more when the handler returns
		}
	}
	c.mode = streaming
	return c.send(marker)
}

// unprotected reports whether there is no record of this run.
func (c *capture) unprotected() bool { return c.x.Fence() == 0 }

// send writes the header, as it was when the handler wrote it, and what is
// buffered.
func (c *capture) send(marker string) error {
	h := c.w.Header()
	var later []headerLine
	if !c.header.is(h) { // what was set since is for the trailers
		var now snapshot
		now.take(h, nil)
		later = now.lines
		c.header.restore(h)
	}
	if marker != "" {
		h.Set(outcomeHeader, marker)
	}
	c.w.WriteHeader(c.status)
	var err error
	if len(c.body) > 0 {
		_, err = c.w.Write(c.body)
	}
	if err == nil && c.held && slices.ContainsFunc(later, headerLine.isTrailer) {
		_ = http.NewResponseController(c.w).Flush() // else the server gives it a length, and no trailers
	}
	for _, line := range later {
		h[line.name] = line.values
	}
	return err
}

// discard makes the server's header what it was before the handler.
func (c *capture) discard() {
	if h := c.w.Header(); !c.before.is(h) {
		c.before.restore(h)
	}
}
