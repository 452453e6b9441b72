package semelhttp_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/semelhttp"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// hangUp sends a request and disconnects as soon as its handler runs.
func hangUp(t *testing.T, site *testSite, key string, running <-chan struct{}) {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	done := make(chan error, 1)
	r := site.request(key, "hello").WithContext(ctx)
	go func() {
		resp, err := site.client.Do(r)
		if err == nil {
			_ = resp.Body.Close()
		}
		done <- err
	}()
	receive(t, running, "the handler's start")
	leave()
	if err := receive(t, done, "the client's end"); !errors.Is(err, context.Canceled) {
		t.Fatalf("the client got %v", err)
	}
}

func TestHangup_HandlerAnswers_AnswerIsKept(t *testing.T) {
	bothProtocols(t, func(t *testing.T, http2 bool) {
		running, stored := make(chan struct{}, 1), make(chan store.Settlement, 1)
		st := &faultyStore{Store: memstore.New(nil), settled: func(s store.Settlement) { stored <- s }}
		site := newSite(t, setup{http2: http2, store: st}, func(w http.ResponseWriter, r *http.Request) {
			running <- struct{}{}
			<-r.Context().Done()
			if cause := context.Cause(r.Context()); !errors.Is(cause, context.Canceled) {
				t.Errorf("the context ended with %v", cause)
			}
			_, _ = io.WriteString(w, "done all the same")
		})
		hangUp(t, site, "k", running)
		if s := receive(t, stored, "the settlement"); s.State != store.Completed {
			t.Errorf("stored is %v", s.State)
		}
		site.want(site.post("k", "hello"), 200, "done all the same")
		site.wantRuns(1)
	})
}

func TestDetach_ClientLeaves_HandlerGoesOn(t *testing.T) {
	bothProtocols(t, func(t *testing.T, http2 bool) {
		running, gone, stored := make(chan struct{}, 1), make(chan struct{}), make(chan store.Settlement, 1)
		st := &faultyStore{Store: memstore.New(nil), settled: func(s store.Settlement) { stored <- s }}
		outer := func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				context.AfterFunc(r.Context(), func() { gone <- struct{}{} })
				h.ServeHTTP(w, r)
			})
		}
		site := newSite(t, setup{http2: http2, store: st, options: semelhttp.Options{Detach: true}, outer: outer}, func(w http.ResponseWriter, r *http.Request) {
			running <- struct{}{}
			receive(t, gone, "the client's leaving")
			if err := r.Context().Err(); err != nil {
				t.Errorf("the handler's context ended with its client: %v", err)
			}
			if _, ok := semel.FromContext(r.Context()); !ok || r.Context().Value(http.ServerContextKey) == nil {
				t.Error("the handler's context has lost its values")
			}
			_, _ = io.WriteString(w, "done")
		})
		hangUp(t, site, "k", running)
		if s := receive(t, stored, "the settlement"); s.State != store.Completed {
			t.Errorf("stored is %v", s.State)
		}
		go func() { // the next request's context ends, too
			for range gone {
			}
		}()
		site.want(site.post("k", "hello"), 200, "done")
	})
}

func TestDetach_LeaseLost_EndsContext(t *testing.T) {
	st := &faultyStore{Store: memstore.New(nil)}
	frozen := &noRenewal{st}
	ended := make(chan error, 1)
	site := newSite(t, setup{store: frozen, guard: semel.Options{Lease: 50e6}, options: semelhttp.Options{Detach: true}}, func(w http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		ended <- context.Cause(r.Context())
		w.WriteHeader(201)
	})
	_ = site.post("k", "hello")
	if err := receive(t, ended, "the end of the lease"); !errors.Is(err, semel.ErrLeaseLost) {
		t.Errorf("the context ended with %v", err)
	}
}

// noRenewal is a store whose renewals fail.
type noRenewal struct{ store.Store }

func (noRenewal) Renew(context.Context, []store.Lease, time.Duration) ([]error, error) {
	return nil, errors.New("down")
}

func TestHangup_BeforeHandler_LeavesKeyFree(t *testing.T) {
	for name, detach := range map[string]bool{"attached": false, "detached": true} {
		t.Run(name, func(t *testing.T) {
			ctx, leave := context.WithCancel(t.Context())
			st := &faultyStore{Store: memstore.New(nil), claim: func(store.Proposal) error { leave(); return nil }}
			g := newGuard(t, st, &semel.Options{OnDoubt: semel.Park})
			once, err := semelhttp.Middleware(g, byAccount, &semelhttp.Options{Operation: paymentsOperation, Detach: detach})
			if err != nil {
				t.Fatal(err)
			}
			runs := 0
			h := once(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { runs++; w.WriteHeader(200) }))
			do := func(ctx context.Context) int { return serve(t, ctx, h, "k").Code }
			do(ctx)
			if runs != 0 {
				t.Fatal("the handler ran for nobody")
			}
			poll(t, "the key to be free", func() bool { return do(t.Context()) == 200 })
			if runs != 1 {
				t.Errorf("the handler ran %d times", runs)
			}
		})
	}
}

func TestDetach_ClientLeavesBeforeHandler_IsStoreUnavailable(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	last := runnerFunc(func(ctx context.Context, g *semel.Guard, call semel.Call, fn semel.Handler) (semel.Result, error) {
		return g.Run(ctx, call, func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
			leave()
			<-ctx.Done()
			return fn(ctx, x)
		})
	})
	var told []string
	once, err := semelhttp.Middleware(last.with(newGuard(t, nil, nil)), byAccount, &semelhttp.Options{
		Operation: paymentsOperation,
		Detach:    true,
		Refuse:    func(_ http.ResponseWriter, _ *http.Request, p semelhttp.Problem) { told = append(told, p.Code) },
	})
	if err != nil {
		t.Fatal(err)
	}
	runs := 0
	serve(t, ctx, once(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { runs++ })), "k")
	if runs != 0 || len(told) != 1 || told[0] != semelhttp.CodeStoreUnavailable {
		t.Errorf("the handler ran %d times, and the refusals are %v", runs, told)
	}
}
