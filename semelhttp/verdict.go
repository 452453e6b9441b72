package semelhttp

import (
	"fmt"
	"net/http"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// outcomeMark is a handler's own statement about its answer.
type outcomeMark uint8

const (
	unmarked outcomeMark = iota
	markNoEffect
	markFinal
)

// NoEffect says that the answer to r changed nothing, whatever its status. The
// answer is sent but not kept, and the same request runs again under every
// policy. The last call of NoEffect and Final counts; call them before the answer
// is flushed. On a request that is not protected, NoEffect does nothing.
func NoEffect(r *http.Request) { setMark(r, markNoEffect) }

// Final says that the answer to r is the result, whatever its status: it is kept,
// and duplicates get it. NoEffect says when to call it.
func Final(r *http.Request) { setMark(r, markFinal) }

func setMark(r *http.Request, m outcomeMark) {
	w, ok := r.Context().Value(writerKey{}).(*handlerWriter)
	if !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.response != nil && w.response.mode != refused {
		w.response.mark = m
	}
}

// keepDefault is the default of Options.Keep. It keeps a status that answers the
// request itself, and not one that depends on the moment or on the caller.
func keepDefault(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return status >= 200 && status < 500
}

// verdict says what an answer tells about the operation.
type verdict uint8

const (
	inDoubt  verdict = iota // nobody knows whether it took effect
	keep                    // the answer is the result
	noEffect                // nothing happened
)

func (a *response) verdict() verdict {
	switch {
	case a.mark == markNoEffect:
		return noEffect
	case a.mark == markFinal || a.cfg.Keep(a.status):
		return keep
	case a.status >= 400 && a.status < 500:
		return noEffect
	}
	return inDoubt
}

// statusError is the error of a run whose answer is not kept.
type statusError int

func (s statusError) Error() string { return fmt.Sprintf("the handler answered %d", int(s)) }

// result is what the Guard gets from a handler that has returned.
func (a *response) result(streamed bool) (store.Outcome, error) {
	if a.mode == refused {
		return store.Outcome{}, a.err
	}
	switch a.verdict() {
	case keep:
		return a.outcome(streamed), nil
	case noEffect:
		return store.Outcome{}, semel.NoEffect(statusError(a.status))
	}
	return store.Outcome{}, statusError(a.status)
}

// outcome is the part of the answer that is kept. A body that is shorter than its
// declared length is not kept, because duplicates must not take it for the whole
// answer.
func (a *response) outcome(streamed bool) store.Outcome {
	short := a.declared > int64(len(a.body)) && bodyAllowed(a.status) && a.request.Method != http.MethodHead
	o := store.Outcome{Code: a.status, Gone: streamed || short || a.cfg.NoStore}
	o.Header = a.cfg.keptHeaders(a.header, o.Gone)
	if !o.Gone {
		o.Body = a.body
	}
	return o
}
