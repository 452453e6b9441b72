package semelhttp_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/semelhttp"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/storetest"
)

// settle ends the storm and checks that no goroutine, file or running record is left.
func (s *storm) settle() {
	s.faultsOff.Store(true)
	s.start(false)
	s.mu.Lock()
	last := s.nodes[len(s.nodes)-1]
	others := slices.Clone(s.nodes[:len(s.nodes)-1])
	s.nodes = []*stormNode{last}
	s.mu.Unlock()
	for _, n := range others {
		n.fault.Deliver(s.t.Context())
		s.background.Go(n.shutdown)
	}
	s.waitFor("what was left behind", s.background.Wait)
	r, end := rand.New(rand.NewPCG(s.seed, 99)), time.Now().Add(waitLimit)
	for key := range stormKeys {
		s.askUntilFinal(r, key, end)
	}
	s.waitFor("work", s.background.Wait)
	last.srv.Close()
	s.waitFor("goroutines", func() {
		for len(s.semelGoroutines()) > 0 {
			<-time.After(5 * time.Millisecond)
		}
	})
	if files, err := os.ReadDir(s.dir); err != nil || len(files) > 0 {
		s.fail("%d files are left, %v", len(files), err)
	}
	for f, err := range s.store.List(s.t.Context(), store.Filter{}) {
		switch r := &f.Record; {
		case err != nil || r.State == store.Processing || r.State == store.Started:
			s.fail("%s is still %v, %v", r.Key.Value, r.State, err)
		case strings.HasPrefix(r.Key.Value, "torn"):
			s.fail("half a request has left a record: %s is %v", r.Key.Value, r.State)
		}
	}
	renewals := last.fault.Calls(storetest.OpRenew)
	<-time.After(stormLease)
	if n := last.fault.Calls(storetest.OpRenew) - renewals; n > 0 {
		s.fail("%d renewals when nothing runs any more", n)
	}
}

// judge compares the clients' answers with the handlers' runs.
func (s *storm) judge() {
	byKey := map[string][]*stormRun{}
	for _, run := range s.runs {
		byKey[run.key] = append(byKey[run.key], run)
	}
	answers := map[string][]*stormAnswer{}
	first := map[int]int{}
	for _, a := range s.answers {
		answers[a.key] = append(answers[a.key], a)
		if a.run > 0 && !a.replayed() {
			first[a.run]++
		}
		s.judgeAnswer(a)
	}
	for n, times := range first {
		if times > 1 {
			s.fail("run %d was answered %d times as if it were the first", n, times)
		}
	}
	for key, as := range answers {
		s.judgeKey(key, byKey[key], as)
	}
	s.report(first)
}

// judgeAnswer checks one answer.
func (s *storm) judgeAnswer(a *stormAnswer) {
	bad := func(format string, args ...any) {
		s.fail("%s %s got %d %q (%s) %.60q: %s", a.key, a.payload, a.StatusCode, a.Header.Get("Semel-Outcome"), a.code(), a.body, fmt.Sprintf(format, args...))
	}
	outcome := a.Header.Get("Semel-Outcome")
	if a.run == 0 {
		s.judgeRefusal(a, bad)
		return
	}
	run := s.runs[a.run-1]
	gone, head := outcome == "not-kept", a.method == "HEAD"
	switch {
	case run.key != a.key || run.payload != a.payload:
		bad("it is the answer to %s %s", run.key, run.payload)
	case a.StatusCode != run.status:
		bad("the status was %d", run.status)
	case a.replayed() && !run.isKept:
		bad("it was kept, although it was %q", run.behaviour)
	case gone != (a.replayed() && gone), outcome == "unknown" && (a.policy != semel.Park || run.isKept), outcome == "unprotected":
		bad("the mark is wrong")
	case a.replayed() && a.Header.Get("Set-Cookie") != "":
		bad("a replay has a cookie")
	case gone && a.body != "":
		bad("it was not kept, and has a body")
	case !gone && (a.Header.Get("Etag") != fmt.Sprintf(`"%d"`, run.n) || a.Header.Get("Content-Type") != fmt.Sprintf("text/plain; run=%d", run.n)):
		bad("the headers are %v", a.Header)
	case a.err == nil && !gone && run.incomplete:
		bad("it looks whole, but was %q", run.behaviour)
	case a.err == nil && !gone && !head && a.body != run.body:
		bad("the body was %.60q, of %d bytes", run.body, len(run.body))
	case a.err == nil && !a.replayed() && !head && a.Trailer.Get("X-Sum") != run.trailer:
		bad("the trailers are %v", a.Trailer)
	}
}

// stormRefusals are the expected refusals and their statuses.
var stormRefusals = map[string]int{
	semelhttp.CodeInProgress: 409, semelhttp.CodeOutcomeUnknown: 409, semelhttp.CodeLeaseLost: 409, semelhttp.CodePayloadMismatch: 422,
	semelhttp.CodeUpgradeUnsupported: 500, semelhttp.CodeAttemptFailed: 503, semelhttp.CodeStoreUnavailable: 503, semelhttp.CodeBodyUnreadable: 400,
}

func (s *storm) judgeRefusal(a *stormAnswer, bad func(string, ...any)) {
	code := a.code()
	switch {
	case a.err != nil || a.method == "HEAD":
	case a.body == "" && formOfName(a.key).path == "/accept": // its status says whether the token was sent
		if a.StatusCode != 202 && (a.StatusCode != 503 || a.replayed()) {
			bad("that is no answer to an acceptance")
		}
	case stormRefusals[code] != a.StatusCode:
		bad("that is no refusal")
	case code == semelhttp.CodeOutcomeUnknown && a.policy != semel.Park:
		bad("nothing is parked here")
	case (code == semelhttp.CodeInProgress || a.StatusCode == 503) && a.Header.Get("Retry-After") == "":
		bad("it does not say when to come again")
	}
}

func formOfName(key string) *stormForm {
	n := 0
	_, _ = fmt.Sscanf(key, "key-%d", &n)
	return formOf(n)
}

// judgeKey checks all runs and answers of a key.
func (s *storm) judgeKey(key string, runs []*stormRun, answers []*stormAnswer) {
	effects, kept, whole, gone := 0, map[int]bool{}, 0, 0
	for _, a := range answers {
		if a.run == 0 {
			continue
		}
		if run := s.runs[a.run-1]; a.replayed() || run.isKept && a.Header.Get("Semel-Outcome") == "" {
			kept[a.run] = true
		}
		if a.Header.Get("Semel-Outcome") == "not-kept" {
			gone++
		} else if a.replayed() {
			whole++
		}
	}
	if len(kept) > 1 || gone > 0 && whole > 0 {
		s.fail("%s has the answers of the runs %v, %d of them whole and %d not kept", key, kept, whole, gone)
	}
	bound, onePayload := "", true // the payload of the runs that had an effect, or may have had one
	for _, run := range runs {
		effects += run.effects
		if run.payload != runs[0].payload {
			onePayload = false
		}
		switch {
		case run.behaviour == "unauthorised" || run.behaviour == "no effect": // it leaves the key free
		case bound != "" && run.payload != bound:
			s.fail("%s ran with two payloads", key)
		default:
			bound = run.payload
		}
		for n := range kept {
			if run.fence > s.runs[n-1].fence {
				s.fail("%s: run %d (%s) began although run %d was already kept", key, run.n, run.behaviour, n)
			}
		}
	}
	if formOfName(key).policy == semel.Park && effects > 1 {
		s.fail("%s had %d effects", key, effects)
	}
	if bound == "" || !onePayload {
		return // judgeAnswer has compared each answer with its run
	}
	for _, a := range answers {
		code, same := a.code(), a.payload == runs[0].payload
		switch {
		case a.method == "HEAD" || a.err != nil:
		case code == semelhttp.CodePayloadMismatch && same:
			if !s.gaveUp(key, answers, otherPayload(a.payload)) { // else a request with the other payload had the claim for a moment
				s.fail("%s got a mismatch, although its payload was the same", key)
			}
		case !same && code == semelhttp.CodeInProgress && s.gaveUp(key, answers, a.payload): // one of them had the claim for a moment
		case !same && code != semelhttp.CodePayloadMismatch && code != semelhttp.CodeStoreUnavailable && code != semelhttp.CodeBodyUnreadable:
			s.fail("%s got %d %s, although its payload was another one", key, a.StatusCode, code)
		}
	}
}

// otherPayload returns the other one of the two payloads that clients send.
func otherPayload(payload string) string {
	if payload == "this" {
		return "that"
	}
	return "this"
}

// gaveUp reports whether a request with a payload ended without a run, so that it may have
// given its claim back.
func (s *storm) gaveUp(key string, answers []*stormAnswer, payload string) bool {
	return s.unanswered[stormRequest{strconv.Quote(key), payload}] || slices.ContainsFunc(answers, func(a *stormAnswer) bool {
		return a.payload == payload && a.run == 0 && (a.err != nil || a.code() == semelhttp.CodeStoreUnavailable)
	})
}

// report logs the counts and fails the test if anything was wrong.
func (s *storm) report(first map[int]int) {
	fates, replays, codes, marks := map[string]int{}, 0, map[string]int{}, map[string]int{}
	for _, run := range s.runs {
		fates[run.behaviour]++
	}
	for _, a := range s.answers {
		if a.replayed() {
			replays++
		}
		if c := a.code(); c != "" {
			codes[c]++
		}
		if m := a.Header.Get("Semel-Outcome"); m != "" {
			marks[m]++
		}
	}
	s.t.Logf("%d runs %v; %d first answers, %d replays, marks %v, refusals %v", len(s.runs), fates, len(first), replays, marks, codes)
	if len(s.failures) > 0 {
		s.t.Errorf("%d failures:\n%s", len(s.failures), strings.Join(s.failures[:min(len(s.failures), 12)], "\n"))
	}
	if replays < 10 || len(first) < 10 || codes[semelhttp.CodePayloadMismatch] == 0 {
		s.t.Error("too few answers: the storm shows nothing")
	}
}
