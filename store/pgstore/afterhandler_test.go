package pgstore

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// A goroutine that a handler leaves behind uses the transaction and the context
// after the run, while other runs panic, exit, or lose their connections.
func TestHandlerTx_UsedAfterHandler_Closed(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), nil)
	var paid []string
	var mu sync.Mutex
	var runs, behind sync.WaitGroup
	for w := range 8 {
		runs.Go(func() {
			for i := range 24 {
				key := fmt.Sprintf("%d-%02d", w, i)
				returned := make(chan struct{})
				err := p.runThen(t, key, i%6, func(ctx context.Context, x *semel.Execution) {
					tx, _ := TxFrom(ctx)
					behind.Go(func() {
						<-returned
						for range 20 {
							p.useAfterHandler(t, ctx, x, tx, key)
						}
					})
				})
				close(returned)
				if err == nil {
					mu.Lock()
					paid = append(paid, key)
					mu.Unlock()
				}
			}
		})
	}
	runs.Wait()
	behind.Wait()
	if got := p.payments(t); len(got) != len(paid) || len(paid) != 8*24/2 {
		t.Errorf("%d effects of %d runs that said so", len(got), len(paid))
	}
}

// runThen runs a call that ends in one of six ways, half of them well.
func (p *shop) runThen(t *testing.T, key string, way int, lend func(context.Context, *semel.Execution)) (err error) {
	ended := make(chan struct{})
	go func() { // it may exit
		defer close(ended)
		defer func() {
			if v := recover(); v != nil {
				err = fmt.Errorf("panic: %v", v)
			}
		}()
		err = errors.New("exited")
		err = Once(t.Context(), p.a, call(key), func(ctx context.Context, x *semel.Execution, tx pgx.Tx) error {
			lend(ctx, x)
			if _, err := tx.Exec(ctx, "INSERT INTO "+p.table+" VALUES ($1)", key); err != nil {
				return err
			}
			switch way {
			case 0:
				panic("on purpose")
			case 1:
				runtime.Goexit()
			case 2:
				_, err := tx.Exec(ctx, "SELECT pg_terminate_backend(pg_backend_pid())")
				return err
			}
			return nil
		})
	}()
	<-ended
	return err
}

// useAfterHandler uses all that a handler had, after its run.
func (p *shop) useAfterHandler(t *testing.T, ctx context.Context, x *semel.Execution, tx pgx.Tx, key string) {
	if _, err := tx.Exec(ctx, "INSERT INTO "+p.table+" VALUES ('ghost')"); !errors.Is(err, pgx.ErrTxClosed) {
		t.Errorf("%s: a statement after the run: %v", key, err)
	}
	if _, err := tx.Begin(context.Background()); !errors.Is(err, pgx.ErrTxClosed) {
		t.Errorf("%s: a savepoint after the run: %v", key, err)
	}
	if _, err := tx.Prepare(context.Background(), "ghost", "SELECT 1"); !errors.Is(err, pgx.ErrTxClosed) {
		t.Errorf("%s: a statement is prepared after the run: %v", key, err)
	}
	large := tx.LargeObjects()
	if _, err := large.Create(context.Background(), 0); !errors.Is(err, pgx.ErrTxClosed) {
		t.Errorf("%s: a large object after the run: %v", key, err)
	}
	if is, ok := TxFrom(ctx); !ok || is != tx {
		t.Errorf("%s: the context has another transaction", key)
	}
	if is, ok := semel.FromContext(ctx); !ok || is != x || x.Key() != key || x.Attempt() != 1 {
		t.Errorf("%s: the run is that of %s", key, x.Key())
	}
	if !errors.Is(ctx.Err(), context.Canceled) {
		t.Errorf("%s: the context goes on: %v", key, ctx.Err())
	}
	if _, err := p.a.Run(ctx, call("ghost"), func(context.Context, *semel.Execution) (store.Outcome, error) {
		t.Errorf("%s: a handler ran in a transaction that has ended", key)
		return store.Outcome{}, nil
	}); err == nil {
		t.Errorf("%s: a run in a transaction that has ended", key)
	}
}

func TestAtomic_CallerLeaves_StatementEnds(t *testing.T) {
	p := newShop(t, openNew(t, nil), nil)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	var pid atomic.Uint32
	ended := make(chan error)
	go func() {
		ended <- Once(ctx, p.a, call("k"), func(ctx context.Context, _ *semel.Execution, tx pgx.Tx) error {
			pid.Store(tx.Conn().PgConn().PID())
			_, err := tx.Exec(ctx, "SELECT pg_sleep(60)")
			return err
		})
	}()
	waitFor(t, "the statement runs", func() bool {
		return ask[bool](t, p.s.ownPool, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1 AND state = 'active' AND query LIKE '%pg_sleep(60)%')", int64(pid.Load()))
	})
	left := time.Now()
	leave()
	err := <-ended
	if !errors.Is(err, semel.ErrCanceled) {
		t.Errorf("it ended by %v", err)
	}
	if took := time.Since(left); took > 20*time.Second {
		t.Errorf("it ended after %v", took)
	}
	p.want(t)
}
