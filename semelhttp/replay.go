package semelhttp

import (
	"errors"
	"net/http"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// answerDuplicate answers a request for which the handler did not run.
func (c *config) answerDuplicate(w http.ResponseWriter, r *http.Request, o store.Outcome, err error) {
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

// replay sends a kept outcome. For a tombstone it sends the first answer's status
// and the kept headers that do not describe a body, such as Location.
func (c *config) replay(w http.ResponseWriter, o *store.Outcome) {
	h := w.Header()
	c.setReplayHeaders(h, o)
	status := o.Code
	if status < 200 || status > 999 { // the outcome does not come from an HTTP handler, but from a reconciler
		status = http.StatusOK
		if o.Codec == "json" && len(h["Content-Type"]) == 0 && !o.Gone {
			h["Content-Type"] = []string{"application/json"}
		}
	}
	if o.Gone {
		h[outcomeHeader] = []string{outcomeNotKept}
		h["Content-Type"] = nil // without a body, the server must not guess one
	}
	w.WriteHeader(status)
	if !o.Gone && len(o.Body) > 0 && bodyAllowed(status) {
		_, _ = w.Write(o.Body) // a client that has left will ask again
	}
}
