package pgstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
)

// In REPEATABLE READ a row that was committed since is there for the index,
// and not to be seen: that is an error, never a second execution.
func TestTx_RepeatableRead_SerializationFailure(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), nil)
	tx := beginTx(t, p.s, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if _, err := tx.Exec(t.Context(), "SELECT 1 FROM "+p.table); err != nil { // takes the snapshot
		t.Fatal(err)
	}
	if _, err := Do(t.Context(), p.a, call("k"), p.pay("k", nil)); err != nil {
		t.Fatal(err)
	}
	f, err := p.s.Tx(tx).Claim(t.Context(), store.Proposal{
		Key: store.Key{Operation: "pay", Tenant: "ann", Value: "k"}, State: store.Processing, Owner: newOwner(), Lease: time.Minute,
	})
	if err == nil || f.Won || pgwire.Code(err) != pgwire.SerializationFailure {
		t.Errorf("won %v, error %v, want 40001", f.Won, err)
	}
	p.want(t, "k")
}

// The store's own statements may meet 40001 where the server's default is
// REPEATABLE READ: they were not carried out, and are sent again.
func TestStore_RepeatableReadDefault_Works(t *testing.T) {
	t.Parallel()
	first := openNew(t, nil)
	cfg := first.ownPool.Config()
	cfg.ConnConfig.RuntimeParams["default_transaction_isolation"] = "repeatable read"
	o := first.options
	s, err := open(t.Context(), cfg, nil, &o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var all sync.WaitGroup
	var won sync.Map
	for g := range 16 {
		all.Go(func() {
			for i := range 40 {
				f, err := []*Store{s, first}[g%2].Claim(t.Context(), proposal(itoa(i)))
				if err != nil {
					t.Errorf("claim: %v", err)
				}
				if f.Won {
					if _, twice := won.LoadOrStore(i, g); twice {
						t.Errorf("%d was won twice", i)
					}
				}
			}
		})
	}
	all.Wait()
	if err := s.Check(t.Context()); !errors.Is(err, ErrUnsafe) || !strings.Contains(err.Error(), "default_transaction_isolation") {
		t.Errorf("Check: %v", err)
	}
}

func TestAtomic_HandlersDeadlock_OneRunsAgain(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), nil)
	mustExec(t, p.s.appPool, "INSERT INTO "+p.table+" VALUES ('x'), ('y')")
	var meet, all sync.WaitGroup
	meet.Add(2)
	runs := make(chan int, 20)
	over := [2]chan struct{}{make(chan struct{}), make(chan struct{})}
	for i, order := range [][2]string{{"x", "y"}, {"y", "x"}} {
		all.Go(func() {
			defer close(over[i])
			tries := 0
			err := Once(t.Context(), p.a, call(itoa(i)), func(ctx context.Context, _ *semel.Execution, tx pgx.Tx) error {
				runs <- i
				if tries > 0 {
					<-over[1-i] // so that it does not lock the row again before the other gets it
				}
				for n, key := range order {
					if _, err := tx.Exec(ctx, "UPDATE "+p.table+" SET key = key WHERE key = $1", key); err != nil {
						return fmt.Errorf("update %s: %w", key, err)
					}
					if n == 0 && tries == 0 {
						tries++
						meet.Done()
						meet.Wait()
					}
				}
				return nil
			})
			if err != nil {
				t.Errorf("handler %d: %v", i, err)
			}
		})
	}
	all.Wait()
	if n := len(runs); n != 3 {
		t.Errorf("two handlers that lock each other ran %d times, want 3", n)
	}
	for _, key := range []string{"0", "1"} {
		if r, err := p.record(t, key); err != nil || r.Attempt != 1 {
			t.Errorf("the record of %s: attempt %d, error %v", key, r.Attempt, err)
		}
	}
}
