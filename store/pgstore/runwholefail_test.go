package pgstore

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

func TestRunBatch_OneCallFails_OthersSucceed(t *testing.T) {
	t.Parallel()
	w := newWorker(newShop(t, openNew(t, nil), nil))
	run := w.runAll
	declined := &semel.Failure{Code: "declined", Message: "declined"}
	w.fail["k010"], w.fail["k020"] = errors.New("poison"), declined
	w.fail["k030"] = semel.NoEffect(errors.New("not now"))
	keys := numbered("k", 40)
	calls := poll(keys...)
	want := repeated("", 40)
	want[10], want[20], want[30] = "poison", "declined", "not now"
	wantEnds(t, calls, run(t.Context(), calls), want...)
	good := slices.DeleteFunc(slices.Clone(keys), func(k string) bool { return w.fail[k] != nil })
	w.p.want(t, good...)
	if r, err := w.p.record(t, "k010"); err != nil || r.State != store.Released || r.Attempt != 1 || r.LastError != "poison" {
		t.Errorf("the poison's record is %v, attempt %d, %q, error %v", r.State, r.Attempt, r.LastError, err)
	}
	if r, err := w.p.record(t, "k020"); err != nil || r.State != store.Failed {
		t.Errorf("the failure's record is %v, error %v", r.State, err)
	}
	if _, err := w.p.record(t, "k030"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("what had no effect left a record: %v", err)
	}
	// Again: the poison's second attempt, the failure's replay.
	want = repeated("replayed", 40)
	want[10], want[20], want[30] = "poison", "declined", "not now"
	wantEnds(t, calls, run(t.Context(), calls), want...)
	if r, err := w.p.record(t, "k010"); err != nil || r.Attempt != 2 || r.State != store.Released {
		t.Errorf("then it is %v, attempt %d, error %v", r.State, r.Attempt, err)
	}
	clear(w.fail)
	want[10], want[30], want[20] = "", "", "declined"
	wantEnds(t, calls, run(t.Context(), calls), want...)
	w.p.want(t, slices.Sorted(slices.Values(append(good, "k010", "k030")))...)
}

// A statement that fails breaks the transaction; also if its handler hides it.
func TestRunBatch_StatementFails_OthersSucceed(t *testing.T) {
	t.Parallel()
	w := newWorker(newShop(t, openNew(t, nil), nil))
	run := w.runAll
	mustExec(t, w.p.s.appPool, "ALTER TABLE "+w.p.table+" ADD CHECK (key <> 'k5')")
	calls := poll(numbered("k", 3)...)
	calls = append(calls, call("k5"), call("k9"))
	wantEnds(t, calls, run(t.Context(), calls), "", "", "", "check constraint", "")
	w.p.want(t, "k000", "k001", "k002", "k9")
	w = newWorker(newShop(t, openNew(t, nil), nil))
	calls = poll("a", "bad", "b")
	ends := w.p.a.RunBatch(t.Context(), calls, func(ctx context.Context, newCalls []*PendingCall) error {
		tx, _ := TxFrom(ctx)
		for _, f := range newCalls {
			if f.Index == 1 {
				_, _ = tx.Exec(ctx, "SELECT 1 / 0")
				return nil
			}
			if _, err := w.p.pay(f.Execution.Key(), nil)(ctx, f.Execution, tx); err != nil {
				return err
			}
		}
		return nil
	})
	if ends[0].Err != nil || ends[1].Err == nil || ends[2].Err != nil {
		t.Errorf("%v, %v, %v", ends[0].Err, ends[1].Err, ends[2].Err)
	}
	w.p.want(t, "a", "b")
	if r, err := w.p.record(t, "bad"); err != nil || r.State != store.Released || r.Attempt != 1 {
		t.Errorf("after a swallowed error the record is %v, attempt %d, %v; want a failed attempt", r.State, r.Attempt, err)
	}
}

func TestRunBatch_HandlerSetsErr_OthersSucceed(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), nil)
	poison, declined := errors.New("poison"), &semel.Failure{Message: "declined"}
	runs := 0
	ends := p.a.RunBatch(t.Context(), poll("a", "bad", "no", "b"), func(ctx context.Context, newCalls []*PendingCall) error {
		runs++
		tx, _ := TxFrom(ctx)
		for i, f := range newCalls {
			if f.Index != i {
				t.Errorf("the index of call %d is %d", i, f.Index)
			}
			switch f.Execution.Key() {
			case "bad":
				f.Err = poison
			case "no":
				f.Err = declined
			default:
				if _, err := p.pay(f.Execution.Key(), nil)(ctx, f.Execution, tx); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if ends[0].Err != nil || !errors.Is(ends[1].Err, poison) || ends[2].Err == nil || ends[3].Err != nil || runs != 1 {
		t.Errorf("%v, %v, %v, %v in %d runs", ends[0].Err, ends[1].Err, ends[2].Err, ends[3].Err, runs)
	}
	p.want(t, "a", "b")
	if r, err := p.record(t, "no"); err != nil || r.State != store.Failed {
		t.Errorf("the failure's record is %v, %v", r.State, err)
	}
	if r, err := p.record(t, "bad"); err != nil || r.State != store.Released || r.Attempt != 1 {
		t.Errorf("the poison's record is %v, attempt %d, %v", r.State, r.Attempt, err)
	}
}

func TestRunBatch_AttemptsExhausted_EndsFailed(t *testing.T) {
	t.Parallel()
	w := newWorker(newShop(t, openNew(t, nil), nil))
	run := w.runAll
	a, err := NewAtomic(w.p.s, &semel.Options{MaxAttempts: 2})
	if err != nil {
		t.Fatal(err)
	}
	w.p.a = a
	w.fail["bad"] = errors.New("poison")
	calls := poll("a", "bad", "b")
	wantEnds(t, calls, run(t.Context(), calls), "", "poison", "")
	wantEnds(t, calls, run(t.Context(), calls), "replayed", "poison", "replayed")
	ends := run(t.Context(), calls)
	if f, ok := errors.AsType[*semel.Failure](ends[1].Err); !ok || f.Code != semel.CodeAttemptsExhausted {
		t.Errorf("after the last attempt: %v", ends[1].Err)
	}
}

func TestRunBatch_HandlerPanics_NothingIsLeft(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), nil)
	run := func(keys ...string) {
		defer func() {
			if v := recover(); v != "a bug" {
				t.Errorf("recovered %v", v)
			}
		}()
		p.a.RunBatch(t.Context(), poll(keys...), func(ctx context.Context, newCalls []*PendingCall) error {
			tx, _ := TxFrom(ctx)
			for _, f := range newCalls {
				if _, err := p.pay(f.Execution.Key(), nil)(ctx, f.Execution, tx); err != nil {
					t.Error(err)
				}
			}
			panic("a bug")
		})
	}
	run("a", "bad", "b") // it may be the fault of any
	p.want(t)
	for _, key := range []string{"a", "bad", "b"} {
		if _, err := p.record(t, key); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("the record of %s: %v", key, err)
		}
	}
	run("bad")
	p.want(t)
	if r, err := p.record(t, "bad"); err != nil || r.Attempt != 1 || r.State != store.Released {
		t.Errorf("after a panic the record is %v, attempt %d, error %v", r.State, r.Attempt, err)
	}
	waitFor(t, "all connections are given back", func() bool { return p.s.appPool.Stat().AcquiredConns() == 0 })
}

// If the server refuses COMMIT, the batch is split until the cause is alone.
func TestRunBatch_OneCallFailsCommit_OthersSucceed(t *testing.T) {
	t.Parallel()
	w := newWorker(newShop(t, openNew(t, nil), nil))
	run := w.runAll
	parent := pgx.Identifier{w.p.s.options.Schema, "parent"}.Sanitize()
	mustExec(t, w.p.s.appPool, "CREATE TABLE "+parent+" (key text PRIMARY KEY)")
	mustExec(t, w.p.s.appPool, "INSERT INTO "+parent+" SELECT 'k' || lpad(i::text, 3, '0') FROM generate_series(0, 19) i WHERE i <> 13")
	mustExec(t, w.p.s.appPool, "ALTER TABLE "+w.p.table+" ADD FOREIGN KEY (key) REFERENCES "+parent+" DEFERRABLE INITIALLY DEFERRED")
	calls := poll(numbered("k", 20)...)
	want := repeated("", 20)
	want[13] = "foreign key"
	wantEnds(t, calls, run(t.Context(), calls), want...)
	if got := len(w.p.payments(t)); got != 19 {
		t.Errorf("%d effects of 19", got)
	}
}
