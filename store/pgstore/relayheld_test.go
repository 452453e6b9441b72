package pgstore

import (
	"bytes"
	"context"
	"net"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// holdUpCommits has the COMMIT of each run with a key wait on the server, until
// open.
func (c *crowded) holdUpCommits(t *testing.T, key string) (open func()) {
	t.Helper()
	gate, wait := pgx.Identifier{c.s.opt.Schema, "gate"}.Sanitize(), pgx.Identifier{c.s.opt.Schema, "wait"}.Sanitize()
	for _, sql := range []string{
		"CREATE TABLE " + gate + " ()",
		"CREATE FUNCTION " + wait + "() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.key = " + literal(key) + " THEN LOCK TABLE " + gate + "; END IF; RETURN NEW; END $$",
		"CREATE CONSTRAINT TRIGGER wait AFTER INSERT ON " + c.table + " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION " + wait + "()",
	} {
		mustExec(t, c.s.own, sql)
	}
	tx, err := c.s.own.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	open = sync.OnceFunc(func() { _ = tx.Rollback(context.Background()) })
	t.Cleanup(open)
	mustExec(t, tx, "LOCK TABLE "+gate)
	return open
}

// A commit may wait: for what a deferred trigger waits for, or on a connection
// that hangs. Who is begun for behind it does not wait as long, while others go
// on.
func TestACommitThatWaitsHoldsUpNoStranger(t *testing.T) {
	for way, newCrowd := range crowds {
		t.Run(way, func(t *testing.T) {
			c := newCrowd(t, pgtest.URL(t), 2, nil)
			open := c.holdUpCommits(t, "slow")
			slow, other := c.holding(t, "slow"), c.holding(t, "other")
			stranger := c.start(t.Context(), "stranger")
			c.waits(t, 1)
			slow.goOn <- fine
			c.waits(t, 0)
			other.want(t, "other")
			waitFor(t, "the stranger runs", stranger.ran.Load)
			stranger.want(t, "stranger")
			open()
			if <-slow.done; slow.err != nil {
				t.Errorf("the commit that waited: %v", slow.err)
			}
			c.want(t, "other", "slow", "stranger")
		})
	}
}

// late is a connection whose rollbacks wait.
type late struct {
	net.Conn
	until chan struct{}
}

func (l late) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("ROLLBACK")) {
		<-l.until
	}
	return l.Conn.Write(b)
}

// What was begun for it has the lock of its key, until that is given back: who
// has begun by itself does not take it for another's call.
func TestWhoWasHeldUpIsNotInItsOwnWay(t *testing.T) {
	for way, newCrowd := range crowds {
		t.Run(way, func(t *testing.T) {
			met := make(chan struct{})
			meets := sync.OnceFunc(func() { close(met) })
			c := newCrowd(t, pgtest.URL(t), 2, func(cfg *pgxpool.Config) {
				dial := cfg.ConnConfig.DialFunc
				cfg.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
					conn, err := dial(ctx, network, addr)
					return late{conn, met}, err
				}
			})
			open := c.holdUpCommits(t, "slow")
			slow, other := c.holding(t, "slow"), c.holding(t, "other")
			a, err := NewAtomic(c.s, &semel.Options{Observe: func(_ context.Context, e semel.Event) {
				if e.Kind == semel.EventRefused {
					meets()
				}
			}})
			if err != nil {
				t.Fatal(err)
			}
			c.a = a
			stranger := c.start(t.Context(), "stranger")
			c.waits(t, 1)
			slow.goOn <- fine
			c.waits(t, 0)
			c.waits(t, 1) // it was held up, and waits anew
			open()
			if <-slow.done; slow.err != nil {
				t.Errorf("the commit that waited: %v", slow.err)
			}
			other.want(t, "other")
			stranger.want(t, "stranger")
			select {
			case <-met:
			default:
				t.Error("it met nobody: this test shows nothing")
			}
		})
	}
}
