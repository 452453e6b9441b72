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
	"github.com/semel-go/semel/store/pgstore"
)

// The server refuses a message's writes only at COMMIT, when the next messages are
// about to run. A later message with its order key still waits.
func TestKeyed_CommitRefused_IsNotOvertaken(t *testing.T) {
	p := newShop(t)
	p.exec(t, "ALTER TABLE "+p.effectTable+" ADD UNIQUE (body) DEFERRABLE INITIALLY DEFERRED")
	p.exec(t, "INSERT INTO "+p.effectTable+" (body) VALUES ('twice')")
	l := p.keyed(t, 3)
	waiting := []string{"first/o", "twice/o", "later/o", "other"}
	for round := 0; len(waiting) > 0; round++ { // handle the unfinished messages again, as Serve does
		if round == 20 {
			t.Fatalf("%q are still not done", waiting)
		}
		batch := named(waiting...)
		var left []string
		for i, r := range l.Handle(t.Context(), batch) {
			switch d := driver.Decide(r, driver.Policy{}); {
			case d.Action == driver.Hold || d.Action == driver.Retry:
				left = append(left, waiting[i])
			case waiting[i] == "twice/o" && d.Reason != driver.ReasonExhausted:
				t.Errorf("the message that cannot commit ended with %v, %v", d.Reason, d.Err)
			case waiting[i] == "later/o" && slices.Contains(waiting, "twice/o"):
				t.Error("the later message was done before the message that cannot commit")
			}
		}
		waiting = left
	}
	p.wantEffects(t, "twice", "first", "other", "later")
}

// A message whose transactions end with a crash of the server leaves no record of its
// attempts. The ledger counts them.
func TestKeyed_ServerCrashes_EndsAfterMaxAttempts(t *testing.T) {
	p := newShop(t)
	l := p.keyed(t, 3)
	batch := named("bad/o")
	for range 3 {
		b := l.newBatch(batch, l.identify)
		b.attempts[0] = 1
		b.result(0, pgstore.BatchResult{Err: semel.ErrUnavailable})
	}
	wantReasons(t, l.Handle(t.Context(), batch), driver.ReasonExhausted)
	p.wantEffects(t)
}

// Each message of a batch gets its own result, also if another one has no key or
// fails.
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

// The key of a message is in progress elsewhere, for example in a member that was
// frozen, or the CallFunc rejects a message. Later messages with its order key
// wait, and others do not.
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
	batch := named("first/o", "busy/o", "later/o", "free", "rejected/p", "later in p/p", "other/q")
	const done, waits = driver.ReasonDone, driver.ReasonInProgress
	wantReasons(t, l.Handle(t.Context(), batch), done, waits, waits, done, driver.ReasonRejected, waits, done)
	p.wantEffects(t, "first", "free", "other")
	wantReasons(t, l.Handle(t.Context(), named("busy/o", "later/o", "busy/o", "later too/o")), waits, waits, waits, waits)
	p.errs["bad"] = errors.New("bad")
	halves := named("busy/o", "bad", "x", "later/o")
	wantReasons(t, l.Handle(t.Context(), halves), waits, driver.ReasonError, done, waits)
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantReasons(t, l.Handle(t.Context(), batch[:3]), driver.ReasonDuplicate, done, done)
	p.wantEffects(t, "first", "free", "other", "x", "busy", "later")
}

// A handler that hides a failed statement has made an attempt. The last attempt
// ends the message, so that later messages with its order key can run.
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
	batch := named("a/o", "bad/o", "later/o", "other")
	const duplicate, again, waits, failed = driver.ReasonDuplicate, driver.ReasonError, driver.ReasonInProgress, driver.ReasonExhausted
	wantReasons(t, l.Handle(t.Context(), batch), driver.ReasonDone, waits, waits, driver.ReasonDone)
	for attempt, want := range []driver.Reason{again, again, failed} {
		results := l.Handle(t.Context(), batch)
		wantReasons(t, results, duplicate, want, waits, duplicate)
		if got := results[1].Attempt; got != attempt+1 {
			t.Errorf("it is attempt %d, want %d", got, attempt+1)
		}
	}
	wantReasons(t, l.Handle(t.Context(), batch), duplicate, failed, driver.ReasonDone, duplicate)
	p.wantEffects(t, "a", "other", "later")
}
