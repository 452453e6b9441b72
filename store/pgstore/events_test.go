package pgstore

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
)

// endings collects what the events of an Atomic say about the ends of its calls.
type endings struct {
	mu    sync.Mutex
	words []string
}

func (e *endings) observe(_ context.Context, event semel.Event) {
	if word := event.Outcome(); word != "" {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.words = append(e.words, word)
	}
}

func (e *endings) want(t *testing.T, words ...string) {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	slices.Sort(e.words)
	if !slices.Equal(e.words, words) {
		t.Errorf("the events say %q, want %q", e.words, words)
	}
	e.words = nil
}

// An event comes after the commit. Each call has one that ends it.
func TestAtomic_Events_SayWhatBecameOfEachCall(t *testing.T) {
	t.Parallel()
	var e endings
	p := newShop(t, openNew(t, nil), &semel.Options{MaxAttempts: 1, Observe: e.observe})
	p.refuseCommits(t, "bad")

	_, err := Do(t.Context(), p.a, call("bad"), p.pay("bad", nil))
	if pgwire.Code(err) != "P0001" {
		t.Error(err)
	}
	e.want(t, "not_stored")
	if _, err = Do(t.Context(), p.a, call("bad"), p.pay("bad", nil)); !errors.Is(err, &semel.Failure{Code: semel.CodeAttemptsExhausted}) {
		t.Error(err)
	}
	e.want(t, "failed")

	conflicts := 2
	_, err = Do(t.Context(), p.a, call("conflict"), func(ctx context.Context, x *semel.Execution, tx pgx.Tx) (string, error) {
		if conflicts--; conflicts >= 0 {
			return "", &pgconn.PgError{Code: "40001"}
		}
		return p.pay("conflict", nil)(ctx, x, tx)
	})
	if err != nil {
		t.Error(err)
	}
	e.want(t, "executed")

	_, err = Do(t.Context(), p.a, call("own"), func(ctx context.Context, x *semel.Execution, tx pgx.Tx) (string, error) {
		_, err := tx.Conn().Exec(ctx, "COMMIT")
		return "", err
	})
	if !errors.Is(err, semel.ErrInDoubt) {
		t.Error(err)
	}
	e.want(t, "not_stored")
}

// However often a call looks whether another one has ended, it is one call.
func TestAtomic_Waits_HasOneEvent(t *testing.T) {
	t.Parallel()
	var e endings
	var looks atomic.Int32
	p := newShop(t, openNew(t, nil), &semel.Options{Observe: e.observe, TxHolder: func(_ context.Context, holder string) string {
		looks.Add(1)
		return holder
	}})
	var both sync.WaitGroup
	run := func(fn func(context.Context, *semel.Execution, pgx.Tx) (string, error)) {
		both.Go(func() {
			c := call("k")
			c.Wait = time.Minute
			if _, err := Do(t.Context(), p.a, c, fn); err != nil {
				t.Error(err)
			}
		})
	}
	runs, goOn := make(chan struct{}), make(chan struct{})
	run(func(ctx context.Context, x *semel.Execution, tx pgx.Tx) (string, error) {
		close(runs)
		<-goOn
		return p.pay("k", nil)(ctx, x, tx)
	})
	<-runs
	run(p.pay("duplicate", nil))
	waitFor(t, "the duplicate has looked often", func() bool { return looks.Load() > 4 })
	e.want(t)
	close(goOn)
	both.Wait()
	e.want(t, "executed", "replayed")
}

func TestRunBatch_Events_OneForEachCall(t *testing.T) {
	t.Parallel()
	var e endings
	p := newShop(t, openNew(t, nil), &semel.Options{Observe: e.observe})
	p.refuseCommits(t, "bad")
	calls := []semel.Call{call("good"), call("bad"), call("other"), call("good")}
	for _, want := range [][]string{{"executed", "executed", "not_stored", "replayed"}, {"not_stored", "replayed", "replayed", "replayed"}} {
		p.a.RunBatch(t.Context(), calls, func(ctx context.Context, newCalls []*PendingCall) error {
			tx, _ := TxFrom(ctx)
			for _, f := range newCalls {
				if _, err := p.pay(calls[f.Index].Key, nil)(ctx, f.Execution, tx); err != nil {
					return err
				}
			}
			return nil
		})
		e.want(t, want...)
	}
	p.want(t, "good", "other")
}
