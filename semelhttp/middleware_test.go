package semelhttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/semelhttp"
	"github.com/semel-go/semel/store"
)

// echo answers with the request's body.
func echo(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusTeapot)
		return
	}
	w.WriteHeader(http.StatusCreated)
	_, _ = fmt.Fprintf(w, "you said %s", b)
}

func TestMiddleware_Duplicate_GetsFirstAnswer(t *testing.T) {
	bothProtocols(t, func(t *testing.T, http2 bool) {
		site := newSite(t, setup{http2: http2}, echo)
		first := site.post("k", "hello")
		site.want(first, 201, "you said hello")
		if first.replayed() {
			t.Error("the first answer is marked as a replay")
		}
		for range 3 {
			again := site.post("k", "hello")
			site.want(again, 201, "you said hello")
			if !again.replayed() {
				t.Error("a replay is not marked")
			}
			if v := again.Header.Get("Cache-Control"); v != "no-store" {
				t.Errorf("a replay has Cache-Control %q", v)
			}
		}
		site.want(site.post("k2", "hello"), 201, "you said hello")
		site.wantRuns(2)
	})
}

func TestMiddleware_OtherPayload_IsRefused(t *testing.T) {
	site := newSite(t, setup{}, echo)
	site.post("k", "hello")
	site.want(site.post("k", "goodbye"), 422, semelhttp.CodePayloadMismatch)
	site.want(site.post("k", "hello"), 201, "you said hello") // the first record is unchanged
	site.wantRuns(1)
}

func TestMiddleware_TwoTenantsOneKey_BothRun(t *testing.T) {
	site := newSite(t, setup{}, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Header.Get(tenantHeader)) })
	for range 2 {
		for _, tenant := range []string{"bob", "eve"} {
			r := site.request("k", "hello")
			r.Header.Set(tenantHeader, tenant)
			site.want(site.do(r), 200, tenant)
		}
	}
	site.wantRuns(2)
}

func TestMiddleware_OtherMethods_PassThrough(t *testing.T) {
	site := newSite(t, setup{}, func(w http.ResponseWriter, r *http.Request) {
		_, protected := semel.FromContext(r.Context())
		_, _ = fmt.Fprint(w, r.Method, protected)
	})
	for method, want := range map[string]string{"GET": "GETfalse", "PUT": "PUTfalse", "DELETE": "DELETEfalse", "POST": "POSTtrue", "PATCH": "PATCHtrue"} {
		r := site.request("k"+method, "hello")
		r.Method = method
		site.want(site.do(r), 200, want)
	}
}

func TestOptional_NoKey_PassesUnprotected(t *testing.T) {
	site := newSite(t, setup{options: semelhttp.Options{Optional: true}}, func(w http.ResponseWriter, r *http.Request) {
		_, protected := semel.FromContext(r.Context())
		_, _ = fmt.Fprint(w, protected)
	})
	site.want(site.post("", "hello"), 200, "false")
	site.want(site.post("", "hello"), 200, "false")
	site.want(site.post("k", "hello"), 200, "true")
	r := site.request("", "hello")
	r.Header.Set("Idempotency-Key", "")
	site.want(site.do(r), 400, semelhttp.CodeKeyMalformed) // present, but empty
	site.wantRuns(3)
}

func TestMiddleware_Handler_FindsExecution(t *testing.T) {
	site := newSite(t, setup{}, func(w http.ResponseWriter, r *http.Request) {
		run, ok := semel.FromContext(r.Context())
		if !ok {
			t.Error("FromContext found nothing")
			return
		}
		_, _ = fmt.Fprint(w, run.Operation(), run.Tenant(), run.Key(), run.Attempt(), run.Fence() > 0, run.DownstreamKey("psp") != "")
	})
	site.want(site.post(`"k"`, "hello"), 200, "POST /annk1 true true")
}

func TestKeyFrom_NoKey_MakesKeyOfBody(t *testing.T) {
	o := semelhttp.Options{KeyFrom: func(r *http.Request, body io.Reader) (string, error) {
		b, err := io.ReadAll(body)
		if ref, ok := strings.CutPrefix(string(b), "ref="); ok && err == nil {
			return ref, nil
		}
		return "", errors.Join(err, errors.New("secret: no reference"))
	}}
	site := newSite(t, setup{options: o}, echo)
	site.want(site.post("", "ref=17"), 201, "you said ref=17")
	if again := site.post("", "ref=17"); !again.replayed() {
		t.Error("a derived key was not found again")
	}
	bad := site.post("", "no")
	site.want(bad, 400, semelhttp.CodePayloadMalformed)
	if strings.Contains(bad.body, "secret") {
		t.Errorf("the error's text was sent: %s", bad.body)
	}
	site.want(site.post("", "ref="), 400, semelhttp.CodeKeyMissing)
	site.want(site.post("", "ref="+strings.Repeat("x", 256)), 400, semelhttp.CodeKeyMalformed)
	site.want(site.post("own", "anything"), 201, "you said anything") // the client's own key has precedence
	site.wantRuns(2)
}

func TestKeyFrom_EmptyAndOptional_Passes(t *testing.T) {
	o := semelhttp.Options{Optional: true, KeyFrom: func(*http.Request, io.Reader) (string, error) { return "", nil }}
	site := newSite(t, setup{options: o}, echo)
	for range 2 {
		site.want(site.post("", "hello"), 201, "you said hello") // KeyFrom has read the body, and the handler can read it again
		site.want(site.post("", ""), 201, "you said ")
	}
	site.wantRuns(4)
}

func TestPayload_Chosen_ComparesOnlyThat(t *testing.T) {
	o := semelhttp.Options{Payload: func(r *http.Request, body io.Reader) (semel.Payload, error) {
		doc, err := io.ReadAll(body)
		return semel.Fields(doc, "amount"), err
	}}
	site := newSite(t, setup{options: o}, echo)
	site.want(site.post("k", `{"amount":1,"at":"12:00"}`), 201, `you said {"amount":1,"at":"12:00"}`)
	if a := site.post("k", `{"at":"12:01","amount":1.0}`); !a.replayed() {
		t.Errorf("fields that were not chosen count: %d %s", a.StatusCode, a.body)
	}
	site.want(site.post("k", `{"amount":2}`), 422, semelhttp.CodePayloadMismatch)
	site.want(site.post("k3", `not JSON`), 400, semelhttp.CodePayloadMalformed)
	site.wantRuns(1)
}

func TestMiddleware_RunnerRepeatsHandler_LastAnswerCounts(t *testing.T) {
	twice := runnerFunc(func(ctx context.Context, g *semel.Guard, call semel.Call, fn semel.Handler) (semel.Result, error) {
		return g.Run(ctx, call, func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
			if _, err := fn(ctx, x); err != nil {
				return store.Outcome{}, err
			}
			return fn(ctx, x)
		})
	})
	n := 0
	var before io.Reader
	site := newSite(t, setup{runner: twice.with(newGuard(t, nil, nil))}, func(w http.ResponseWriter, r *http.Request) {
		seen := fmt.Sprintf("%v %v %v %s %v", r.Header["X-Coding"], r.Header["X-Hops"], r.URL, r.FormValue("a"), r.Trailer["X-Sum"])
		if want := "[gzip] [1] /pay?a=1 1 [7]"; seen != want {
			t.Errorf("run %d sees %s, want %s", n+1, seen, want)
		}
		r.Header.Del("X-Coding")
		r.Header.Add("X-Hops", "2")
		r.URL.Path, r.URL.RawQuery = "/", ""
		r.Form.Set("a", "2")
		r.Trailer.Del("X-Sum")
		if n++; n == 1 {
			before = r.Body
		} else if _, err := before.Read(make([]byte, 1)); !errors.Is(err, http.ErrBodyReadAfterClose) {
			t.Errorf("the undone run's body is still open: %v", err)
		}
		w.Header().Set(fmt.Sprint("Run-", n), "yes")
		echo(w, r)
	})
	r := site.request("k", "hello")
	r.ContentLength = -1 // trailers need a chunked body
	r.URL.RawQuery = "a=1"
	r.Header.Set("X-Coding", "gzip")
	r.Header.Set("X-Hops", "1")
	r.Trailer = http.Header{"X-Sum": {"7"}}
	a := site.do(r)
	site.want(a, 201, "you said hello")
	if a.Header.Get("Run-1") != "" || a.Header.Get("Run-2") != "yes" {
		t.Errorf("headers of the undone run were sent: %v", a.Header)
	}
	site.wantRuns(2)
}

func TestMiddleware_RunUndone_SendsReplay(t *testing.T) {
	late := runnerFunc(func(ctx context.Context, g *semel.Guard, call semel.Call, fn semel.Handler) (semel.Result, error) {
		x := semel.Call{Operation: "undone", Tenant: semel.Shared, Key: "k", Payload: semel.NoPayload()}
		if _, err := g.Run(ctx, x, fn); err != nil { // like a transaction that is undone afterwards
			return semel.Result{}, err
		}
		return g.Run(ctx, call, func(context.Context, *semel.Execution) (store.Outcome, error) {
			return store.Outcome{}, errors.New("there should be a record")
		})
	})
	g := newGuard(t, nil, nil)
	first := true
	choose := runnerFunc(func(ctx context.Context, g *semel.Guard, call semel.Call, fn semel.Handler) (semel.Result, error) {
		if first {
			first = false
			return g.Run(ctx, call, fn)
		}
		return late(ctx, g, call, fn)
	})
	runs := 0
	site := newSite(t, setup{runner: choose.with(g)}, func(w http.ResponseWriter, r *http.Request) {
		runs++
		w.Header().Set(fmt.Sprint("Run-", runs), "yes")
		_, _ = fmt.Fprint(w, "run ", runs)
	})
	site.want(site.post("k", "hello"), 200, "run 1")
	a := site.post("k", "hello")
	site.want(a, 200, "run 1")
	if !a.replayed() || a.Header.Get("Run-2") != "" {
		t.Errorf("headers %v", a.Header)
	}
	site.wantRuns(2)
}

// runnerFunc makes a Runner of a function and a Guard.
type runnerFunc func(ctx context.Context, g *semel.Guard, call semel.Call, fn semel.Handler) (semel.Result, error)

type runner struct {
	f runnerFunc
	g *semel.Guard
}

func (f runnerFunc) with(g *semel.Guard) semel.Runner { return runner{f, g} }

func (r runner) Run(ctx context.Context, call semel.Call, fn semel.Handler) (semel.Result, error) {
	return r.f(ctx, r.g, call, fn)
}
