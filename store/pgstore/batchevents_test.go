package pgstore

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/semel-go/semel"
)

func writeRows(p *shop, calls []semel.Call) func(ctx context.Context, newCalls []*PendingCall) error {
	return func(ctx context.Context, newCalls []*PendingCall) error {
		tx, _ := TxFrom(ctx)
		for _, f := range newCalls {
			if _, err := p.pay(calls[f.Index].Key, nil)(ctx, f.Execution, tx); err != nil {
				return err
			}
		}
		return nil
	}
}

// Each call of a batch has one event that ends it, however it ends.
func TestRunBatch_CallEndsWithoutSettlement_HasOneEvent(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	for name, c := range map[string]struct {
		keys []string
		fn   func(ctx context.Context, p *shop, newCalls []*PendingCall) error
		want []string
	}{
		"a duplicate of a failed call": {[]string{"k", "k"}, func(_ context.Context, _ *shop, newCalls []*PendingCall) error {
			newCalls[0].Err = boom
			return nil
		}, []string{"refused_in_progress", "released"}},
		"the handler conflicts each time": {[]string{"k"}, func(context.Context, *shop, []*PendingCall) error {
			return &pgconn.PgError{Code: "40001"}
		}, []string{"released"}},
		"the handler commits": {[]string{"k"}, func(ctx context.Context, p *shop, _ []*PendingCall) error {
			tx, _ := TxFrom(ctx)
			_, err := tx.Conn().Exec(ctx, "INSERT INTO "+p.table+" VALUES ('k'); COMMIT")
			return err
		}, []string{"not_stored"}},
		"the connection breaks": {[]string{"k"}, func(ctx context.Context, _ *shop, _ []*PendingCall) error {
			tx, _ := TxFrom(ctx)
			return tx.Conn().Close(ctx)
		}, []string{"released"}},
		"the store is closed": {[]string{"k"}, nil, []string{"refused_store_unavailable"}},
	} {
		t.Run(name, func(t *testing.T) {
			var e endings
			p := newShop(t, openNew(t, nil), &semel.Options{Observe: e.observe})
			if c.fn == nil {
				p.s.closed.Store(true)
				defer p.s.closed.Store(false)
			}
			p.a.RunBatch(t.Context(), poll(c.keys...), func(ctx context.Context, newCalls []*PendingCall) error { return c.fn(ctx, p, newCalls) })
			e.want(t, c.want...)
		})
	}
}

// A replay in a batch whose handler commits ends with an error, and so it is no replay.
func TestRunBatch_ReplayBesideLostCommit_EventIsNoReplay(t *testing.T) {
	t.Parallel()
	var e endings
	p := newShop(t, openNew(t, nil), &semel.Options{Observe: e.observe})
	if _, err := Do(t.Context(), p.a, call("old"), p.pay("old", nil)); err != nil {
		t.Fatal(err)
	}
	e.want(t, "executed")
	calls := poll("old", "new")
	calls[0] = call("old")
	ends := p.a.RunBatch(t.Context(), calls, func(ctx context.Context, _ []*PendingCall) error {
		tx, _ := TxFrom(ctx)
		_, err := tx.Conn().Exec(ctx, "INSERT INTO "+p.table+" VALUES ('new'); COMMIT")
		return err
	})
	if !errors.Is(ends[0].Err, semel.ErrUnavailable) || !errors.Is(ends[1].Err, semel.ErrInDoubt) {
		t.Errorf("the calls end with %v and %v", ends[0].Err, ends[1].Err)
	}
	e.want(t, "not_stored", "refused_store_unavailable")
}

func TestAtomic_HandlerPanics_HasOneEvent(t *testing.T) {
	t.Parallel()
	var e endings
	p := newShop(t, openNew(t, nil), &semel.Options{Observe: e.observe})
	func() {
		defer func() { _ = recover() }()
		_ = Once(t.Context(), p.a, call("k"), func(context.Context, *semel.Execution, pgx.Tx) error { panic("boom") })
	}()
	e.want(t, "released")
}

// A part of a batch that has committed keeps its events if the handler of another part panics.
func TestRunBatch_LaterPartPanics_CommittedCallsHaveEvents(t *testing.T) {
	t.Parallel()
	var e endings
	p := newShop(t, openNew(t, nil), &semel.Options{Observe: e.observe})
	calls := poll("a", "b")
	func() {
		defer func() { _ = recover() }()
		p.a.RunBatch(t.Context(), calls, func(ctx context.Context, newCalls []*PendingCall) error {
			switch {
			case len(newCalls) == 2:
				return errors.New("split")
			case calls[newCalls[0].Index].Key == "b":
				panic("boom")
			}
			return writeRows(p, calls)(ctx, newCalls)
		})
	}()
	p.want(t, "a")
	e.want(t, "executed", "released")
}

// A waiter that does not run the handler has a refusal, and no run.
func TestAtomic_WaiterAfterFailure_EventIsRefusal(t *testing.T) {
	t.Parallel()
	var e endings
	var looks atomic.Int32
	p := newShop(t, openNew(t, nil), &semel.Options{Observe: e.observe, TxHolder: func(_ context.Context, holder string) string {
		looks.Add(1)
		return holder
	}})
	waiter := make(chan error, 1)
	_ = Once(t.Context(), p.a, call("k"), func(context.Context, *semel.Execution, pgx.Tx) error {
		go func() {
			c := call("k")
			c.Wait = time.Minute
			_, err := Do(t.Context(), p.a, c, p.pay("waiter", nil))
			waiter <- err
		}()
		waitFor(t, "the waiter has found the key taken", func() bool { return looks.Load() > 2 })
		return errors.New("boom")
	})
	if err := <-waiter; !errors.Is(err, semel.ErrReleased) {
		t.Fatal(err)
	}
	e.want(t, "refused_in_progress", "released")
}
