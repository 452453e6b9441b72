package semelhttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/semelhttp"
)

// stormRun is one run of a handler, and what it answered.
type stormRun struct {
	n            int
	key, payload string
	fence        uint64
	fate         string
	effects      int
	status       int
	body         string
	keeps        bool // the answer is a result
	torn         bool // nobody may take the answer for a whole one
	trailer      string
}

// begin notes a run, and decides on its fate.
func (s *storm) begin(x *semel.Execution, payload string) *stormRun {
	fate, size := "good", 100
	if !s.calm.Load() && !s.oneIn(3) {
		fate = stormFates[s.upTo(len(stormFates))]
	}
	switch s.upTo(8) {
	case 0:
		size = 30 << 10 // is streamed
	case 1:
		size = 14 << 10 // is not kept
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	run := &stormRun{n: len(s.runs) + 1, key: x.Key(), payload: payload, fence: x.Fence(), fate: fate, status: 201, keeps: true}
	run.body = fmt.Sprintf("run %d of %s for %s%s.", run.n, run.key, payload, strings.Repeat(".", size))
	s.runs = append(s.runs, run)
	return run
}

// effect is what must not happen twice.
func (s *storm) effect(run *stormRun) {
	s.mu.Lock()
	defer s.mu.Unlock()
	run.effects++
}

var stormFates = []string{
	"not found", "unavailable", "fails before", "unauthorised", "no effect", "a final failure", "flushes", "panics before",
	"panics after", "aborts", "aborts a stream", "too short", "too long", "hijacks", "upgrades", "leaves a goroutine", "slow", "slow", "hangs",
	"hangs and fails", "trailers", "trailers of a stream", "hints", "streams a failure",
}

// handle is the protected handler of all forms but one.
func (s *storm) handle(w http.ResponseWriter, r *http.Request) {
	x, ok := semel.FromContext(r.Context())
	if !ok {
		s.bad("a handler ran unprotected")
		return
	}
	payload, err := payloadOf(r)
	if err != nil {
		s.bad("%s: the handler got %v", x.Key(), err)
	}
	run := s.begin(x, payload)
	h := w.Header()
	h.Set("Location", fmt.Sprint("/runs/", run.n))
	h.Set("Etag", fmt.Sprintf(`"%d"`, run.n))
	h.Set("Content-Type", fmt.Sprintf("text/plain; run=%d", run.n))
	h.Set("Set-Cookie", "mine=alone")
	s.live(run, w, r)
}

// live is what a handler does, by its fate.
func (s *storm) live(run *stormRun, w http.ResponseWriter, r *http.Request) {
	h, head := w.Header(), r.Method == http.MethodHead
	half := run.body[:len(run.body)/2]
	answer := func(status int, keeps bool) {
		run.status, run.keeps = status, keeps
		w.WriteHeader(status)
	}
	switch run.fate {
	case "fails before":
		answer(500, false)
	case "unauthorised":
		answer(401, false)
	case "no effect":
		semelhttp.NoEffect(r)
		answer(500, false)
	case "not found":
		answer(404, true)
	case "panics before":
		run.torn = true
		panic(http.ErrAbortHandler)
	case "hangs and fails":
		s.hang(r.Context(), r.URL.Path)
		answer(503, false)
	}
	if run.status != 201 {
		_, _ = io.WriteString(w, run.body)
		return
	}
	<-time.After(time.Duration(s.upTo(8)) * time.Millisecond)
	s.effect(run)
	switch run.fate {
	case "unavailable":
		answer(503, false)
	case "streams a failure":
		answer(503, false)
		_, _ = io.WriteString(w, half)
		_ = http.NewResponseController(w).Flush()
		_, _ = io.WriteString(w, run.body[len(half):])
		return
	case "a final failure":
		semelhttp.Final(r)
		answer(500, true)
	case "flushes", "trailers of a stream":
		if run.fate != "flushes" {
			h.Set("Trailer", "X-Sum")
		}
		w.WriteHeader(201)
		for _, part := range []string{half, run.body[len(half):]} {
			_, _ = io.WriteString(w, part)
			_ = http.NewResponseController(w).Flush()
		}
		if run.fate != "flushes" {
			run.trailer = fmt.Sprint("sum ", run.n)
			h.Set("X-Sum", run.trailer)
		}
		return
	case "panics after", "aborts", "aborts a stream":
		run.torn = !head
		w.WriteHeader(201)
		_, _ = io.WriteString(w, half)
		if run.fate == "aborts a stream" {
			_ = http.NewResponseController(w).Flush()
		}
		if run.fate == "panics after" {
			panic(run.fate)
		}
		panic(http.ErrAbortHandler)
	case "too short":
		run.torn = !head
		h.Set("Content-Length", fmt.Sprint(len(run.body)))
		answer(201, true)
		_, _ = io.WriteString(w, half)
		return
	case "too long":
		run.torn = !head
		h.Set("Content-Length", fmt.Sprint(len(half)+1))
		w.WriteHeader(201)
		_, _ = io.WriteString(w, half)
		if _, err := io.WriteString(w, half); !errors.Is(err, http.ErrContentLength) && !head {
			s.bad("a write beyond the length: %v", err)
		}
		return
	case "hijacks":
		if _, _, err := http.NewResponseController(w).Hijack(); err == nil {
			s.bad("a handler could hijack")
		}
	case "upgrades":
		run.keeps, run.torn = false, true
		w.WriteHeader(http.StatusSwitchingProtocols)
	case "leaves a goroutine":
		s.leave(w, r)
	case "slow": // longer than a lease that is not renewed, and deaf
		<-time.After(2 * stormLease)
	case "hangs":
		s.hang(r.Context(), r.URL.Path)
	case "trailers":
		h.Set("Trailer", "X-Sum")
	case "hints":
		if r.ProtoMajor > 1 {
			break // the server goes on reading the header when the client has left: it must not be changed any more
		}
		h.Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		h.Del("Link")
	}
	if run.status == 201 {
		w.WriteHeader(201)
	}
	for _, part := range []string{half, run.body[len(half):]} {
		_, _ = io.WriteString(w, part)
	}
	h.Set("Etag", "too late")
	if run.fate == "trailers" {
		run.trailer = fmt.Sprint("sum ", run.n)
		h.Set("X-Sum", run.trailer)
	}
}

// hang lasts until the client leaves or the lease is lost, or not quite so long.
func (s *storm) hang(ctx context.Context, path string) {
	select {
	case <-ctx.Done():
		detached := slices.ContainsFunc(stormForms, func(f stormForm) bool { return f.path == path && f.detach })
		if cause := context.Cause(ctx); detached && !errors.Is(cause, semel.ErrLeaseLost) {
			s.bad("a detached handler's context ended with %v", cause)
		}
	case <-time.After(4 * stormLease):
	}
}

// leave leaves a goroutine that does all that it can reach, until after the
// request's end.
func (s *storm) leave(w http.ResponseWriter, r *http.Request) {
	body, until := r.Body, time.After(time.Duration(s.upTo(60))*time.Millisecond)
	s.left.Go(func() {
		for {
			select {
			case <-until:
				return
			case <-time.After(time.Millisecond):
			}
			semelhttp.Final(r) // says nothing new of a 201
			_, err := body.Read(make([]byte, 16))
			if errors.Is(err, http.ErrBodyReadAfterClose) { // before, it would count
				semelhttp.NoEffect(r)
				_, _ = io.WriteString(w, "")
			}
		}
	})
}
