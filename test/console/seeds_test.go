package console

import (
	"context"
	"errors"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store"
)

// inDoubt makes a call whose answer is lost.
func (s *site) inDoubt(t *testing.T, tenant, key string) store.Key {
	t.Helper()
	g, err := semel.New(s.store, &semel.Options{OnDoubt: semel.Park})
	if err != nil {
		t.Fatal(err)
	}
	_, err = g.Run(t.Context(), semel.Call{Operation: "POST /payments", Tenant: tenant, Key: key, Payload: semel.Digest("semelhttp/1", make([]byte, 32))},
		func(context.Context, *semel.Execution) (store.Outcome, error) {
			return store.Outcome{}, errors.New("the answer of the bank was lost")
		})
	if !errors.Is(err, semel.ErrParked) {
		t.Fatalf("the call ended with %v, want it in doubt", err)
	}
	return payment(tenant, key)
}

// stuckOrder starts a saga of which the second step is in doubt.
func (s *site) stuckOrder(t *testing.T, key string) store.Key {
	t.Helper()
	g, err := semel.New(s.store, &semel.Options{Holder: "orders-5c6b/1"})
	if err != nil {
		t.Fatal(err)
	}
	step := func(v string, err error) func(context.Context, saga.At) (string, error) {
		return func(context.Context, saga.At) (string, error) { return v, err }
	}
	undo := func(context.Context, saga.At, string) error { return nil }
	order, err := saga.New(g, saga.Definition[string, string]{
		Name: "order", Steps: []string{"reserve stock", "charge card", "ship"},
		Run: func(ctx context.Context, r *saga.Run, _ string) (string, error) {
			if _, err := saga.Step(ctx, r, "reserve stock", step("shelf 12", nil), undo); err != nil {
				return "", err
			}
			return saga.Step(ctx, r, "charge card", step("", errors.New("the bank did not answer")), undo, saga.Parked())
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := order.Do(t.Context(), "acct-117", key, "2 books"); !errors.Is(err, semel.ErrParked) {
		t.Fatalf("the saga ended with %v, want it stuck", err)
	}
	return saga.Key("order", "acct-117", key)
}

// stuckUndo starts a saga of which a compensation fails.
func (s *site) stuckUndo(t *testing.T, key string) store.Key {
	t.Helper()
	g, err := semel.New(s.store, nil)
	if err != nil {
		t.Fatal(err)
	}
	trip, err := saga.New(g, saga.Definition[string, string]{
		Name: "trip", Steps: []string{"charge"}, UndoAttempts: 1,
		Run: func(ctx context.Context, r *saga.Run, _ string) (string, error) {
			if _, err := saga.Step(ctx, r, "charge", func(context.Context, saga.At) (string, error) { return "charged", nil },
				func(context.Context, saga.At, string) error { return errors.New("the bank is down") }); err != nil {
				return "", err
			}
			return "", semel.Final(errors.New("no seat"))
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := trip.Do(t.Context(), "ann", key, "a seat"); !errors.Is(err, semel.ErrParked) {
		t.Fatalf("the saga ended with %v, want it stuck", err)
	}
	return saga.Key("trip", "ann", key)
}
