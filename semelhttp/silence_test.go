package semelhttp_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/logtest"
	"github.com/semel-go/semel/semelhttp"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// timedContext is a request's context whose time is over when over is closed.
type timedContext struct {
	context.Context
	over chan struct{}
}

func (c timedContext) Done() <-chan struct{} { return c.over }

func (c timedContext) Err() error {
	select {
	case <-c.over:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// overKey is the key of timedContext.over in the context.
type overKey struct{}

// The handlers of this table end without an answer.
func TestSilence_Handler_IsNotKept(t *testing.T) {
	timeOut := func(h http.Handler) http.Handler { // like the middleware Timeout of chi; the handler says when
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			over := make(chan struct{})
			ctx := timedContext{context.WithValue(r.Context(), overKey{}, over), over}
			defer func() {
				if ctx.Err() != nil {
					w.WriteHeader(http.StatusGatewayTimeout)
				}
			}()
			h.ServeHTTP(w, r.WithContext(ctx))
		})
	}
	waits := func(_ http.ResponseWriter, r *http.Request) {
		close(r.Context().Value(overKey{}).(chan struct{}))
		<-r.Context().Done()
	}
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		outer   func(http.Handler) http.Handler
		status  int
	}{
		"the context ended":       {waits, timeOut, 504},
		"an error went elsewhere": {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Half", "1") }, nil, 500},
	} {
		for _, policy := range []semel.Policy{semel.Retry, semel.Park} {
			t.Run(name+" "+policy.String(), func(t *testing.T) {
				t.Parallel()
				site := newSite(t, setup{guard: semel.Options{OnDoubt: policy}, outer: c.outer}, c.handler)
				first := site.post("k", "hello")
				site.want(first, c.status, semelhttp.CodeAnswerMissing)
				if cure := strings.Contains(first.body, "w.WriteHeader(http.StatusOK)"); cure != (c.outer == nil) {
					t.Errorf("the problem says %s", first.body)
				}
				if unknown := first.Header.Get("Semel-Outcome") == "unknown"; unknown != (policy == semel.Park) || first.Header.Get("X-Half") != "" {
					t.Errorf("headers %v", first.Header)
				}
				again := site.post("k", "hello")
				if again.replayed() {
					t.Error("silence was kept")
				}
				if policy == semel.Park {
					site.want(again, 409, semelhttp.CodeOutcomeUnknown)
					site.wantRuns(1)
				} else {
					site.want(again, c.status, semelhttp.CodeAnswerMissing)
					site.wantRuns(2)
				}
			})
		}
	}
}

func TestSilence_MarkedOrAllowed_Is200(t *testing.T) {
	var options semelhttp.Options
	options.Judge = func(a semelhttp.Answer) semelhttp.Verdict {
		if a.Status == 0 && !a.Ended {
			return semelhttp.Verdict{Effect: semelhttp.Kept}
		}
		return semelhttp.Judge(a)
	}
	for name, c := range map[string]struct {
		options semelhttp.Options
		mark    func(*http.Request)
		runs    int64
	}{
		"allowed":   {options, func(*http.Request) {}, 1},
		"final":     {semelhttp.Options{}, semelhttp.Final, 1},
		"no effect": {semelhttp.Options{}, semelhttp.NoEffect, 2},
	} {
		site := newSite(t, setup{options: c.options}, func(_ http.ResponseWriter, r *http.Request) { c.mark(r) })
		for range 2 {
			if a := site.post("k", "hello"); a.StatusCode != 200 || a.body != "" {
				t.Errorf("%s: got %d %q", name, a.StatusCode, a.body)
			}
		}
		if got := site.runs.Load(); got != c.runs {
			t.Errorf("%s: ran %d times, want %d", name, got, c.runs)
		}
	}
}

// A handler that forwards a request finds out in the middle of the answer that the
// rest does not come.
func TestBroken_NothingSent_AnotherAnswerIsDoubt(t *testing.T) {
	for _, policy := range []semel.Policy{semel.Retry, semel.Park} {
		site := newSite(t, setup{guard: semel.Options{OnDoubt: policy}}, func(w http.ResponseWriter, r *http.Request) {
			semelhttp.Final(r)
			w.Header().Set("X-Half", "1")
			w.Header().Set("Content-Length", "100")
			w.WriteHeader(201)
			_, _ = io.WriteString(w, "half of it")
			if !semelhttp.Broken(r) {
				t.Error("nothing was sent, and the answer was not dropped")
			}
			w.WriteHeader(502)
			_, _ = io.WriteString(w, "lost")
		})
		first := site.post("k", "hello")
		site.want(first, 502, "lost")
		if first.err != nil || first.Header.Get("X-Half") != "" || (first.Header.Get("Semel-Outcome") == "unknown") != (policy == semel.Park) {
			t.Errorf("%v: %v, headers %v", policy, first.err, first.Header)
		}
		if again := site.post("k", "hello"); again.replayed() {
			t.Errorf("%v: a broken answer was kept", policy)
		}
	}
}

// An explanation is the last error of the record, and nothing that the client gets.
func TestExplain_NoResult_RecordHasIt(t *testing.T) {
	for status, state := range map[int]store.State{502: store.Unknown, 429: store.Released, 201: store.Completed} {
		st := memstore.New(nil)
		site := newSite(t, setup{store: st, guard: semel.Options{OnDoubt: semel.Park}}, func(w http.ResponseWriter, r *http.Request) {
			semelhttp.Explain(r, "the cable is cut")
			w.WriteHeader(status)
		})
		first := site.post("k", "hello")
		want := "the cable is cut"
		if status == 201 {
			want = ""
		}
		var r store.Record
		for f, err := range st.List(t.Context(), store.Filter{}) {
			if r = f.Record; err != nil {
				t.Fatal(err)
			}
		}
		if r.State != state || r.LastError != want || strings.Contains(fmt.Sprint(first.Header, first.body), "cable") {
			t.Errorf("%d: %v with the error %q; the client got %+v", status, r.State, r.LastError, first)
		}
	}
}

func TestBroken_PartSent_StaysDone(t *testing.T) {
	site := newSite(t, setup{}, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(201)
		_, _ = io.WriteString(w, "half of it")
		_ = http.NewResponseController(w).Flush()
		if semelhttp.Broken(r) {
			t.Error("a part was sent, and the answer was dropped")
		}
		panic(http.ErrAbortHandler)
	})
	if first := site.post("k", "hello"); first.err == nil {
		t.Error("the first answer looks whole")
	}
	again := site.post("k", "hello")
	site.want(again, 201, "")
	if again.Header.Get("Semel-Outcome") != "not-kept" {
		t.Errorf("headers %v", again.Header)
	}
	r, err := http.NewRequest(http.MethodPost, "/", nil)
	if err != nil || semelhttp.Broken(r) {
		t.Errorf("Broken of an unprotected request: %v", err)
	}
}

// The first attempt of a challenge has no body, and a form has another boundary in
// each repeat.
func TestNoEffect_Refused_NextPayloadRuns(t *testing.T) {
	site := newSite(t, setup{guard: semel.Options{OnDoubt: semel.Park}}, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		switch string(b) {
		case "", "otp=bad":
			w.Header().Set("WWW-Authenticate", "Digest")
			w.WriteHeader(401)
		case "busy":
			semelhttp.NoEffect(r)
			w.WriteHeader(503)
		default:
			w.WriteHeader(201)
			_, _ = w.Write(b)
		}
	})
	for _, step := range []struct {
		body   string
		status int
	}{{"", 401}, {"otp=bad", 401}, {"busy", 503}, {"otp=good", 201}, {"otp=good", 201}, {"otp=bad", 422}} {
		if a := site.post("k", step.body); a.StatusCode != step.status {
			t.Errorf("%q: got %d %q, want %d", step.body, a.StatusCode, a.body, step.status)
		}
	}
	site.wantRuns(4)
}

func TestRedirect_AsksElsewhere_IsNotKept(t *testing.T) {
	site := newSite(t, setup{guard: semel.Options{OnDoubt: semel.Park}}, func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/") {
			http.Redirect(w, r, r.URL.Path+"/", http.StatusPermanentRedirect)
			return
		}
		w.WriteHeader(201)
	})
	site.want(site.post("k", "hello"), 201, "") // the client follows, with the same key
	again := site.post("k", "hello")            // it begins at the path without a slash again
	site.want(again, 201, "")
	if !again.replayed() {
		t.Error("the answer of the redirect's target was not found again")
	}
	site.wantRuns(2)
}

// Clients hang up as often as they like, and the handler is right to return then.
func TestSilence_ClientLeft_IsNoErrorInTheLog(t *testing.T) {
	out := logtest.Capture(t)
	for name, c := range map[string]struct {
		level string
		cure  bool
		ends  func(context.Context) (context.Context, func())
	}{
		"the client left": {"INFO", false, func(ctx context.Context) (context.Context, func()) { return context.WithCancel(ctx) }},
		"the time was over": {"WARN", false, func(ctx context.Context) (context.Context, func()) {
			over := make(chan struct{})
			return timedContext{ctx, over}, func() { close(over) }
		}},
		"nothing ended": {"ERROR", true, func(ctx context.Context) (context.Context, func()) { return ctx, func() {} }},
	} {
		out.Reset()
		ctx, end := c.ends(t.Context())
		once, err := semelhttp.Middleware(newGuard(t, nil, nil), func(*http.Request) (string, error) { return "ann", nil }, nil)
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequestWithContext(ctx, "POST", "/pay", nil)
		r.Pattern = "POST /pay"
		r.Header.Set("Idempotency-Key", "k")
		w := httptest.NewRecorder()
		once(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if end(); !c.cure {
				<-r.Context().Done()
			}
		})).ServeHTTP(w, r)
		lines := slices.DeleteFunc(strings.Split(out.String(), "\n"), func(line string) bool { return !strings.Contains(line, `msg="semelhttp: `) })
		if len(lines) != 1 || !strings.Contains(lines[0], "level="+c.level+" ") || strings.Contains(lines[0], "WriteHeader") != c.cure || !strings.Contains(lines[0], "in doubt") {
			t.Errorf("%s: %d; the log says %q", name, w.Code, lines)
		}
	}
}
