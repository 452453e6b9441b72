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
		x := newSite(t, setup{http2: http2}, echo)
		first := x.post("k", "hello")
		x.want(first, 201, "you said hello")
		if first.replayed() {
			t.Error("the first answer is marked as a replay")
		}
		for range 3 {
			again := x.post("k", "hello")
			x.want(again, 201, "you said hello")
			if !again.replayed() {
				t.Error("a replay is not marked")
			}
			if v := again.Header.Get("Cache-Control"); v != "no-store" {
				t.Errorf("a replay has Cache-Control %q", v)
			}
		}
		x.want(x.post("k2", "hello"), 201, "you said hello")
		x.wantRuns(2)
	})
}

func TestMiddleware_OtherPayload_IsRefused(t *testing.T) {
	x := newSite(t, setup{}, echo)
	x.post("k", "hello")
	x.want(x.post("k", "goodbye"), 422, semelhttp.CodePayloadMismatch)
	x.want(x.post("k", "hello"), 201, "you said hello") // the first record is not spoilt
	x.wantRuns(1)
}

func TestMiddleware_TwoTenantsOneKey_BothRun(t *testing.T) {
	x := newSite(t, setup{}, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Header.Get(tenantHeader)) })
	for range 2 {
		for _, tenant := range []string{"bob", "eve"} {
			r := x.request("k", "hello")
			r.Header.Set(tenantHeader, tenant)
			x.want(x.do(r), 200, tenant)
		}
	}
	x.wantRuns(2)
}

func TestMiddleware_OtherMethods_PassThrough(t *testing.T) {
	x := newSite(t, setup{}, func(w http.ResponseWriter, r *http.Request) {
		_, protected := semel.FromContext(r.Context())
		_, _ = fmt.Fprint(w, r.Method, protected)
	})
	for method, want := range map[string]string{"GET": "GETfalse", "PUT": "PUTfalse", "DELETE": "DELETEfalse", "POST": "POSTtrue", "PATCH": "PATCHtrue"} {
		r := x.request("k"+method, "hello")
		r.Method = method
		x.want(x.do(r), 200, want)
	}
}

func TestOptional_NoKey_PassesUnprotected(t *testing.T) {
	x := newSite(t, setup{options: semelhttp.Options{Optional: true}}, func(w http.ResponseWriter, r *http.Request) {
		_, protected := semel.FromContext(r.Context())
		_, _ = fmt.Fprint(w, protected)
	})
	x.want(x.post("", "hello"), 200, "false")
	x.want(x.post("", "hello"), 200, "false")
	x.want(x.post("k", "hello"), 200, "true")
	r := x.request("", "hello")
	r.Header.Set("Idempotency-Key", "")
	x.want(x.do(r), 400, semelhttp.CodeKeyMalformed) // present, but empty
	x.wantRuns(3)
}

func TestMiddleware_Handler_FindsExecution(t *testing.T) {
	x := newSite(t, setup{}, func(w http.ResponseWriter, r *http.Request) {
		run, ok := semel.FromContext(r.Context())
		if !ok {
			t.Error("FromContext found nothing")
			return
		}
		_, _ = fmt.Fprint(w, run.Operation(), run.Tenant(), run.Key(), run.Attempt(), run.Fence() > 0, run.DownstreamKey("psp") != "")
	})
	x.want(x.post(`"k"`, "hello"), 200, "POST /annk1 true true")
}

func TestKeyFrom_NoKey_MakesKeyOfBody(t *testing.T) {
	o := semelhttp.Options{KeyFrom: func(r *http.Request, body io.Reader) (string, error) {
		b, err := io.ReadAll(body)
		if ref, ok := strings.CutPrefix(string(b), "ref="); ok && err == nil {
			return ref, nil
		}
		return "", errors.Join(err, errors.New("secret: no reference"))
	}}
	x := newSite(t, setup{options: o}, echo)
	x.want(x.post("", "ref=17"), 201, "you said ref=17")
	if again := x.post("", "ref=17"); !again.replayed() {
		t.Error("a derived key was not found again")
	}
	bad := x.post("", "no")
	x.want(bad, 400, semelhttp.CodePayloadMalformed)
	if strings.Contains(bad.body, "secret") {
		t.Errorf("the error's text was sent: %s", bad.body)
	}
	x.want(x.post("", "ref="), 400, semelhttp.CodeKeyMissing)
	x.want(x.post("", "ref="+strings.Repeat("x", 256)), 400, semelhttp.CodeKeyMalformed)
	x.want(x.post("own", "anything"), 201, "you said anything") // a key of the client's own comes first
	x.wantRuns(2)
}

func TestKeyFrom_EmptyAndOptional_Passes(t *testing.T) {
	o := semelhttp.Options{Optional: true, KeyFrom: func(*http.Request, io.Reader) (string, error) { return "", nil }}
	x := newSite(t, setup{options: o}, echo)
	for range 2 {
		x.want(x.post("", "hello"), 201, "you said hello") // the body is there although it was read
		x.want(x.post("", ""), 201, "you said ")
	}
	x.wantRuns(4)
}

func TestPayload_Chosen_ComparesOnlyThat(t *testing.T) {
	o := semelhttp.Options{Payload: func(r *http.Request, body io.Reader) (semel.Payload, error) {
		doc, err := io.ReadAll(body)
		return semel.Fields(doc, "amount"), err
	}}
	x := newSite(t, setup{options: o}, echo)
	x.want(x.post("k", `{"amount":1,"at":"12:00"}`), 201, `you said {"amount":1,"at":"12:00"}`)
	if a := x.post("k", `{"at":"12:01","amount":1.0}`); !a.replayed() {
		t.Errorf("fields that were not chosen count: %d %s", a.StatusCode, a.body)
	}
	x.want(x.post("k", `{"amount":2}`), 422, semelhttp.CodePayloadMismatch)
	x.want(x.post("k3", `not JSON`), 400, semelhttp.CodePayloadMalformed)
	x.wantRuns(1)
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
	x := newSite(t, setup{runner: twice.with(newGuard(t, nil, nil))}, func(w http.ResponseWriter, r *http.Request) {
		if n++; n == 1 {
			before = r.Body
		} else if _, err := before.Read(make([]byte, 1)); !errors.Is(err, http.ErrBodyReadAfterClose) {
			t.Errorf("the undone run's body is still open: %v", err)
		}
		w.Header().Set(fmt.Sprint("Run-", n), "yes")
		echo(w, r)
	})
	a := x.post("k", "hello")
	x.want(a, 201, "you said hello")
	if a.Header.Get("Run-1") != "" || a.Header.Get("Run-2") != "yes" {
		t.Errorf("headers of the undone run were sent: %v", a.Header)
	}
	x.wantRuns(2)
}

func TestMiddleware_RunUndone_SendsReplay(t *testing.T) {
	late := runnerFunc(func(ctx context.Context, g *semel.Guard, call semel.Call, fn semel.Handler) (semel.Result, error) {
		x := semel.Call{Operation: "undone", Tenant: semel.Shared, Key: "k", Payload: semel.NoPayload()}
		if _, err := g.Run(ctx, x, fn); err != nil { // as in a transaction that is then undone
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
	x := newSite(t, setup{runner: choose.with(g)}, func(w http.ResponseWriter, r *http.Request) {
		runs++
		w.Header().Set(fmt.Sprint("Run-", runs), "yes")
		_, _ = fmt.Fprint(w, "run ", runs)
	})
	x.want(x.post("k", "hello"), 200, "run 1")
	a := x.post("k", "hello")
	x.want(a, 200, "run 1")
	if !a.replayed() || a.Header.Get("Run-2") != "" {
		t.Errorf("headers %v", a.Header)
	}
	x.wantRuns(2)
}

// runnerFunc makes runners out of a Guard.
type runnerFunc func(ctx context.Context, g *semel.Guard, call semel.Call, fn semel.Handler) (semel.Result, error)

type runner struct {
	f runnerFunc
	g *semel.Guard
}

func (f runnerFunc) with(g *semel.Guard) semel.Runner { return runner{f, g} }

func (r runner) Run(ctx context.Context, call semel.Call, fn semel.Handler) (semel.Result, error) {
	return r.f(ctx, r.g, call, fn)
}
