package semel_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

const pay = "pay"

var errBoom = errors.New("boom")

// ann makes a call of the tenant "ann" without a payload.
func ann(key string) semel.Call {
	return semel.Call{Operation: pay, Tenant: "ann", Key: key, Payload: semel.NoPayload()}
}

func guard(t testing.TB, st store.Store, o *semel.Options) *semel.Guard {
	t.Helper()
	g, err := semel.New(st, o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// answer is a handler that returns body.
func answer(body string) semel.Handler {
	return func(context.Context, *semel.Execution) (store.Outcome, error) {
		return store.Outcome{Body: []byte(body)}, nil
	}
}

// fail is a handler that returns an error.
func fail(err error) semel.Handler {
	return func(context.Context, *semel.Execution) (store.Outcome, error) { return store.Outcome{}, err }
}

// never is a handler that must not run.
func never(t testing.TB) semel.Handler {
	return func(context.Context, *semel.Execution) (store.Outcome, error) {
		t.Error("the handler ran")
		return store.Outcome{}, nil
	}
}

func wantBody(t testing.TB, res semel.Result, err error, body string, replayed bool) {
	t.Helper()
	if err != nil || string(res.Body) != body || res.Replayed != replayed {
		t.Fatalf("got %q (replayed %v), %v; want %q (replayed %v)", res.Body, res.Replayed, err, body, replayed)
	}
}

func wantErr(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got error %v, want %v", err, want)
	}
}

func record(t testing.TB, g *semel.Guard, key string) store.Record {
	t.Helper()
	r, err := g.Get(t.Context(), semel.Call{Operation: pay, Tenant: "ann", Key: key})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func wantState(t testing.TB, g *semel.Guard, key string, want store.State) store.Record {
	t.Helper()
	r := record(t, g, key)
	if r.State != want {
		t.Fatalf("the record is %v, want %v (last error %q)", r.State, want, r.LastError)
	}
	return r
}

// fingerprintOf is the fingerprint of a payload in the record of a Guard with options o.
func fingerprintOf(t testing.TB, o *semel.Options, p semel.Payload) store.Fingerprint {
	t.Helper()
	g := guard(t, memstore.New(nil), o)
	if _, err := g.Run(t.Context(), paying("k", p), answer("")); err != nil {
		t.Fatal(err)
	}
	return record(t, g, "k").Fingerprint
}

// paying makes a call of the tenant "ann" with a payload.
func paying(key string, p semel.Payload) semel.Call {
	return semel.Call{Operation: pay, Tenant: "ann", Key: key, Payload: p}
}

// samePayload reports whether a Guard takes two payloads for the same.
func samePayload(t testing.TB, a, b semel.Payload) bool {
	t.Helper()
	g := guard(t, memstore.New(nil), nil)
	if _, err := g.Run(t.Context(), paying("k", a), answer("")); err != nil {
		t.Fatal(err)
	}
	_, err := g.Run(t.Context(), paying("k", b), answer(""))
	if err != nil && !errors.Is(err, semel.ErrMismatch) {
		t.Fatal(err)
	}
	return err == nil
}

type reconciler = func(context.Context, *semel.Execution) (semel.Verdict, error)

// reconcilerOf is a reconciler that returns a verdict and an error.
func reconcilerOf(v semel.Verdict, err error) reconciler {
	return func(context.Context, *semel.Execution) (semel.Verdict, error) { return v, err }
}

// parking makes a Guard with the policy Park and a reconciler.
func parking(t testing.TB, st store.Store, r reconciler) *semel.Guard {
	return guard(t, st, &semel.Options{OnDoubt: semel.Park, Reconcile: r})
}

func reserve(t testing.TB, g *semel.Guard, call semel.Call) semel.Ticket {
	t.Helper()
	ticket, err := g.Reserve(t.Context(), call)
	if err != nil {
		t.Fatal(err)
	}
	return ticket
}

func redeem(t testing.TB, g *semel.Guard, token string) semel.Call {
	t.Helper()
	call, err := g.Redeem(token)
	if err != nil {
		t.Fatal(err)
	}
	return call
}

// waiting makes a call of the tenant "ann" that waits for at most d.
func waiting(key string, d time.Duration) semel.Call {
	c := ann(key)
	c.Wait = d
	return c
}

// runMany makes n calls at the same time and counts their results. The result "one" is
// the right one.
func runMany(ctx context.Context, g *semel.Guard, n int, call semel.Call, fn semel.Handler) (ran, replayed int, errs []error) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			res, err := g.Run(ctx, call, fn)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				errs = append(errs, err)
			case string(res.Body) != "one":
				errs = append(errs, fmt.Errorf("got the body %q, want \"one\"", res.Body))
			case res.Replayed:
				replayed++
			default:
				ran++
			}
		})
	}
	wg.Wait()
	return ran, replayed, errs
}

// slowly is a handler that returns "one" after a second.
func slowly(ctx context.Context, _ *semel.Execution) (store.Outcome, error) {
	select {
	case <-ctx.Done():
	case <-time.After(time.Second):
	}
	return store.Outcome{Body: []byte("one")}, nil
}
