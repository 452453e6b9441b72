package saga_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// oneStep is a saga whose only step is charge.
func oneStep(t *testing.T, st store.Store, backoff func(int) time.Duration, charge func() error) *saga.Saga[order, string] {
	t.Helper()
	guard, err := semel.New(st, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := saga.New(guard, saga.Definition[order, string]{
		Name: "order", Steps: []string{"charge"}, Backoff: backoff,
		Run: func(ctx context.Context, r *saga.Run, _ order) (string, error) {
			return saga.Step(ctx, r, "charge", func(context.Context, saga.At) (string, error) { return "ok", charge() }, nil)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A table of pauses that is too short does not end the process of a worker.
func TestWork_BackoffPanics_GoesOnAfterDefault(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, _ *world) {
		runs, pauses := 0, []time.Duration{time.Second, time.Second}
		s := oneStep(t, st, func(n int) time.Duration { return pauses[n-1] }, func() error {
			if runs++; runs < 5 {
				return errors.New("the bank is down")
			}
			return nil
		})
		if err := s.Start(t.Context(), "ann", "1", book); err != nil {
			t.Fatal(err)
		}
		work(t, 5*time.Minute, s)
		if r := record(t, st, "1"); r.State != store.Completed || runs != 5 {
			t.Errorf("the saga is %v after %d runs: %s", r.State, runs, r.LastError)
		}
	})
}

func TestWork_OnErrorPanics_GoesOn(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, _ *world) {
		s := oneStep(t, &refusing{Store: st}, nil, func() error { return nil })
		if err := s.Start(t.Context(), "ann", "1", book); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		reports := 0
		if err := s.Work(ctx, &saga.WorkOptions{OnError: func(context.Context, error) { reports++; panic("boom") }}); err != nil {
			t.Fatal(err)
		}
		if r := record(t, st, "1"); r.State != store.Completed || reports == 0 {
			t.Errorf("the saga is %v after %d reports", r.State, reports)
		}
	})
}
