package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
)

// waits is a model with a Wait of its own.
func waits(wait func(m *model, ctx context.Context, seen store.Seen) error) func(m *model) *hooks {
	return func(m *model) *hooks {
		return &hooks{model: m, wait: func(ctx context.Context, seen store.Seen) error { return wait(m, ctx, seen) }}
	}
}

// changed waits until a record is not as it was seen.
func (m *model) changed(ctx context.Context, seen store.Seen) error {
	for ; ctx.Err() == nil; <-time.After(time.Millisecond) {
		if f, err := m.Get(ctx, seen.Key); err != nil || f.Record.State != seen.State {
			return err
		}
	}
	return ctx.Err()
}

func TestRun_ModelWithWait_Passes(t *testing.T) {
	for name, wait := range map[string]func(m *model, ctx context.Context, seen store.Seen) error{
		"notifies": (*model).changed,
		"cannot":   func(*model, context.Context, store.Seen) error { return errors.ErrUnsupported },
		"is early": func(m *model, ctx context.Context, seen store.Seen) error {
			<-time.After(100 * time.Millisecond)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := mutantHarness(mutant{make: waits(wait)})
			runChecks(t, &h, waitChecks)
		})
	}
}

var waitMutants = []mutant{
	{"a wait does not end with its context", "wait", waits(func(m *model, ctx context.Context, seen store.Seen) error {
		return m.changed(context.WithoutCancel(ctx), seen)
	})},
	{"a change ends no wait", "wait", waits(func(_ *model, ctx context.Context, _ store.Seen) error {
		<-ctx.Done()
		return ctx.Err()
	})},
	{"a wait that begins after the change does not end", "wait", waits(func(m *model, ctx context.Context, seen store.Seen) error {
		if f, err := m.Get(ctx, seen.Key); err != nil || f.Record.State != seen.State {
			<-ctx.Done()
		}
		return m.changed(ctx, seen)
	})},
	{"a wait returns at once, and says that the record may have changed", "wait", waits(func(*model, context.Context, store.Seen) error { return nil })},
}
