package semelhttp

import (
	"fmt"
	"maps"
	"net/http"
	"slices"

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
// is flushed. On a request that is not protected, NoEffect does nothing. The header
// "Semel-Result: no-effect" of the answer says the same, unless NoEffect or Final was
// called. The client does not get that header.
func NoEffect(r *http.Request) { setMark(r, markNoEffect) }

// Final says that the answer to r is the result, whatever its status: it is kept,
// and duplicates get it. NoEffect says when to call it. The header
// "Semel-Result: final" says the same.
func Final(r *http.Request) { setMark(r, markFinal) }

// Marked reports whether NoEffect, Final or the header Semel-Result has said what the answer
// to r means. Broken makes an answer unmarked, except if a part was sent.
func Marked(r *http.Request) (marked bool) {
	changeResponse(r, func(res *response) { marked = res.ownMark() != unmarked })
	return marked
}

// Explain says in one sentence why the answer to r is no result. The record shows it as its
// last error, instead of the status and the reason of Judge. The client does not get it. If
// the answer is kept, or r is not protected, Explain does nothing.
func Explain(r *http.Request, reason string) {
	changeResponse(r, func(res *response) { res.explanation = reason })
}

func setMark(r *http.Request, m outcomeMark) {
	changeResponse(r, func(res *response) { res.mark = m })
}

// changeResponse calls change for the response to a request that is protected, and was not
// refused.
func changeResponse(r *http.Request, change func(*response)) {
	w, ok := r.Context().Value(writerKey{}).(*handlerWriter)
	if !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.response != nil && w.response.mode != refused {
		change(w.response)
	}
}

// Broken says that the answer to r broke off, as when an upstream dies inside its
// body, so that the call is in doubt. If nothing was sent to the client, what was
// written is dropped, and the handler can write another answer, such as 502. If a
// part was sent, or r is not protected, Broken reports false.
func Broken(r *http.Request) (dropped bool) {
	w, ok := r.Context().Value(writerKey{}).(*handlerWriter)
	if !ok {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.response != nil && w.response.breakOff()
}

// breakOff drops what was written, unless a part was sent.
func (a *response) breakOff() (dropped bool) {
	switch a.mode {
	case streaming:
		a.broken = true
		return false
	case buffering:
		a.discard()
		a.broken, a.mark = true, unmarked
		a.status, a.declared, a.written, a.accepted, a.body, a.header, a.heldFlush = 0, -1, 0, 0, nil, nil, false
	case refused: // the answer does not count anyway
	}
	return true
}

// ownMark is what the handler says about its answer: by its last call of NoEffect or Final,
// or else by the header Semel-Result of the answer.
func (a *response) ownMark() outcomeMark {
	if a.mark != unmarked {
		return a.mark
	}
	if a.status == 0 {
		return markOf(a.server.Header())
	}
	return markOf(a.header)
}

// markOf reads the header Semel-Result, as semel proxy does in the answer of its upstream.
// Other values say nothing.
func markOf(h http.Header) outcomeMark {
	switch h.Get(resultHeader) {
	case "no-effect":
		return markNoEffect
	case "final":
		return markFinal
	}
	return unmarked
}

// verdict says what the answer tells about the operation. A mark of the handler
// counts for more than the table, but not for an answer that broke off.
func (a *response) verdict() Verdict {
	short := a.returned && a.status != 0 && a.declared > a.accepted && bodyAllowed(a.status) && a.request.Method != http.MethodHead
	switch a.ownMark() {
	case markNoEffect:
		return Verdict{Effect: NothingDone, Reason: "the handler says that nothing was done"}
	case markFinal:
		return Verdict{Effect: Kept, Reason: "the handler says that this is the result", WithoutBody: a.mode == streaming || short || saysNotKept(a.header)}
	case unmarked:
	}
	_, sent := cutPrefix(a.request)
	return a.cfg.Judge(Answer{
		Status: a.status, Header: a.header, Path: a.request.URL.Path, SentPath: sent, Ended: a.status == 0 && a.request.Context().Err() != nil,
		Broken: a.broken, Streamed: a.mode == streaming, Short: short,
	})
}

// statusError is the error of a run whose answer is not kept.
type statusError struct {
	status int // 0: it wrote none
	reason string
	whole  bool // the reason is the whole text: see Explain
}

func (s statusError) Error() string {
	if s.whole {
		return s.reason
	}
	if s.status == 0 {
		return "the handler did not answer: " + s.reason
	}
	return fmt.Sprintf("the handler answered %d: %s", s.status, s.reason)
}

// result is what the Guard gets from a handler that has returned.
func (a *response) result() (store.Outcome, error) {
	if a.mode == refused {
		return store.Outcome{}, a.err
	}
	v := a.verdict()
	why := statusError{status: a.status, reason: v.Reason}
	if a.explanation != "" {
		why.reason, why.whole = a.explanation, true
	}
	switch v.Effect {
	case Kept:
		return a.outcome(v.WithoutBody), nil
	case NothingDone:
		return store.Outcome{}, semel.NoEffect(why)
	case Doubt:
	}
	return store.Outcome{}, why
}

// keepableHeader is the header of the kept answer. It differs from the handler's header:
//
//   - An encoding that an outer handler had announced before the run is left out. That
//     handler encodes each answer, and the kept body is not encoded.
//   - A type that net/http guesses is named, because nothing is guessed for a replay.
func (a *response) keepableHeader() http.Header {
	h := a.header
	const name = "Content-Encoding"
	if outer := a.outerHeader[name]; len(outer) > 0 && slices.Equal(outer, h[name]) {
		h = maps.Clone(h)
		delete(h, name)
	}
	if _, ok := h["Content-Type"]; !ok && len(a.body) > 0 && len(h[name]) == 0 {
		h = maps.Clone(h)
		h["Content-Type"] = []string{http.DetectContentType(a.body)}
	}
	return h
}

// outcome is the part of the answer that is kept.
func (a *response) outcome(withoutBody bool) store.Outcome {
	o := store.Outcome{Code: a.status, Gone: withoutBody || a.cfg.NoStore}
	if !a.cfg.NoStore {
		o.Header = a.cfg.keptHeaders(a.keepableHeader(), o.Gone)
	}
	if !o.Gone {
		o.Body = a.body
	}
	return o
}
