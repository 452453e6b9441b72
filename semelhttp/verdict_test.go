package semelhttp_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/semelhttp"
	"github.com/semel-go/semel/store"
)

// TestVerdict_StatusMarkPolicy_DecidesOutcome is the table of statuses, marks and policies.
func TestVerdict_StatusMarkPolicy_DecidesOutcome(t *testing.T) {
	type result struct {
		runs    int64
		status  int    // status of the duplicate
		body    string // its body, or its problem's code
		outcome string // Semel-Outcome of the first answer
	}
	kept := func(status int) result { return result{1, status, "answer", ""} }
	again := func(status int) result { return result{2, status, "answer", ""} }
	parked := result{1, 409, semelhttp.CodeOutcomeUnknown, "unknown"}
	for _, c := range []struct {
		status int
		mark   func(*http.Request)
		retry  result
		park   result
	}{
		{200, nil, kept(200), kept(200)},
		{201, nil, kept(201), kept(201)},
		{302, nil, kept(302), kept(302)},
		{303, nil, kept(303), kept(303)},
		{307, nil, again(307), again(307)},
		{308, nil, again(308), again(308)},
		{402, nil, again(402), again(402)},
		{428, nil, again(428), again(428)},
		{499, nil, again(499), parked},
		{400, nil, kept(400), kept(400)},
		{404, nil, kept(404), kept(404)},
		{409, nil, kept(409), kept(409)},
		{422, nil, kept(422), kept(422)},
		{401, nil, again(401), again(401)},
		{403, nil, again(403), again(403)},
		{408, nil, again(408), again(408)},
		{425, nil, again(425), again(425)},
		{429, nil, again(429), again(429)},
		{500, nil, again(500), parked},
		{503, nil, again(503), parked},
		{599, nil, again(599), parked},
		{600, nil, again(600), parked},
		{500, semelhttp.NoEffect, again(500), again(500)},
		{503, semelhttp.Final, kept(503), kept(503)},
		{200, semelhttp.NoEffect, again(200), again(200)},
		{401, semelhttp.Final, kept(401), kept(401)},
		{500, func(r *http.Request) { semelhttp.NoEffect(r); semelhttp.Final(r) }, kept(500), kept(500)},
		{500, func(r *http.Request) { semelhttp.Final(r); semelhttp.NoEffect(r) }, again(500), again(500)},
	} {
		for policy, want := range map[semel.Policy]result{semel.Retry: c.retry, semel.Park: c.park} {
			t.Run(fmt.Sprint(c.status, policy, c.mark != nil), func(t *testing.T) {
				site := newSite(t, setup{guard: semel.Options{OnDoubt: policy}}, func(w http.ResponseWriter, r *http.Request) {
					if c.mark != nil {
						c.mark(r)
					}
					w.WriteHeader(c.status)
					_, _ = io.WriteString(w, "answer")
				})
				first := site.post("k", "hello")
				site.want(first, c.status, "answer")
				if got := first.Header.Get("Semel-Outcome"); got != want.outcome {
					t.Errorf("Semel-Outcome is %q, want %q", got, want.outcome)
				}
				second := site.post("k", "hello")
				site.want(second, want.status, want.body)
				site.wantRuns(want.runs)
				if unknown := second.Header.Get("Semel-Outcome") == "unknown"; unknown != (want.body == semelhttp.CodeOutcomeUnknown) {
					t.Errorf("the duplicate says that the outcome is unknown: %v", unknown)
				}
				if isReplay := want.runs == 1 && want.body == "answer"; second.replayed() != isReplay {
					t.Errorf("marked as a replay: %v", second.replayed())
				}
			})
		}
	}
}

// keepAll keeps each answer, also one that was never written.
func keepAll(a semelhttp.Answer) semelhttp.Verdict {
	return semelhttp.Verdict{Effect: semelhttp.Kept, WithoutBody: a.Streamed || a.Short}
}

func only500(a semelhttp.Answer) semelhttp.Verdict {
	if a.Status == 500 {
		return semelhttp.Verdict{Effect: semelhttp.Kept}
	}
	return semelhttp.Verdict{Effect: semelhttp.NothingDone}
}

func TestJudge_Set_Decides(t *testing.T) {
	site := newSite(t, setup{options: semelhttp.Options{Judge: only500}}, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(map[string]int{"/500": 500, "/404": 404, "/202": 202}[r.URL.Path])
	})
	for path, runs := range map[string]int64{"/500": 1, "/404": 2, "/202": 2} {
		site.runs.Store(0)
		for range 2 {
			r := site.request("k"+path, "hello")
			r.URL.Path = path
			site.do(r)
		}
		if got := site.runs.Load(); got != runs {
			t.Errorf("%s: ran %d times, want %d", path, got, runs)
		}
	}
}

// A whole answer is not short while a part of it is still to come.
func TestJudge_AnswerIsStreamed_ShortOnlyIfPartIsMissing(t *testing.T) {
	noHalves := func(a semelhttp.Answer) semelhttp.Verdict {
		if a.Short {
			t.Error("a whole answer is short")
			return semelhttp.Verdict{Reason: "half an answer"}
		}
		return semelhttp.Judge(a)
	}
	for _, flush := range []bool{false, true} {
		site := newSite(t, setup{options: semelhttp.Options{Judge: noHalves, MaxResponse: 10}}, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "100")
			if flush {
				_ = http.NewResponseController(w).Flush()
			}
			for range 10 {
				_, _ = io.WriteString(w, "0123456789")
			}
			if n, err := io.WriteString(w, "more"); n != 0 || err == nil {
				t.Errorf("wrote %d bytes over the length", n)
			}
		})
		site.want(site.post("k", "hello"), 200, strings.Repeat("0123456789", 10))
		if a := site.post("k", "hello"); a.Header.Get("Semel-Outcome") != "not-kept" {
			t.Errorf("flush %v: the duplicate got %d %v", flush, a.StatusCode, a.Header)
		}
		site.wantRuns(1)
	}
	var short atomic.Bool
	site := newSite(t, setup{options: semelhttp.Options{MaxResponse: 10, Judge: func(a semelhttp.Answer) semelhttp.Verdict {
		short.Store(a.Short)
		return semelhttp.Judge(a)
	}}}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, strings.Repeat("a", 50))
		_, _ = io.WriteString(w, strings.Repeat("a", 51)) // refused
	})
	if a := site.post("k", "hello"); a.err == nil {
		t.Error("half of an answer came as a whole one")
	}
	site.wantRuns(1)
	if !short.Load() {
		t.Error("half of a streamed answer is not short")
	}
}

func TestVerdict_NoEffect_CountsNoAttempt(t *testing.T) {
	site := newSite(t, setup{guard: semel.Options{MaxAttempts: 2}}, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(429) })
	for range 5 {
		site.want(site.post("k", "hello"), 429, "")
	}
	site.wantRuns(5)
}

func TestMaxAttempts_LastAnswerSent_ThenExhausted(t *testing.T) {
	site := newSite(t, setup{guard: semel.Options{MaxAttempts: 2}}, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(502)
		_, _ = io.WriteString(w, "secret")
	})
	site.want(site.post("k", "hello"), 502, "secret")
	site.want(site.post("k", "hello"), 502, "secret")
	a := site.post("k", "hello")
	site.want(a, 500, semelhttp.CodeAttemptsExhausted)
	if !a.replayed() {
		t.Error("a kept failure is not marked as a replay")
	}
	site.wantRuns(2)
}

func TestMarks_UnprotectedRequest_DoNothing(t *testing.T) {
	r, err := http.NewRequest(http.MethodPost, "/", nil)
	if err != nil {
		t.Fatal(err)
	}
	semelhttp.NoEffect(r)
	semelhttp.Final(r)
}

func TestReplay_ReconciledOutcome_IsAnswered(t *testing.T) {
	for name, c := range map[string]struct {
		verdict semel.Verdict
		status  int
		body    string
		ctype   string
	}{
		"a value":   {semel.Happened(map[string]int{"id": 7}), 200, `{"id":7}`, "application/json"},
		"an answer": {semel.Happened(store.Outcome{Code: 201, Body: []byte("made"), Header: []store.Header{{Name: "Content-Type", Value: "a/b"}, {Name: "set-cookie", Value: "x"}}}), 201, "made", "a/b"},
		"no type":   {semel.Happened(store.Outcome{Code: 201, Body: []byte("<html>")}), 201, "<html>", ""}, // the server must not guess that it is a page
		"a failure": {semel.FailedForGood(&semel.Failure{Code: "declined", Message: "secret"}), 500, semelhttp.CodeFailed, "application/problem+json"},
		"nothing":   {semel.Verdict{}, 409, semelhttp.CodeOutcomeUnknown, "application/problem+json"},
	} {
		t.Run(name, func(t *testing.T) {
			reconcile := func(ctx context.Context, x *semel.Execution) (semel.Verdict, error) { return c.verdict, nil }
			site := newSite(t, setup{guard: semel.Options{OnDoubt: semel.Park, Reconcile: reconcile}}, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(502) })
			site.want(site.post("k", "hello"), 502, "")
			a := site.post("k", "hello")
			site.want(a, c.status, c.body)
			if a.Header.Get("Content-Type") != c.ctype || a.Header.Get("Set-Cookie") != "" {
				t.Errorf("headers %v", a.Header)
			}
			site.wantRuns(1)
		})
	}
}
