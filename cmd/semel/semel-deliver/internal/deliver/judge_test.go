package deliver

import (
	"net/http"
	"testing"
	"time"

	"github.com/semel-go/semel/internal/lasterror"
	"github.com/semel-go/semel/semelhttp"
)

// header makes a header of pairs.
func header(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Set(pairs[i], pairs[i+1])
	}
	return h
}

// The table of docs/deliver.md, row by row.
func TestJudge_EachAnswer_FollowsTheTable(t *testing.T) {
	const pause, no = true, false
	soon := header("Retry-After", "7")
	for _, c := range []struct {
		name   string
		answer semelhttp.Answer
		want   effect
		pause  bool
	}{
		{"200", semelhttp.Answer{Status: 200}, done, no},
		{"202", semelhttp.Answer{Status: 202}, done, no},
		{"204", semelhttp.Answer{Status: 204}, done, no},
		{"302", semelhttp.Answer{Status: 302}, done, no},
		{"303", semelhttp.Answer{Status: 303}, done, no},
		{"303 to log in", semelhttp.Answer{Status: 303, Path: "/events", Header: header("Location", "/login?next=/events")}, refused, no},
		{"301", semelhttp.Answer{Status: 301}, later, pause},
		{"307", semelhttp.Answer{Status: 307}, later, pause},
		{"308", semelhttp.Answer{Status: 308}, later, pause},
		{"400", semelhttp.Answer{Status: 400}, failed, no},
		{"401", semelhttp.Answer{Status: 401}, later, pause},
		{"402", semelhttp.Answer{Status: 402}, refused, no},
		{"403", semelhttp.Answer{Status: 403}, refused, no},
		{"404", semelhttp.Answer{Status: 404}, failed, no},
		{"407", semelhttp.Answer{Status: 407}, later, pause},
		{"408", semelhttp.Answer{Status: 408}, later, no},
		{"409", semelhttp.Answer{Status: 409}, failed, no},
		{"409 in progress", semelhttp.Answer{Status: 409, Header: soon}, later, no},
		{"409 of a proxy that does not know", semelhttp.Answer{Status: 409, Header: header("Semel-Outcome", "unknown")}, doubt, no},
		{"410", semelhttp.Answer{Status: 410}, failed, no},
		{"413", semelhttp.Answer{Status: 413}, failed, no},
		{"415", semelhttp.Answer{Status: 415}, refused, no},
		{"421", semelhttp.Answer{Status: 421}, later, no},
		{"422", semelhttp.Answer{Status: 422}, failed, no},
		{"422 later", semelhttp.Answer{Status: 422, Header: soon}, later, no},
		{"423", semelhttp.Answer{Status: 423}, later, no},
		{"425", semelhttp.Answer{Status: 425}, later, no},
		{"429", semelhttp.Answer{Status: 429}, later, pause},
		{"499", semelhttp.Answer{Status: 499}, doubt, no},
		{"500", semelhttp.Answer{Status: 500}, doubt, no},
		{"500 later", semelhttp.Answer{Status: 500, Header: soon}, doubt, no},
		{"502", semelhttp.Answer{Status: 502}, doubt, pause},
		{"503", semelhttp.Answer{Status: 503}, doubt, pause},
		{"503 later", semelhttp.Answer{Status: 503, Header: soon}, later, pause},
		{"504", semelhttp.Answer{Status: 504}, doubt, pause},
		{"511", semelhttp.Answer{Status: 511}, later, pause},
		{"no answer", semelhttp.Answer{}, doubt, no},
		{"no answer in time", semelhttp.Answer{Ended: true}, doubt, no},
		{"no connection", semelhttp.Answer{NotBegun: true}, later, pause},
		{"200 that broke off", semelhttp.Answer{Status: 200, Broken: true}, doubt, no},
		{"404 that broke off", semelhttp.Answer{Status: 404, Broken: true, Header: header("Semel-Result", "final")}, doubt, no},
		{"500 that is final", semelhttp.Answer{Status: 500, Header: header("Semel-Result", "final")}, failed, no},
		{"201 that is final", semelhttp.Answer{Status: 201, Header: header("Semel-Result", "final")}, done, no},
		{"500 without effect", semelhttp.Answer{Status: 500, Header: header("Semel-Result", "no-effect")}, later, no},
		{"404 without effect", semelhttp.Answer{Status: 404, Header: header("Semel-Result", "no-effect")}, later, no},
	} {
		v := new(Statuses).judge(c.answer)
		if v.effect != c.want || v.pause != c.pause || v.reason == "" || v.tenant != (c.answer.Status == http.StatusTooManyRequests) {
			t.Errorf("%s: %+v, want effect %d, pause %v", c.name, v, c.want, c.pause)
		}
		if c.answer.Header.Get("Retry-After") != "" && v.after != 7*time.Second {
			t.Errorf("%s: after %v", c.name, v.after)
		}
	}
}

func TestJudge_StatusFlags_GoBeforeTheTable(t *testing.T) {
	s := Statuses{Done: []int{409}, Final: []int{402, 500}, NoEffect: []int{404, 501}}
	for status, want := range map[int]effect{409: done, 402: failed, 500: failed, 404: refused, 501: refused, 200: done, 403: refused, 502: doubt} {
		if v := s.judge(semelhttp.Answer{Status: status}); v.effect != want {
			t.Errorf("%d: %+v, want %d", status, v, want)
		}
	}
	if v := s.judge(semelhttp.Answer{Status: 404, Header: header("Retry-After", "1")}); v.effect != later {
		t.Errorf("404 with Retry-After: %+v", v)
	}
	if v := s.judge(semelhttp.Answer{Status: 409, Broken: true}); v.effect != doubt {
		t.Errorf("409 that broke off: %+v", v)
	}
}

// The flags are about answers of the service. A semel proxy in front of it refuses by the
// same statuses.
func TestJudge_RefusalOfSemel_IsNotDoneAndNotFinal(t *testing.T) {
	s := Statuses{Done: []int{409}, Final: []int{503}}
	busy := http.Header{"Retry-After": {"1"}, "Semel-Refusal": {"in_progress"}}
	for _, c := range []struct {
		answer semelhttp.Answer
		want   effect
	}{
		{semelhttp.Answer{Status: 409, Header: busy}, later},
		{semelhttp.Answer{Status: 409, Header: http.Header{"Semel-Outcome": {"unknown"}, "Semel-Refusal": {"outcome_unknown"}}}, doubt},
		{semelhttp.Answer{Status: 503, Header: http.Header{"Retry-After": {"1"}, "Semel-Refusal": {"store_unavailable"}}}, later},
		{semelhttp.Answer{Status: 422, Header: http.Header{"Semel-Refusal": {"payload_mismatch"}}}, refused},
		{semelhttp.Answer{Status: 413, Header: http.Header{"Semel-Refusal": {"body_too_large"}}}, refused},
		{semelhttp.Answer{Status: 400, Header: http.Header{"Semel-Refusal": {"key_missing"}}}, refused},
		{semelhttp.Answer{Status: 409}, done},
	} {
		if v := s.judge(c.answer); v.effect != c.want {
			t.Errorf("%+v: %+v, want %d", c.answer, v, c.want)
		}
	}
}

func TestRetryAfter_SecondsOrDate_WithinLimit(t *testing.T) {
	for value, want := range map[string]time.Duration{"0": 0, "120": 2 * time.Minute, "999999999999999999999": longestAfter, "2000000000": longestAfter} {
		if d, ok := retryAfter(value); !ok || d != want {
			t.Errorf("%s: %v %v", value, d, ok)
		}
	}
	if d, ok := retryAfter(time.Now().Add(time.Minute).UTC().Format(http.TimeFormat)); !ok || d < 30*time.Second || d > time.Minute {
		t.Errorf("a date: %v %v", d, ok)
	}
	if d, ok := retryAfter("Wed, 21 Oct 2015 07:28:00 GMT"); !ok || d != 0 {
		t.Errorf("a date in the past: %v %v", d, ok)
	}
	for _, value := range []string{"", "soon", "-1", "1.5"} {
		if _, ok := retryAfter(value); ok {
			t.Errorf("%q is taken", value)
		}
	}
}

// Operators are told what a code in a record means.
func TestCodes_OfFailures_AreExplained(t *testing.T) {
	for _, code := range []string{codeTooLarge, codeInvalid, failureCode(422)} {
		if m, ok := lasterror.ByCode(code); !ok || m.Next == "" {
			t.Errorf("%s has no explanation in package lasterror", code)
		}
	}
}
