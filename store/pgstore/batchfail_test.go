package pgstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/internal/cuttest"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// handlerExcept is a handler of many that does the work of all, but of those with an error
// for their key. It counts the runs of each, and keeps the sizes.
func (w *worker) handlerExcept(sizes *[]int, says map[string]error) func(context.Context, []*PendingCall) error {
	return func(ctx context.Context, newCalls []*PendingCall) error {
		*sizes = append(*sizes, len(newCalls))
		tx, _ := TxFrom(ctx)
		for _, f := range newCalls {
			key := f.Execution.Key()
			w.runs[key]++
			if f.Err = says[key]; f.Err != nil {
				continue
			}
			if _, err := tx.Exec(ctx, "INSERT INTO "+w.p.table+" VALUES ($1)", key); err != nil {
				return err
			}
		}
		return nil
	}
}

// One that had failed before, or has expired, replaces its record ahead of the
// handler. To undo that would undo what the handler wrote for the others, who
// would be recorded as done all the same.
func TestRunBatch_OneCallUndone_OthersKept(t *testing.T) {
	t.Parallel()
	for name, said := range map[string]error{"a failed attempt": errors.New("poison"), "no effect": semel.NoEffect(errors.New("not now")), "a failure": &semel.Failure{Message: "declined"}} {
		for _, ahead := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", ahead"}[ahead], func(t *testing.T) {
				p := newShop(t, openNew(t, nil), nil)
				w, sizes := newWorker(p), []int{}
				run := func(calls []semel.Call, says map[string]error) []BatchResult {
					if ahead {
						return p.a.Prefetcher().Prefetch(t.Context(), calls).Run(t.Context(), w.handlerExcept(&sizes, says))
					}
					return p.a.RunBatch(t.Context(), calls, w.handlerExcept(&sizes, says))
				}
				poison := errors.New("poison")
				for _, e := range run(poll("bad", "good", "worse"), map[string]error{"bad": poison, "good": poison, "worse": poison}) {
					if !errors.Is(e.Err, poison) {
						t.Fatal(e.Err)
					}
				}
				p.a.savepointBatches.Store(0) // for a look ahead
				calls := poll("a", "bad", "b", "good", "worse", "c")
				for i, e := range run(calls, map[string]error{"bad": said, "worse": said}) {
					if fails := i == 1 || i == 4; fails != (e.Err != nil) || fails && !errors.Is(e.Err, said) {
						t.Errorf("%q: %v", calls[i].Key, e.Err)
					}
				}
				p.want(t, "a", "b", "c", "good")
				for _, c := range calls {
					r, err := p.record(t, c.Key)
					want := store.Record{State: store.Completed, Attempt: 1}
					switch bad := c.Key == "bad" || c.Key == "worse"; {
					case c.Key == "good":
						want.Attempt = 2
					case bad && name == "a failed attempt":
						want = store.Record{State: store.Released, Attempt: 2}
					case bad && name == "no effect":
						want = store.Record{State: store.Released, Attempt: 1}
					case bad:
						want = store.Record{State: store.Failed, Attempt: 2}
					}
					if err != nil || r.State != want.State || r.Attempt != want.Attempt {
						t.Errorf("the record of %q is %v, attempt %d, error %v; want %v, attempt %d", c.Key, r.State, r.Attempt, err, want.State, want.Attempt)
					}
				}
				if name == "a failure" && !slices.Equal(sizes, []int{3, 6}) && !ahead {
					t.Errorf("what is kept made the handler run again: %v", sizes)
				}
			})
		}
	}
}

// A statement that failed unseen has broken the transaction for all, and is the
// fault of one.
func TestRunBatch_HandlerHidesFailure_OneCallFails(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), nil)
	w, sizes := newWorker(p), []int{}
	calls := poll("a", "b", "bad", "c")
	ends := p.a.RunBatch(t.Context(), calls, func(ctx context.Context, newCalls []*PendingCall) error {
		err := w.handlerExcept(&sizes, nil)(ctx, newCalls)
		for _, f := range newCalls {
			if tx, _ := TxFrom(ctx); f.Execution.Key() == "bad" {
				_, _ = tx.Exec(ctx, "SELECT 1 / 0")
			}
		}
		return err
	})
	for i, e := range ends {
		if (calls[i].Key == "bad") != errors.Is(e.Err, errHiddenFailure) {
			t.Errorf("%q: %v", calls[i].Key, e.Err)
		}
	}
	p.want(t, "a", "b", "c")
}

// A handler of many says of a statement that failed whose it was, and returns nil:
// that it hid nothing is seen once the call is alone, which then has its attempt.
func TestRunBatch_StatementFails_AttemptOfCallWithErr(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), &semel.Options{MaxAttempts: 2})
	mustExec(t, p.s.appPool, "ALTER TABLE "+p.table+" ADD CHECK (key <> 'bad')")
	calls := poll("a", "bad", "b")
	for _, want := range []string{"check constraint", "check constraint", "all 2 attempts failed"} {
		ends := p.a.RunBatch(t.Context(), calls, func(ctx context.Context, newCalls []*PendingCall) error {
			tx, _ := TxFrom(ctx)
			for _, f := range newCalls {
				_, f.Err = tx.Exec(ctx, "INSERT INTO "+p.table+" VALUES ($1)", f.Execution.Key())
			}
			return nil
		})
		if ends[0].Err != nil || ends[2].Err != nil || ends[1].Err == nil || !strings.Contains(ends[1].Err.Error(), want) {
			t.Errorf("%v, %v, %v; want %q", ends[0].Err, ends[1].Err, ends[2].Err, want)
		}
	}
	p.want(t, "a", "b")
}

// If one transaction of a batch meets an outage, the later ones do not run, because
// their calls may have to come after its calls.
func TestRunBatch_Outage_LaterCallsNotRun(t *testing.T) {
	t.Parallel()
	for _, n := range []int{4, maxTogether + 1} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			c, through := cuttest.New(t, pgtest.URL(t), false)
			p := newShop(t, openThrough(t, openNew(t, nil), through), nil)
			w, sizes := newWorker(p), []int{}
			var calls []semel.Call
			for i := range n {
				calls = append(calls, poll(itoa(i))...)
			}
			const look = "pg_try_advisory"
			if n > maxTogether {
				c.At(look)
			}
			ends := p.a.RunBatch(t.Context(), calls, func(ctx context.Context, newCalls []*PendingCall) error {
				if err := w.handlerExcept(&sizes, nil)(ctx, newCalls); err != nil {
					return err
				}
				if len(newCalls) == 4 {
					c.At(look)
					return errors.New("one of them is bad") // so the batch is divided
				}
				return nil
			})
			for i, e := range ends {
				if !errors.Is(e.Err, semel.ErrUnavailable) {
					t.Errorf("call %d: %v", i, e.Err)
				}
			}
			if want := map[int][]int{4: {4}, maxTogether + 1: {}}[n]; !slices.Equal(sizes, want) || len(p.payments(t)) != 0 {
				t.Errorf("it was run for %v calls, want %v; %d effects", sizes, want, len(p.payments(t)))
			}
			for i, e := range p.a.RunBatch(t.Context(), calls, w.handlerExcept(&sizes, nil)) {
				if e.Err != nil || e.Replayed {
					t.Errorf("call %d, again: %v, replayed %v", i, e.Err, e.Replayed)
				}
			}
			if got := len(p.payments(t)); got != n {
				t.Errorf("%d effects of %d", got, n)
			}
		})
	}
}
