package semel_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/logtest"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// Whoever sets no Observe still learns of a parked call, because nobody else looks for it. A
// call that runs, and one that the caller has an error of, is not logged. Not parallel, because
// it replaces the default logger.
func TestObserve_NotSet_OnlyTroubleIsLogged(t *testing.T) {
	out := logtest.Capture(t)
	quiet := func(context.Context, semel.Event) {}
	for name, c := range map[string]struct {
		fn      func(context.Context, *semel.Execution) (string, error)
		observe func(context.Context, semel.Event)
		want    string
	}{
		"done":     {func(context.Context, *semel.Execution) (string, error) { return "", nil }, nil, ""},
		"nothing":  {func(context.Context, *semel.Execution) (string, error) { return "", semel.NoEffect(errBoom) }, nil, ""},
		"final":    {func(context.Context, *semel.Execution) (string, error) { return "", semel.Final(errBoom) }, nil, ""},
		"parked":   {func(context.Context, *semel.Execution) (string, error) { return "", errBoom }, nil, `level=WARN msg="semel: parked" operation=pay tenant=ann key=`},
		"observed": {func(context.Context, *semel.Execution) (string, error) { return "", errBoom }, quiet, ""},
	} {
		out.Reset()
		g, err := semel.New(memstore.New(nil), &semel.Options{OnDoubt: semel.Park, Observe: c.observe})
		if err != nil {
			t.Fatal(err)
		}
		call := semel.Call{Operation: "pay", Tenant: "ann", Key: "order-1", Payload: semel.NoPayload()}
		for range 2 { // the duplicate of a parked call has an error, and no line of its own
			_, _ = semel.Do(t.Context(), g, call, c.fn)
		}
		lines := strings.Count(out.String(), "\n")
		if lines > 1 || (lines == 1) != (c.want != "") || !strings.Contains(out.String(), c.want) || strings.Contains(out.String(), "order-1") {
			t.Errorf("%s: the log is %q, want %q", name, out.String(), c.want)
		}
	}
	out.Reset()
	g, err := semel.New(memstore.New(nil), &semel.Options{OnDoubt: semel.Park, Reconcile: func(context.Context, *semel.Execution) (semel.Verdict, error) {
		return semel.Verdict{}, nil // it does not know
	}})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 { // a duplicate asks the reconciler, and so does a timer, each minute for days
		_, _ = semel.Do(t.Context(), g, ann("k"), func(context.Context, *semel.Execution) (string, error) { return "", errBoom })
		_, _ = g.Reconcile(t.Context(), "", 10)
	}
	if n := strings.Count(out.String(), "\n"); n != 1 {
		t.Errorf("a call that stays parked is logged %d times: %q", n, out.String())
	}
	out.Reset()
	st := &absentStore{Store: memstore.New(nil)}
	g, err = semel.New(st, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := semel.Do(t.Context(), g, ann("k"), func(context.Context, *semel.Execution) (string, error) { return "", nil }); !errors.Is(err, semel.ErrUnavailable) || out.String() != "" {
		t.Errorf("an outage: %v, and the log %q", err, out.String())
	}
}

// absentStore is a store that answers no claim.
type absentStore struct{ store.Store }

func (absentStore) Claim(context.Context, store.Proposal) (store.Found, error) {
	return store.Found{}, errBoom
}
