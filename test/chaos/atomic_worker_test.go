//go:build unix

package chaos

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore"
)

// The kinds of workers of TestAtomic_WorkersKilled_OneEffect, in spec.Wrap, and
// the points at which they are killed.
const (
	inTransaction   = "the effect is in the transaction of its record"
	besideIt        = "the effect is in a transaction of its own" // the bug that the test must see
	beforeCommit    = point("after settle, before commit")
	whileCommitting = point("while it commits")
	afterCommit     = point("after commit, before answer")
)

// init runs workers of these kinds. TestMain runs the other workers.
func init() {
	var s spec
	if text := os.Getenv(workerEnv); text == "" || json.Unmarshal([]byte(text), &s) != nil || s.Wrap != inTransaction && s.Wrap != besideIt {
		return
	}
	if err := workAtomic(context.Background(), s); err != nil && !errors.Is(err, errGone) {
		fmt.Fprintln(os.Stderr, "worker:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// atomicLane runs one call at a time, in transactions.
type atomicLane struct {
	*lane
	a  *pgstore.Atomic
	db *sql.DB // the application's own
}

func workAtomic(ctx context.Context, s spec) error {
	st, err := pgstore.Open(ctx, s.URL, &pgstore.Options{NoMigrate: true})
	if err != nil {
		return err
	}
	a, err := pgstore.NewAtomic(st, nil)
	if err != nil {
		return err
	}
	db, err := sql.Open("pgx", s.URL) // the driver that pgstore brings
	if err != nil {
		return err
	}
	errs := make([]error, s.Lanes)
	var all sync.WaitGroup
	for i := range s.Lanes {
		all.Go(func() {
			c, err := new(net.Dialer).DialContext(ctx, "tcp", s.Desk)
			if err != nil {
				errs[i] = fmt.Errorf("%w: %w", errGone, err)
				return
			}
			defer c.Close()
			n := &atomicLane{&lane{spec: s, line: newLine(c)}, a, db}
			n.put(question{Do: hello, Worker: s.ID})
			for r := n.put(question{Do: next}); r.Key != ""; r = n.put(question{Do: next}) {
				n.put(n.deliver(ctx, r.Key))
			}
		})
	}
	all.Wait()
	return errors.Join(append(errs, db.Close(), st.Close())...)
}

func (n *atomicLane) at(p point, key string) { n.reach(p, key, 0) }

// deliver runs a key once: half of the keys in a transaction that the lane has
// begun, and commits.
func (n *atomicLane) deliver(ctx context.Context, key string) question {
	n.at(beforeClaim, key)
	run := n.own
	if account(key)[len(account(key))-1]%2 == 0 {
		run = n.bySQL
	}
	res, err := run(ctx, key)
	a := question{Do: answer, Key: key, Class: classOf(err), Body: string(res.Body), Replayed: res.Replayed}
	if err != nil {
		a.Text = err.Error()
	} else if !res.Replayed {
		n.at(afterCommit, key)
	}
	return a
}

// own has Atomic begin and commit.
func (n *atomicLane) own(ctx context.Context, key string) (semel.Result, error) {
	return n.a.Run(ctx, call(key, n.spec.Lease/4), func(ctx context.Context, _ *semel.Execution) (store.Outcome, error) {
		o, err := n.pay(ctx, key, func(statement string, args ...any) error {
			tx, _ := pgstore.TxFrom(ctx)
			_, err := tx.Exec(ctx, statement, args...)
			return err
		})
		go n.at(whileCommitting, key) // that is next, and takes a while
		return o, err
	})
}

// bySQL runs the call in a transaction of database/sql.
func (n *atomicLane) bySQL(ctx context.Context, key string) (semel.Result, error) {
	res := semel.Result{Replayed: true}
	receipt, err := pgstore.DoSQL(ctx, n.a, n.db, call(key, 0), func(ctx context.Context, _ *semel.Execution, tx *sql.Tx) (string, error) {
		res.Replayed = false
		o, err := n.pay(ctx, key, func(statement string, args ...any) error {
			_, err := tx.ExecContext(ctx, statement, args...)
			return err
		})
		n.at(beforeCommit, key)
		go n.at(whileCommitting, key)
		return string(o.Body), err
	})
	res.Body = []byte(receipt)
	return res, err
}

// pay is the effect: a row.
func (n *atomicLane) pay(ctx context.Context, key string, exec func(statement string, args ...any) error) (store.Outcome, error) {
	n.at(beforeEffect, key)
	receipt := fmt.Sprintf("%s by %d of %p", key, n.spec.ID, n)
	if n.spec.Wrap == besideIt {
		exec = func(statement string, args ...any) error {
			_, err := n.db.ExecContext(ctx, statement, args...)
			return err
		}
	}
	err := exec("INSERT INTO payment (key, receipt) VALUES ($1, $2)", key, receipt)
	n.at(afterEffect, key)
	return store.Outcome{Body: []byte(receipt)}, err
}
