package kafkapg

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/store"
)

// The server refuses what a message wrote only at COMMIT, when those behind it
// are the next to run: they wait all the same.
func TestKeyed_CommitRefused_IsNotOvertaken(t *testing.T) {
	p := newShop(t)
	p.exec(t, "ALTER TABLE "+p.effectTable+" ADD UNIQUE (body) DEFERRABLE INITIALLY DEFERRED")
	p.exec(t, "INSERT INTO "+p.effectTable+" (body) VALUES ('twice')")
	l := p.keyed(t, 3)
	waiting := []string{"first/o", "twice/o", "behind/o", "other"}
	for round := 0; len(waiting) > 0; round++ { // as Serve does with what is held, or to be tried again
		if round == 20 {
			t.Fatalf("%q have no end", waiting)
		}
		batch := named(waiting...)
		var left []string
		for i, r := range l.Handle(t.Context(), batch) {
			switch d := driver.Decide(r, driver.Policy{}); {
			case d.Action == driver.Hold || d.Action == driver.Retry:
				left = append(left, waiting[i])
			case waiting[i] == "twice/o" && d.Reason != driver.ReasonExhausted:
				t.Errorf("what cannot commit results with %v, %v", d.Reason, d.Err)
			case waiting[i] == "behind/o" && slices.Contains(waiting, "twice/o"):
				t.Error("one behind it was done before it")
			}
		}
		waiting = left
	}
	p.wantEffects(t, "twice", "first", "other", "behind")
}

// A message that has no call ends as that, and each of the others as its own.
func TestKeyed_MixedBatch_EachMessageHasItsResult(t *testing.T) {
	p := newShop(t)
	p.errs["bad"] = &semel.Failure{Code: "declined"}
	p.errs["nested"] = &semel.Error{Reason: semel.ErrMismatch, Operation: "another"} // of a call that the handler made
	p.errs["busy"] = semel.NoEffect(&semel.Failure{Code: "busy"})
	l := p.keyed(t, defaultMaxAttempts)
	batch := named("a", "-none", "bad", "b", "nested", "busy")
	wantReasons(t, l.Handle(t.Context(), batch), driver.ReasonDone, driver.ReasonNoKey, driver.ReasonFailed, driver.ReasonDone, driver.ReasonError, driver.ReasonError)
	wantReasons(t, l.Handle(t.Context(), batch), driver.ReasonDuplicate, driver.ReasonNoKey, driver.ReasonFailed, driver.ReasonDuplicate, driver.ReasonError, driver.ReasonError)
	p.wantEffects(t, "a", "b")
}

// A key is in flight elsewhere, as when a member that was frozen is still at it,
// or the CallFunc does not say what a message is: what is behind such a message
// in its lane waits, and other lanes do not.
func TestKeyed_MessageNotDone_IsNotOvertaken(t *testing.T) {
	p := newShop(t)
	l := p.keyed(t, 3)
	call := l.call
	l.call = func(m *consume.Message) (semel.Call, error) {
		if string(m.Body) == "rejected" {
			return semel.Call{}, consume.ErrRejected
		}
		return call(m)
	}
	tx, err := p.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	busy, err := l.identify(named("busy")[0].Message)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.atomic.In(tx).Run(t.Context(), busy, func(context.Context, *semel.Execution) (store.Outcome, error) { return store.Outcome{}, nil }); err != nil {
		t.Fatal(err)
	}
	batch := named("first/o", "busy/o", "behind/o", "free", "rejected/p", "behind that/p", "other/q")
	const done, waits = driver.ReasonDone, driver.ReasonInProgress
	wantReasons(t, l.Handle(t.Context(), batch), done, waits, waits, done, driver.ReasonRejected, waits, done)
	p.wantEffects(t, "first", "free", "other")
	wantReasons(t, l.Handle(t.Context(), named("busy/o", "behind/o", "busy/o", "behind too/o")), waits, waits, waits, waits)
	p.errs["bad"] = errors.New("bad")
	halves := named("busy/o", "bad", "x", "behind/o")
	wantReasons(t, l.Handle(t.Context(), halves), waits, driver.ReasonError, done, waits)
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantReasons(t, l.Handle(t.Context(), batch[:3]), driver.ReasonDuplicate, done, done)
	p.wantEffects(t, "first", "free", "other", "x", "busy", "behind")
}

// A handler hides that a statement of it failed: that is an attempt as any other,
// and the last one ends the message, so that its lane goes on.
func TestKeyed_HandlerHidesFailedStatement_CountsAttempts(t *testing.T) {
	p := newShop(t)
	l := p.keyed(t, 3)
	l.handler = func(ctx context.Context, tx pgx.Tx, ms []*consume.Message) error {
		for _, m := range ms {
			if string(m.Body) == "bad" {
				_, _ = tx.Exec(ctx, "SELECT 1 / 0")
			}
		}
		_ = p.write(ctx, tx, ms)
		return nil
	}
	batch := named("a/o", "bad/o", "behind/o", "other")
	const done, again, waits, failed = driver.ReasonDuplicate, driver.ReasonError, driver.ReasonInProgress, driver.ReasonExhausted
	wantReasons(t, l.Handle(t.Context(), batch), driver.ReasonDone, waits, waits, driver.ReasonDone)
	for attempt, want := range []driver.Reason{again, again, failed} {
		results := l.Handle(t.Context(), batch)
		wantReasons(t, results, done, want, waits, done)
		if got := results[1].Attempt; got != attempt+1 {
			t.Errorf("it is attempt %d, want %d", got, attempt+1)
		}
	}
	wantReasons(t, l.Handle(t.Context(), batch), done, failed, driver.ReasonDone, done)
	p.wantEffects(t, "a", "other", "behind")
}
