package pgstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/internal/cuttest"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// settleAll runs a batch until each call is done, like a broker that redelivers
// unacknowledged messages, and counts the tries.
func settleAll(t *testing.T, ctx context.Context, run func(context.Context, []semel.Call) []BatchResult, calls []semel.Call) (tries int) {
	for ; len(calls) > 0 && ctx.Err() == nil; tries++ {
		var left []semel.Call
		for i, e := range run(ctx, calls) {
			switch {
			case e.Err == nil:
			case errors.Is(e.Err, semel.ErrInProgress), errors.Is(e.Err, semel.ErrUnavailable), errors.Is(e.Err, semel.ErrCanceled):
				left = append(left, calls[i])
			default:
				t.Errorf("%q: %v", calls[i].Key, e.Err)
			}
		}
		if calls = left; len(calls) > 0 {
			select {
			case <-time.After(5 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	}
	return tries
}

// Batches with the same keys in opposite order, in every form: none waits for
// another, so none can dead-lock, and each key is done once.
func TestRunBatch_OppositeOrder_NoDeadlock(t *testing.T) {
	p := newShop(t, openNew(t, nil), nil)
	before := ask[int](t, p.s.ownPool, "SELECT deadlocks::int FROM pg_stat_database WHERE datname = current_database()")
	const keys, rounds = 60, 5
	for round := range rounds {
		var all sync.WaitGroup
		for g := range 12 {
			all.Go(func() {
				w := newWorker(p)
				order := numbered(fmt.Sprint(round, "/"), keys)
				switch g / 3 {
				case 1:
					slices.Reverse(order)
				case 2, 3:
					rand.Shuffle(keys, func(i, j int) { order[i], order[j] = order[j], order[i] })
				}
				settleAll(t, t.Context(), []func(context.Context, []semel.Call) []BatchResult{w.runAll, w.prefetched}[g%2], poll(order...))
			})
		}
		all.Go(func() { // leased calls take no advisory lock, and meet the same rows
			g, err := semel.New(p.s, nil)
			if err != nil {
				t.Error(err)
				return
			}
			for _, k := range numbered(fmt.Sprint(round, "/"), 10) {
				_, _ = g.Run(t.Context(), call("leased "+k), func(context.Context, *semel.Execution) (store.Outcome, error) { return store.Outcome{}, nil })
			}
		})
		all.Wait()
	}
	got := p.payments(t)
	if want := rounds * keys; len(got) != want || len(slices.Compact(got)) != want {
		t.Errorf("%d effects of %d keys", len(got), want)
	}
	mustExec(t, p.s.ownPool, "SELECT pg_stat_force_next_flush()")
	if n := ask[int](t, p.s.ownPool, "SELECT deadlocks::int FROM pg_stat_database WHERE datname = current_database()"); n != before {
		t.Errorf("the server counted %d dead-locks", n-before)
	}
}

// Two batches whose handlers lock each other's rows: the server ends one, and
// it is run again.
func TestRunBatch_HandlersDeadlock_RunsAgain(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), nil)
	mustExec(t, p.s.appPool, "INSERT INTO "+p.table+" VALUES ('x'), ('y')")
	var meet, all sync.WaitGroup
	meet.Add(2)
	var runs atomic.Int64
	for i, order := range [][2]string{{"x", "y"}, {"y", "x"}} {
		all.Go(func() {
			first := true
			calls := poll(fmt.Sprint(i, "a"), fmt.Sprint(i, "b"))
			ends := p.a.RunBatch(t.Context(), calls, func(ctx context.Context, newCalls []*PendingCall) error {
				runs.Add(1)
				tx, _ := TxFrom(ctx)
				for n := range newCalls {
					if _, err := tx.Exec(ctx, "UPDATE "+p.table+" SET key = key WHERE key = $1", order[n]); err != nil {
						return err
					}
					if n == 0 && first {
						first = false
						meet.Done()
						meet.Wait()
					}
				}
				return nil
			})
			for n, e := range ends {
				if e.Err != nil {
					t.Errorf("batch %d, call %d: %v", i, n, e.Err)
				}
			}
		})
	}
	all.Wait()
	if n := runs.Load(); n < 3 { // more if the server ended both
		t.Errorf("handlers ran %d times, want 2 and at least 1 again", n)
	}
	for _, key := range []string{"0a", "0b", "1a", "1b"} {
		if r, err := p.record(t, key); err != nil || r.Attempt != 1 {
			t.Errorf("the record of %s: attempt %d, error %v", key, r.Attempt, err)
		}
	}
}

// A batch that the server refuses repeatedly runs in halves.
func TestRunBatch_RefusedRepeatedly_Splits(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), nil)
	raise := p.s.quoted() + ".raise()"
	mustExec(t, p.s.appPool, "CREATE FUNCTION "+raise+" RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF (SELECT count(*) FROM "+p.table+") >= 3 THEN RAISE EXCEPTION 'too many at once' USING ERRCODE = '40001'; END IF; RETURN NULL; END $$")
	mustExec(t, p.s.appPool, "CREATE TRIGGER raise AFTER INSERT ON "+p.table+" FOR EACH ROW EXECUTE FUNCTION "+raise)
	sizes := []int{}
	calls := poll(numbered("k", 4)...)
	ends := p.a.RunBatch(t.Context(), calls, func(ctx context.Context, newCalls []*PendingCall) error {
		sizes = append(sizes, len(newCalls))
		tx, _ := TxFrom(ctx)
		if _, err := tx.Exec(ctx, "DELETE FROM "+p.table); err != nil {
			return err
		}
		for _, f := range newCalls {
			if _, err := p.pay(f.Execution.Key(), nil)(ctx, f.Execution, tx); err != nil {
				return err
			}
		}
		return nil
	})
	for i, e := range ends {
		if e.Err != nil {
			t.Errorf("call %d: %v", i, e.Err)
		}
	}
	if want := []int{4, 4, 4, 2, 2}; !slices.Equal(sizes, want) {
		t.Errorf("the handler had %v calls, want %v", sizes, want)
	}
}

// A connection that is cut, at any statement of a batch, before or after the
// server has carried it out: each effect is there once in the end.
func TestRunBatch_ConnectionCut_EffectsOnce(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]bool{"after": true, "before": false} {
		t.Run(name, func(t *testing.T) {
			first := openNew(t, nil)
			c, through := cuttest.New(t, pgtest.URL(t), after)
			s := openThrough(t, first, through)
			w := newWorker(newShop(t, s, nil))
			var want []string
			for i, at := range []string{"pg_try_advisory", "payment", "nullif(coalesce(u.until", "COMMIT"} {
				keys := numbered(fmt.Sprint(i, "/"), 20)
				want = append(want, keys...)
				c.At(at)
				tries := settleAll(t, t.Context(), w.runAll, poll(keys...))
				// The outcome of a COMMIT is found out in the first try. If nothing
				// was committed, or the connection is cut in the handler, the batch
				// is split.
				if again := i == 0; again != (tries > 1) {
					t.Errorf("cut at %q: %d tries", at, tries)
				}
			}
			w.p.want(t, slices.Sorted(slices.Values(want))...)
			if n := c.Cuts.Load(); n != 4 {
				t.Errorf("%d cuts, want 4", n)
			}
		})
	}
}

// A caller that leaves in the middle has left nothing.
func TestRunBatch_Canceled_LeavesNothing(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), nil)
	ctx, cancel := context.WithCancel(t.Context())
	calls := poll("a", "b", "c")
	ends := p.a.RunBatch(ctx, calls, func(ctx context.Context, newCalls []*PendingCall) error {
		tx, _ := TxFrom(ctx)
		for _, f := range newCalls {
			if f.Index == 1 {
				cancel()
			}
			if _, err := p.pay(f.Execution.Key(), nil)(ctx, f.Execution, tx); err != nil {
				return err
			}
		}
		return nil
	})
	for i, e := range ends {
		if !errors.Is(e.Err, semel.ErrCanceled) {
			t.Errorf("call %d: %v", i, e.Err)
		}
	}
	p.want(t)
	for _, k := range []string{"a", "b", "c"} {
		if r, err := p.record(t, k); err == nil {
			t.Errorf("%s has a record: %v, attempt %d", k, r.State, r.Attempt)
		}
	}
}
