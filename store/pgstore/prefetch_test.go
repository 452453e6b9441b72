package pgstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// rows is a handler that writes a row for each key, and counts the runs.
func (w *worker) rows(calls []semel.Call) func(context.Context, []*PendingCall) error {
	return func(ctx context.Context, newCalls []*PendingCall) error {
		tx, _ := TxFrom(ctx)
		keys := make([]string, len(newCalls))
		for i, f := range newCalls {
			keys[i] = calls[f.Index].Key
			w.runs[keys[i]]++
		}
		_, err := tx.Exec(ctx, "INSERT INTO "+w.p.table+" SELECT unnest($1::text[])", keys)
		return err
	}
}

// prefetched runs a batch as two. The second is prefetched while the first
// runs.
func (w *worker) prefetched(ctx context.Context, calls []semel.Call) []BatchResult {
	q, half := w.p.a.Prefetcher(), len(calls)/2
	first, second := q.Prefetch(ctx, calls[:half]), q.Prefetch(ctx, calls[half:])
	return append(first.Run(ctx, w.rows(calls[:half])), second.Run(ctx, w.rows(calls[half:]))...)
}

// waitPrefetched waits for the look of a batch, and reports whether it holds its keys.
func (p *PrefetchedBatch) waitPrefetched() bool {
	p.prefetcher.mu.Lock()
	defer p.prefetcher.mu.Unlock()
	for p.inFlight {
		p.prefetcher.prefetchEnded.Wait()
	}
	return p.tx != nil
}

func wantDone(t *testing.T, ends []BatchResult, replayed ...bool) {
	t.Helper()
	for i, e := range ends {
		if e.Err != nil || e.Replayed != replayed[i] {
			t.Errorf("call %d: replayed %v, %v; want %v", i, e.Replayed, e.Err, replayed[i])
		}
	}
}

// throughBoth runs a test with a direct connection to the server, and through a
// PgBouncer that gives each transaction another connection.
func throughBoth(t *testing.T, test func(t *testing.T, p *shop)) {
	t.Run("direct", func(t *testing.T) { test(t, newShop(t, openNew(t, nil), nil)) })
	t.Run("PgBouncer", func(t *testing.T) {
		at := pgtest.URL(t)
		test(t, newShop(t, openAt(t, pgtest.Bouncer(t, at), &Options{Schema: newSchema(t, at)}), nil))
	})
}

func TestPrefetch_KeyInEarlierBatch_SeesItsResult(t *testing.T) {
	t.Parallel()
	throughBoth(t, func(t *testing.T, p *shop) {
		w, q := newWorker(p), p.a.Prefetcher()
		first, second := poll("a", "b"), poll("b", "c", "b")
		n := q.Prefetch(t.Context(), first)
		var behind *PrefetchedBatch
		ends := n.Run(t.Context(), func(ctx context.Context, newCalls []*PendingCall) error {
			if behind = q.Prefetch(t.Context(), second); !behind.waitPrefetched() {
				t.Error("there was no look ahead")
			}
			return w.rows(first)(ctx, newCalls)
		})
		wantDone(t, ends, false, false)
		wantDone(t, behind.Run(t.Context(), w.rows(second)), true, false, true)
		for _, key := range []string{"a", "b", "c"} {
			if w.runs[key] != 1 {
				t.Errorf("%s ran %d times", key, w.runs[key])
			}
		}
		p.want(t, "a", "b", "c")
	})
}

// A record that was made ahead equals the record of a batch without a look, by
// whichever statement, on a new connection and on one that was used before.
func TestPrefetch_Record_SameAsWithout(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, &Options{clock: "1700000000000000"}), nil)
	w := newWorker(p)
	row := func() string {
		return ask[string](t, p.s.appPool, "SELECT (to_jsonb(r) - 'owner')::text FROM "+p.s.quoted()+".semel_record r")
	}
	named := func(key string) semel.Call {
		return semel.Call{Operation: "pay", Tenant: "ann", Key: key, Payload: semel.Bytes([]byte("body"))}
	}
	calls := []semel.Call{named("k"), {}}
	p.a.RunBatch(t.Context(), calls, w.rows(calls))
	want := row()
	p.holdKey(t, "held")
	for _, reset := range []bool{true, false} {
		for _, by := range []struct {
			locked, beside bool
		}{{false, false}, {true, false}, {false, true}} {
			mustExec(t, p.s.appPool, "DELETE FROM "+p.s.quoted()+".semel_record")
			if reset {
				p.s.appPool.Reset()
			}
			p.a.foundLockedKey.Store(by.locked)
			calls := calls
			if by.beside {
				calls = append(slices.Clone(calls), named("held"))
			}
			n := p.a.Prefetcher().Prefetch(t.Context(), calls)
			if !n.waitPrefetched() || n.batch.prefetch.written != 1 {
				t.Fatal("nothing is recorded ahead")
			}
			ends := n.Run(t.Context(), w.rows(calls))
			if got := row(); got != want || ends[0].Err != nil || !errors.Is(ends[1].Err, semel.ErrInvalid) {
				t.Errorf("new connections %v, after a locked key %v, beside another's %v: it is %s,\nnot %s; %v, %v", reset, by.locked, by.beside, got, want, ends[0].Err, ends[1].Err)
			}
		}
	}
}

func TestPrefetch_Dropped_LeavesNothing(t *testing.T) {
	t.Parallel()
	throughBoth(t, func(t *testing.T, p *shop) {
		n := p.a.Prefetcher().Prefetch(t.Context(), poll("k", "l"))
		if !n.waitPrefetched() {
			t.Fatal("there was no look")
		}
		if _, err := Do(t.Context(), p.a, call("k"), p.pay("k", nil)); !errors.Is(err, semel.ErrInProgress) {
			t.Errorf("beside the look: %v", err)
		}
		n.Drop()
		n.Drop()
		if _, err := Do(t.Context(), p.a, call("k"), p.pay("k", nil)); err != nil {
			t.Error(err)
		}
	})
}

// Between two tries of a batch its keys are not locked. The next batch must not get
// them then.
func TestPrefetch_EarlierBatchRunsAgain_OrderKept(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]error{"the handler failed": errors.New("not now"), "the server refused": &pgconn.PgError{Code: "40001"}} {
		for _, late := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", looked for late: ", late), func(t *testing.T) {
				p := newShop(t, openNew(t, nil), nil)
				w, q := newWorker(p), p.a.Prefetcher()
				first, second, third := poll("a", "b", "c"), poll("x", "b", "y"), poll("c", "b", "z", "x")
				n := q.Prefetch(t.Context(), first)
				var behind, last *PrefetchedBatch
				look := func() {
					behind, last = q.Prefetch(t.Context(), second), q.Prefetch(t.Context(), third)
					if !behind.waitPrefetched() || !last.waitPrefetched() {
						t.Error("there was no look ahead")
					}
				}
				runs := 0
				ends := n.Run(t.Context(), func(ctx context.Context, newCalls []*PendingCall) error {
					runs++
					if runs == 1 && !late || runs == 2 && late {
						look()
					}
					if runs == 1 {
						return fault
					}
					if runs == 2 {
						for key, want := range map[string]error{"x": semel.ErrInProgress, "z": semel.ErrInProgress, "free": nil} {
							if _, err := Do(t.Context(), p.a, call(key), p.pay(key, nil)); !errors.Is(err, want) {
								t.Errorf("%s beside the looks: %v", key, err)
							}
						}
					}
					return w.rows(first)(ctx, newCalls)
				})
				wantDone(t, ends, false, false, false)
				wantDone(t, behind.Run(t.Context(), w.rows(second)), false, true, false)
				wantDone(t, last.Run(t.Context(), w.rows(third)), true, true, false, true)
				p.want(t, "a", "b", "c", "free", "x", "y", "z")
			})
		}
	}
}

// The keys of the earlier batch are not known, so the later batch is not prefetched.
func TestPrefetch_EarlierBatchNotPrefetched_Skipped(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), nil)
	w, q := newWorker(p), p.a.Prefetcher()
	first, second := poll("a"), poll("a", "b")
	n := q.Prefetch(t.Context(), first)
	behind := q.Prefetch(t.Context(), second)
	third := q.Prefetch(t.Context(), poll("c", "d"))
	if n.waitPrefetched() || behind.waitPrefetched() || third.waitPrefetched() {
		t.Error("there was a look")
	}
	wantDone(t, n.Run(t.Context(), w.rows(first)), false)
	wantDone(t, behind.Run(t.Context(), w.rows(second)), true, false)
	third.Drop()
	again := q.Prefetch(t.Context(), poll("c", "d"))
	if !again.waitPrefetched() {
		t.Error("there is none when that has ended")
	}
	again.Drop()
}

// A look that cannot be, or is not good any more, is made up for.
func TestPrefetch_Fails_BatchRuns(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(p *shop, n *PrefetchedBatch){
		"too long ago": func(_ *shop, n *PrefetchedBatch) {
			n.prefetcher.mu.Lock()
			defer n.prefetcher.mu.Unlock()
			n.dropPrefetch()
		},
		"the connection broke": func(_ *shop, n *PrefetchedBatch) { _ = n.tx.conn.Conn().Close(context.Background()) },
		"savepoints":           func(p *shop, _ *PrefetchedBatch) { p.a.savepointBatches.Store(1) },
	} {
		t.Run(name, func(t *testing.T) {
			p := newShop(t, openNew(t, nil), nil)
			w, calls := newWorker(p), poll("a", "b")
			n := p.a.Prefetcher().Prefetch(t.Context(), calls)
			if !n.waitPrefetched() {
				t.Fatal("there was no look")
			}
			spoil(p, n)
			ends := n.Run(t.Context(), w.rows(calls))
			wantDone(t, ends, false, false)
			p.want(t, "a", "b")
		})
	}
}

// A look that nobody takes gives its keys and its connection back.
func TestPrefetch_NotRun_EndsAfterTimeout(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), nil)
	p.a.prefetchTimeout = 3 * time.Second
	n := p.a.Prefetcher().Prefetch(t.Context(), poll("k", "l"))
	if !n.waitPrefetched() {
		t.Fatal("there was no look")
	}
	waitFor(t, "the look is over", func() bool { return !n.waitPrefetched() && p.s.appPool.Stat().AcquiredConns() == 0 })
	if _, err := Do(t.Context(), p.a, call("k"), p.pay("k", nil)); err != nil {
		t.Error(err)
	}
}

// With few connections there is no look, and nothing waits for itself.
func TestPrefetch_PoolOfOne_BatchRuns(t *testing.T) {
	t.Parallel()
	for _, conns := range []int{1, 2, 3} {
		t.Run(fmt.Sprint(conns), func(t *testing.T) {
			at := pgtest.URL(t)
			cfg, err := pgxpool.ParseConfig(at)
			if err != nil {
				t.Fatal(err)
			}
			pool, err := pgxpool.NewWithConfig(t.Context(), sized(cfg, conns))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(pool.Close)
			s, err := New(t.Context(), pool, &Options{Schema: newSchema(t, at), Connections: 3})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			p := newShop(t, s, nil)
			w, q := newWorker(p), p.a.Prefetcher()
			first, second := poll("a", "b"), poll("b", "c")
			n := q.Prefetch(t.Context(), first)
			behind := q.Prefetch(t.Context(), second)
			wantDone(t, n.Run(t.Context(), w.rows(first)), false, false)
			wantDone(t, behind.Run(t.Context(), w.rows(second)), true, false)
			p.want(t, "a", "b", "c")
		})
	}
}

// The handler sets an outcome that differs from the inserted record, so it runs again.
func TestPrefetch_HandlerSetsOutcome_Stored(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), nil)
	w, q, calls := newWorker(p), p.a.Prefetcher(), poll("a", "b", "c")
	declined := &semel.Failure{Code: "declined"}
	ends := q.Prefetch(t.Context(), calls).Run(t.Context(), func(ctx context.Context, newCalls []*PendingCall) error {
		for _, f := range newCalls {
			switch calls[f.Index].Key {
			case "a":
				f.Outcome = store.Outcome{Code: 7}
			case "b":
				f.Err = declined
			}
		}
		return w.rows(calls)(ctx, newCalls)
	})
	if ends[0].Err != nil || !errors.Is(ends[1].Err, declined) || ends[2].Err != nil {
		t.Fatalf("they end with %v, %v, %v", ends[0].Err, ends[1].Err, ends[2].Err)
	}
	ra, _ := p.record(t, "a")
	rb, _ := p.record(t, "b")
	if ra.Outcome.Code != 7 || rb.State != store.Failed {
		t.Errorf("the records are %+v and %+v", ra, rb)
	}
}

// Old keys among new ones are found, and so is a key that is locked elsewhere.
func TestPrefetch_OldKeyAmongNew_Found(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), nil)
	w, q := newWorker(p), p.a.Prefetcher()
	for i := range 2 {
		calls := poll(fmt.Sprint("k", i), fmt.Sprint("l", i))
		wantDone(t, q.Prefetch(t.Context(), calls).Run(t.Context(), w.rows(calls)), false, false)
	}
	calls := poll("k1", "new", "l0")
	wantDone(t, q.Prefetch(t.Context(), calls).Run(t.Context(), w.rows(calls)), true, false, true)
	tx, err := p.s.appPool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if err := semel.Once(t.Context(), p.a.In(tx), call("held"), func(context.Context, *semel.Execution) error { return nil }); err != nil {
		t.Fatal(err)
	}
	calls = poll("held", "other")
	ends := q.Prefetch(t.Context(), calls).Run(t.Context(), w.rows(calls))
	if !errors.Is(ends[0].Err, semel.ErrInProgress) || ends[1].Err != nil || w.runs["held"] != 0 {
		t.Errorf("beside another transaction: %v, %v", ends[0].Err, ends[1].Err)
	}
	for key, n := range w.runs {
		if n != 1 {
			t.Errorf("%s ran %d times", key, n)
		}
	}
}
