package semelhttp

import (
	"fmt"
	"net/http"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// mark is what a handler says of its own answer.
type mark uint8

const (
	unmarked mark = iota
	markNoEffect
	markFinal
)

// NoEffect says of the answer to r, whatever its status, that nothing was
// changed: it is sent, but not kept, and the same request runs again under
// every policy. The last of NoEffect and Final counts; call them before the
// answer is flushed. Without effect if r is not a protected request's.
func NoEffect(r *http.Request) { setMark(r, markNoEffect) }

// Final says of the answer to r, whatever its status, that it is a result:
// it is kept, and duplicates get it. See NoEffect for when to call it.
func Final(r *http.Request) { setMark(r, markFinal) }

func setMark(r *http.Request, m mark) {
	if l, ok := r.Context().Value(loanKey{}).(*loan); ok {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.c != nil && l.c.mode != refused {
			l.c.mark = m
		}
	}
}

// keepDefault is Options.Keep's default: what is the answer to the request,
// and not to the moment at which, or the person by whom, it was made.
func keepDefault(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return status >= 200 && status < 500
}

// verdict is what an answer says of the operation.
type verdict uint8

const (
	doubt    verdict = iota // nobody knows
	kept                    // it is the result
	noEffect                // nothing happened
)

// verdict judges the answer.
func (c *capture) verdict() verdict {
	switch {
	case c.mark == markNoEffect:
		return noEffect
	case c.mark == markFinal || c.cfg.Keep(c.status):
		return kept
	case c.status >= 400 && c.status < 500:
		return noEffect
	}
	return doubt
}

// answered is the error of a run whose answer is not kept.
type answered int

func (a answered) Error() string { return fmt.Sprintf("the handler answered %d", int(a)) }

// result is what the Guard is told of a handler that has returned.
func (c *capture) result(streamed bool) (store.Outcome, error) {
	if c.mode == refused {
		return store.Outcome{}, c.err
	}
	switch c.verdict() {
	case kept:
		return c.outcome(streamed), nil
	case noEffect:
		return store.Outcome{}, semel.NoEffect(answered(c.status))
	}
	return store.Outcome{}, answered(c.status)
}

// outcome is what is kept. A body that is shorter than was declared is no
// answer, so that duplicates must not take it for one. The loan's room is for
// one outcome only, and of a streamed answer two may be told: a store that
// could not be reached may still read the first.
func (c *capture) outcome(streamed bool) store.Outcome {
	short := c.declared > int64(len(c.body)) && bodyAllowed(c.status) && c.r.Method != http.MethodHead
	o := store.Outcome{Code: c.status, Gone: streamed || short || c.cfg.NoStore}
	room := c.loan.lines[:0]
	if streamed {
		room = nil
	}
	o.Header = c.cfg.kept(&c.header, o.Gone, room)
	if !o.Gone {
		o.Body = c.body
	}
	return o
}
