package semelhttp

import (
	"errors"
	"net/http"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// duplicate answers a request for which the handler did not run.
func (c *config) duplicate(w http.ResponseWriter, r *http.Request, o store.Outcome, err error) {
	_, failed := errors.AsType[*semel.Failure](err)
	gone := errors.Is(err, semel.ErrNotKept)
	if c.Authorize != nil && (err == nil || failed || gone) {
		if err := c.Authorize(r); err != nil {
			c.refuse(w, r, problem(CodeReplayForbidden, err))
			return
		}
	}
	switch {
	case failed:
		w.Header()[c.ReplayedHeader] = []string{"true"}
		fallthrough
	case err != nil && !gone:
		c.refuse(w, r, c.problemOf(err))
	default:
		o.Gone = o.Gone || gone
		c.replay(w, &o)
	}
}

// replay sends a kept outcome. A tombstone is answered with the first answer's
// status, and with those of its headers that say where the result is.
func (c *config) replay(w http.ResponseWriter, o *store.Outcome) {
	h := w.Header()
	c.replayed(h, o)
	status := o.Code
	if status < 200 || status > 999 { // an outcome that no HTTP handler made, such as a reconciler's
		status = http.StatusOK
		if o.Codec == "json" && len(h["Content-Type"]) == 0 && !o.Gone {
			h["Content-Type"] = []string{"application/json"}
		}
	}
	if o.Gone {
		h[outcomeHeader] = []string{outcomeNotKept}
		h["Content-Type"] = nil // there is nothing to guess it from
	}
	w.WriteHeader(status)
	if !o.Gone && len(o.Body) > 0 && bodyAllowed(status) {
		_, _ = w.Write(o.Body) // a client that has gone will ask again
	}
}
