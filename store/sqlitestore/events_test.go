package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// An event says what has become of a call, and so comes after the commit.
func TestAtomic_Event_SaysWhatWasCommitted(t *testing.T) {
	t.Parallel()
	p := openShop(t, &Options{Pragmas: []string{"foreign_keys = on"}})
	mustExec(t, p.app, "CREATE TABLE parent (id INTEGER PRIMARY KEY)")
	mustExec(t, p.app, "CREATE TABLE child (parent INTEGER REFERENCES parent DEFERRABLE INITIALLY DEFERRED)")
	var outcomes []string
	a, err := NewAtomic(p.s, &semel.Options{Observe: func(_ context.Context, e semel.Event) {
		outcomes = append(outcomes, e.Outcome())
		_, err := p.s.Get(t.Context(), store.Key{Operation: e.Operation, Tenant: e.Tenant, Value: "k"})
		if stored := err == nil; stored != (e.Kind != semel.EventNotStored) {
			t.Errorf("the event says %q, and to read the record: %v", e.Kind, err)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	refused := Once(t.Context(), a, call("k"), func(ctx context.Context, _ *semel.Execution, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO child VALUES (1)")
		return err
	})
	if refused == nil {
		t.Error("the commit was not refused")
	}
	_, first := Do(t.Context(), a, call("k"), pay("k", nil))
	_, again := Do(t.Context(), a, call("k"), pay("k", nil))
	if err := errors.Join(first, again); err != nil {
		t.Error(err)
	}
	if want := []string{"not_stored", "executed", "replayed"}; !slices.Equal(outcomes, want) {
		t.Errorf("the events say %q, want %q", outcomes, want)
	}
}

// An observer that records a metric or writes with its context can do so.
func TestAtomic_Observe_ContextHasNotEnded(t *testing.T) {
	t.Parallel()
	p := openShop(t, nil)
	a, err := NewAtomic(p.s, &semel.Options{Observe: func(ctx context.Context, e semel.Event) {
		if ctx.Err() != nil {
			t.Errorf("%s: %v", e.Kind, context.Cause(ctx))
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Do(t.Context(), a, call("k"), pay("k", nil)); err != nil {
		t.Fatal(err)
	}
}
