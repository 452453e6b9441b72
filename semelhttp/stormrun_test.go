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

// stormRun is one run of a handler and its answer.
type stormRun struct {
	n            int
	key, payload string
	fence        uint64
	behaviour    string
	effects      int
	status       int
	body         string
	isKept       bool // the answer is kept
	incomplete   bool // the client must see that the answer is not whole
	trailer      string
}

// recordRun records a run and chooses its behaviour.
func (s *storm) recordRun(x *semel.Execution, payload string) *stormRun {
	fate, size := "good", 100
	if !s.faultsOff.Load() && !s.oneIn(3) {
		fate = stormBehaviours[s.randN(len(stormBehaviours))]
	}
	switch s.randN(8) {
	case 0:
		size = 30 << 10 // above MaxResponse: streamed
	case 1:
		size = 14 << 10 // above MaxOutcome: not kept
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	run := &stormRun{n: len(s.runs) + 1, key: x.Key(), payload: payload, fence: x.Fence(), behaviour: fate, status: 201, isKept: true}
	run.body = fmt.Sprintf("run %d of %s for %s%s.", run.n, run.key, payload, strings.Repeat(".", size))
	s.runs = append(s.runs, run)
	return run
}

// recordEffect counts an effect of the run.
func (s *storm) recordEffect(run *stormRun) {
	s.mu.Lock()
	defer s.mu.Unlock()
	run.effects++
}

var stormBehaviours = []string{
	"not found", "unavailable", "fails before", "unauthorised", "no effect", "a final failure", "flushes", "panics before",
	"panics after", "aborts", "aborts a stream", "too short", "too long", "hijacks", "upgrades", "leaves a goroutine", "slow", "slow", "hangs",
	"hangs and fails", "trailers", "trailers of a stream", "hints", "streams a failure",
}

// handle is the protected handler of each form except /accept.
func (s *storm) handle(w http.ResponseWriter, r *http.Request) {
	x, ok := semel.FromContext(r.Context())
	if !ok {
		s.fail("a handler ran unprotected")
		return
	}
	payload, err := payloadOf(r)
	if err != nil {
		s.fail("%s: the handler got %v", x.Key(), err)
	}
	run := s.recordRun(x, payload)
	h := w.Header()
	h.Set("Location", fmt.Sprint("/runs/", run.n))
	h.Set("Etag", fmt.Sprintf(`"%d"`, run.n))
	h.Set("Content-Type", fmt.Sprintf("text/plain; run=%d", run.n))
	h.Set("Set-Cookie", "mine=alone")
	s.respond(run, w, r)
}

// respond answers according to the run's behaviour.
func (s *storm) respond(run *stormRun, w http.ResponseWriter, r *http.Request) {
	h, head := w.Header(), r.Method == http.MethodHead
	half := run.body[:len(run.body)/2]
	answer := func(status int, keeps bool) {
		run.status, run.isKept = status, keeps
		w.WriteHeader(status)
	}
	switch run.behaviour {
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
		run.incomplete = true
		panic(http.ErrAbortHandler)
	case "hangs and fails":
		s.hang(r.Context(), r.URL.Path)
		answer(503, false)
	}
	if run.status != 201 {
		_, _ = io.WriteString(w, run.body)
		return
	}
	<-time.After(time.Duration(s.randN(8)) * time.Millisecond)
	s.recordEffect(run)
	switch run.behaviour {
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
		if run.behaviour != "flushes" {
			h.Set("Trailer", "X-Sum")
		}
		w.WriteHeader(201)
		for _, part := range []string{half, run.body[len(half):]} {
			_, _ = io.WriteString(w, part)
			_ = http.NewResponseController(w).Flush()
		}
		if run.behaviour != "flushes" {
			run.trailer = fmt.Sprint("sum ", run.n)
			h.Set("X-Sum", run.trailer)
		}
		return
	case "panics after", "aborts", "aborts a stream":
		run.incomplete = !head
		w.WriteHeader(201)
		_, _ = io.WriteString(w, half)
		if run.behaviour == "aborts a stream" {
			_ = http.NewResponseController(w).Flush()
		}
		if run.behaviour == "panics after" {
			panic(run.behaviour)
		}
		panic(http.ErrAbortHandler)
	case "too short":
		run.incomplete = !head
		h.Set("Content-Length", fmt.Sprint(len(run.body)))
		answer(201, true)
		_, _ = io.WriteString(w, half)
		return
	case "too long":
		run.incomplete = !head
		h.Set("Content-Length", fmt.Sprint(len(half)+1))
		w.WriteHeader(201)
		_, _ = io.WriteString(w, half)
		if _, err := io.WriteString(w, half); !errors.Is(err, http.ErrContentLength) && !head {
			s.fail("a write beyond the length: %v", err)
		}
		return
	case "hijacks":
		if _, _, err := http.NewResponseController(w).Hijack(); err == nil {
			s.fail("a handler could hijack")
		}
	case "upgrades":
		run.isKept, run.incomplete = false, true
		w.WriteHeader(http.StatusSwitchingProtocols)
	case "leaves a goroutine":
		s.leaveGoroutine(w, r)
	case "slow": // longer than a lease, and ignores its context
		<-time.After(2 * stormLease)
	case "hangs":
		s.hang(r.Context(), r.URL.Path)
	case "trailers":
		h.Set("Trailer", "X-Sum")
	case "hints":
		if r.ProtoMajor > 1 {
			break // after the client has left, an HTTP/2 server may still read the header, so it must not change
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
	if run.behaviour == "trailers" {
		run.trailer = fmt.Sprint("sum ", run.n)
		h.Set("X-Sum", run.trailer)
	}
}

// hang waits until the client leaves or the lease is lost, at most four leases.
func (s *storm) hang(ctx context.Context, path string) {
	select {
	case <-ctx.Done():
		detached := slices.ContainsFunc(stormForms, func(f stormForm) bool { return f.path == path && f.detach })
		if cause := context.Cause(ctx); detached && !errors.Is(cause, semel.ErrLeaseLost) {
			s.fail("a detached handler's context ended with %v", cause)
		}
	case <-time.After(4 * stormLease):
	}
}

// leaveGoroutine starts a goroutine that uses the request until after its end.
func (s *storm) leaveGoroutine(w http.ResponseWriter, r *http.Request) {
	body, until := r.Body, time.After(time.Duration(s.randN(60))*time.Millisecond)
	s.background.Go(func() {
		for {
			select {
			case <-until:
				return
			case <-time.After(time.Millisecond):
			}
			semelhttp.Final(r) // changes nothing for a 201
			_, err := body.Read(make([]byte, 16))
			if errors.Is(err, http.ErrBodyReadAfterClose) { // called after the handler has returned; earlier, NoEffect would count
				semelhttp.NoEffect(r)
				_, _ = io.WriteString(w, "")
			}
		}
	})
}
