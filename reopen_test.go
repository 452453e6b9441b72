package semel_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

func TestReopen_FailedCall_RunsAgain(t *testing.T) {
	g, err := semel.New(memstore.New(nil), &semel.Options{MaxAttempts: 1})
	if err != nil {
		t.Fatal(err)
	}
	call := semel.Call{Operation: "op", Tenant: semel.Shared, Key: "k", Payload: semel.NoPayload()}
	runs, fail := 0, true
	run := func() error {
		return semel.Once(t.Context(), g, call, func(context.Context, *semel.Execution) error {
			if runs++; fail {
				return errors.New("the bank is down")
			}
			return nil
		})
	}
	_, _ = run(), run()
	seen, err := g.Get(t.Context(), call)
	if err != nil || seen.State != store.Failed || runs != 1 {
		t.Fatalf("it is %v after %d runs, error %v", seen.State, runs, err)
	}
	if err := g.Reopen(t.Context(), seen, " "); !errors.Is(err, semel.ErrInvalid) {
		t.Errorf("without a reason: %v", err)
	}
	old := seen
	old.Fence--
	if err := g.Reopen(t.Context(), old, "ann: test"); !errors.Is(err, store.ErrChanged) {
		t.Errorf("an earlier fence: %v", err)
	}
	if err := g.Reopen(t.Context(), seen, "ann: test"); err != nil {
		t.Fatal(err)
	}
	now, err := g.Get(t.Context(), call)
	if err != nil || now.LastError != "reopened: ann: test" || now.Attempt != 0 || !now.Created.Equal(seen.Created) {
		t.Errorf("the record has error %q, attempt %d, created %v (was %v): %v", now.LastError, now.Attempt, now.Created, seen.Created, err)
	}
	if err := g.Reopen(t.Context(), seen, "ann: test"); !errors.Is(err, store.ErrChanged) {
		t.Errorf("a second time: %v", err)
	}
	fail = false
	if err := run(); err != nil || runs != 2 {
		t.Errorf("the next call: %v after %d runs", err, runs)
	}
	done, _ := g.Get(t.Context(), call)
	if err := g.Reopen(t.Context(), done, "ann: test"); !errors.Is(err, store.ErrChanged) {
		t.Errorf("a completed call: %v", err)
	}
}

// A verdict, or a reopening, would leave the steps of a saga as they are.
func TestResolve_Saga_VerdictAndReopeningAreRefused(t *testing.T) {
	g, err := semel.New(memstore.New(nil), &semel.Options{OnDoubt: semel.Park})
	if err != nil {
		t.Fatal(err)
	}
	seen := store.Record{Key: saga.Key("payout", "ann", "e1"), State: store.Unknown}
	for _, v := range []semel.Verdict{semel.Happened(1), semel.DidNotHappen(), semel.FailedForGood(&semel.Failure{Message: "lost"})} {
		if err := g.Resolve(t.Context(), seen, v); !errors.Is(err, semel.ErrInvalid) || !strings.Contains(err.Error(), "use saga.Intervene") {
			t.Errorf("verdict %+v: %v", v, err)
		}
	}
	seen.State = store.Failed
	if err := g.Reopen(t.Context(), seen, "ann: test"); !errors.Is(err, semel.ErrInvalid) || !strings.Contains(err.Error(), "start one with another id") {
		t.Errorf("reopened: %v", err)
	}
}
