package semelhttp_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/semelhttp"
)

const resultHeader = "Semel-Result"

// wantNoResult checks that the client did not get the header Semel-Result.
func wantNoResult(t *testing.T, a answer) {
	t.Helper()
	if a.Header.Get(resultHeader) != "" || a.Trailer.Get(resultHeader) != "" {
		t.Errorf("the client got %s: header %q, trailer %q", resultHeader, a.Header.Get(resultHeader), a.Trailer.Get(resultHeader))
	}
}

// The README tells the authors of handlers to send the header.
func TestResultHeader_OfAnswer_DecidesAsMark(t *testing.T) {
	say := func(result string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) { w.Header().Set(resultHeader, result) }
	}
	for name, c := range map[string]struct {
		status int // 0: the handler writes nothing
		say    func(http.ResponseWriter, *http.Request)
		second int // under park
		runs   int64
	}{
		"503 without effect":          {503, say("no-effect"), 503, 2},
		"200 without effect":          {200, say("no-effect"), 200, 2},
		"500 is final":                {500, say("final"), 500, 1},
		"silence is final":            {0, say("final"), 200, 1},
		"silence without effect":      {0, say("no-effect"), 200, 2},
		"503 with another value":      {503, say("none"), 409, 1},
		"200 with another value":      {200, say("none"), 200, 1},
		"a call counts more, final":   {500, func(w http.ResponseWriter, r *http.Request) { semelhttp.Final(r); say("no-effect")(w, r) }, 500, 1},
		"a call counts more, nothing": {500, func(w http.ResponseWriter, r *http.Request) { semelhttp.NoEffect(r); say("final")(w, r) }, 500, 2},
		"set after the status": {500, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(500)
			say("final")(w, r)
		}, 409, 1},
		"the answer broke off": {500, func(w http.ResponseWriter, r *http.Request) {
			say("final")(w, r)
			_, _ = io.WriteString(w, "half")
			if !semelhttp.Marked(r) || !semelhttp.Broken(r) || semelhttp.Marked(r) {
				t.Error("the header is no mark, or counts after the answer broke off")
			}
		}, 409, 1},
	} {
		t.Run(name, func(t *testing.T) {
			site := newSite(t, setup{guard: semel.Options{OnDoubt: semel.Park}}, func(w http.ResponseWriter, r *http.Request) {
				c.say(w, r)
				if c.status != 0 {
					w.WriteHeader(c.status)
				}
			})
			first, second := site.post("k", "hello"), site.post("k", "hello")
			if second.StatusCode != c.second || site.runs.Load() != c.runs {
				t.Errorf("got %d and %d after %d runs, want %d after %d", first.StatusCode, second.StatusCode, site.runs.Load(), c.second, c.runs)
			}
			wantNoResult(t, first)
			wantNoResult(t, second)
		})
	}
}

func TestResultHeader_StreamedAnswer_DecidesAndIsNotSent(t *testing.T) {
	bothProtocols(t, func(t *testing.T, http2 bool) {
		for result, runs := range map[string]int64{"no-effect": 2, "final": 1} {
			site := newSite(t, setup{http2: http2, guard: semel.Options{OnDoubt: semel.Park}}, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set(resultHeader, result)
				w.Header().Set("Trailer", "X-Rest, "+resultHeader)
				w.WriteHeader(503)
				_, _ = io.WriteString(w, "half")
				w.(http.Flusher).Flush()
				w.Header().Set("X-Rest", "1")
			})
			first := site.post("k", "hello")
			wantNoResult(t, first)
			if second := site.post("k", "hello"); second.StatusCode != 503 || site.runs.Load() != runs || first.Trailer.Get("X-Rest") != "1" {
				t.Errorf("%s: the second answer is %d after %d runs, want 503 after %d; the trailers are %v", result, second.StatusCode, site.runs.Load(), runs, first.Trailer)
			}
		}
	})
}

func TestResultHeader_BeforeFinalAnswer_IsNotSent(t *testing.T) {
	site := newSite(t, setup{}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(resultHeader, "no-effect")
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(200)
	})
	var early []textproto.MIMEHeader
	for range 2 {
		r := site.request("k", "hello")
		wantNoResult(t, site.do(r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
			Got1xxResponse: func(_ int, h textproto.MIMEHeader) error { early = append(early, h); return nil },
		}))))
	}
	site.wantRuns(2)
	if len(early) != 2 || early[0].Get(resultHeader) != "" {
		t.Errorf("the early hints are %v", early)
	}
}

// A middleware that sends back what the client has sent lets the client say nothing about
// the answer, and an answer that is written after a panic is not the handler's.
func TestResultHeader_OfOthers_DoesNotCount(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"503":     func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) },
		"silence": func(http.ResponseWriter, *http.Request) {},
		"panic":   func(w http.ResponseWriter, _ *http.Request) { w.Header().Set(resultHeader, "final"); panic("boom") },
	} {
		for _, result := range []string{"final", "no-effect"} {
			t.Run(fmt.Sprint(name, " ", result), func(t *testing.T) {
				outer := func(h http.Handler) http.Handler {
					return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						w.Header().Set(resultHeader, r.Header.Get(resultHeader))
						defer func() {
							if recover() != nil {
								w.WriteHeader(503)
							}
						}()
						h.ServeHTTP(w, r)
					})
				}
				site := newSite(t, setup{guard: semel.Options{OnDoubt: semel.Park}, outer: outer}, handler)
				r := site.request("k", "hello")
				r.Header.Set(resultHeader, result)
				wantNoResult(t, site.do(r))
				site.want(site.post("k", "hello"), 409, semelhttp.CodeOutcomeUnknown)
				site.wantRuns(1)
			})
		}
	}
}

// A client does not repeat a request after a replay.
func TestAccept_AnswerAsksToComeAgain_IsNoReplay(t *testing.T) {
	d, answer := &acceptSite{testSite: &testSite{t: t}, guard: newGuard(t, nil, nil)}, http.HandlerFunc(nil)
	h, err := semelhttp.Accept(d.guard, byAccount, func(w http.ResponseWriter, r *http.Request, ticket semel.Ticket) {
		if ticket.Token != "" {
			d.token = append(d.token, ticket.Token)
		}
		answer(w, r)
	}, payments(nil))
	if err != nil {
		t.Fatal(err)
	}
	d.serve(h, false)
	with := func(status int, name, value string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(name, value)
			if status != 0 {
				w.WriteHeader(status)
			}
		}
	}
	check := func(name string, h http.HandlerFunc, status int, replayed bool) {
		t.Helper()
		answer = h
		a := d.post("k", "hello")
		if a.StatusCode != status || a.replayed() != replayed {
			t.Errorf("%s: got %d, marked as a replay: %v; want %d, %v", name, a.StatusCode, a.replayed(), status, replayed)
		}
		wantNoResult(t, a)
	}
	check("first request", with(202, resultHeader, "final"), 202, false)
	check("no result, later", with(409, "Retry-After", "1"), 409, false)
	check("no result, token not sent", with(202, resultHeader, "no-effect"), 202, false)
	check("no result, token not sent, silence", with(0, resultHeader, "no-effect"), 200, false)
	check("no result, token sent", with(202, "Retry-After", "1"), 202, true)
	if err := d.runWork(func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	check("result cannot be read, later", with(503, "Retry-After", "1"), 503, false)
	check("result cannot be read, busy", with(409, "Retry-After", "1"), 409, false)
	check("result cannot be read", with(500, "X-A", "1"), 500, false)
	check("result is a failure", with(500, resultHeader, "final"), 500, true)
	check("result", with(200, "X-A", "1"), 200, true)
}
