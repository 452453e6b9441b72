package orders

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"sync"

	"github.com/semel-go/semel/cmd/semel/demo/internal/sqlfile"
)

// naive is the app without Semel, as it is often written: a table of orders and their
// states, and the same steps and compensations, of which nothing is kept. If a process
// dies, half of its orders are tried again from their start, as by a queue that delivers
// again; the other half are left, as when a request dies with its process.
type naive struct {
	*worker
	db   *sql.DB
	name string // of the worker
}

// Each second order is tried again.
const naiveSchema = `CREATE TABLE IF NOT EXISTS todo (n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, body TEXT NOT NULL,
	state TEXT NOT NULL DEFAULT 'open', worker TEXT NOT NULL DEFAULT '', pid INTEGER NOT NULL DEFAULT 0);
CREATE INDEX IF NOT EXISTS todo_state ON todo (state, n);`

// The states of an order, besides its ends.
const stateOpen, stateTaken = "open", "taken"

func openNaive(ctx context.Context, o *Options, w *worker) (App, error) {
	db, err := sqlfile.Open(ctx, o.File, naiveSchema, sqlfile.Relaxed)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return &naive{w, db, filepath.Base(o.Journal)}, nil
}

// Place implements App.
func (n *naive) Place(ctx context.Context, o *Order) error {
	body, err := json.Marshal(o)
	if err == nil {
		_, err = n.db.ExecContext(ctx, `INSERT INTO todo (id, body) VALUES (?, ?) ON CONFLICT DO NOTHING`, o.ID, string(body))
	}
	return err
}

// Work implements App.
func (n *naive) Work(ctx context.Context) error {
	_, err := n.db.ExecContext(ctx, `UPDATE todo SET state = ? WHERE state = ? AND worker = ? AND n % 2 = 0`, stateOpen, stateTaken, n.name)
	if err != nil {
		return err
	}
	n.diary.note(&Entry{Kind: Boot})
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var g sync.WaitGroup
	for range concurrency {
		g.Go(func() {
			for ctx.Err() == nil {
				if err := n.next(ctx); err != nil {
					fail(err)
				}
			}
		})
	}
	g.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// next works on one order, or waits if there is none.
func (n *naive) next(ctx context.Context) error {
	var body string
	err := n.db.QueryRowContext(ctx, `UPDATE todo SET state = ?, worker = ?, pid = ?
		WHERE n = (SELECT n FROM todo WHERE state = ? ORDER BY n LIMIT 1) RETURNING body`, stateTaken, n.name, os.Getpid(), stateOpen).Scan(&body)
	if errors.Is(err, sql.ErrNoRows) {
		_ = pause(ctx, lookEvery) // the caller looks at ctx
		return nil
	}
	var o Order
	if err == nil {
		err = json.Unmarshal([]byte(body), &o)
	}
	if err != nil {
		return err
	}
	end, err := n.run(ctx, &o)
	if err == nil {
		_, err = n.db.ExecContext(ctx, `UPDATE todo SET state = ? WHERE id = ?`, end, o.ID)
	}
	if err == nil {
		n.diary.note(&Entry{Kind: Ended, Order: o.ID})
	}
	return err
}

// run makes the steps, and undoes them in reverse if one is refused. Each request has a
// new key, because nothing is kept of the requests of an earlier attempt.
func (n *naive) run(ctx context.Context, o *Order) (End, error) {
	pay, hold := rand.Text(), rand.Text()
	err := n.send(ctx, o, Pay, pay, "")
	if errors.Is(err, ErrRefused) {
		return Undone, nil
	} else if err != nil {
		return Open, err
	}
	err = n.send(ctx, o, Hold, hold, "")
	if err == nil {
		err = n.send(ctx, o, Book, rand.Text(), "")
		if errors.Is(err, ErrRefused) {
			if err := n.send(ctx, o, Release, rand.Text(), hold); err != nil {
				return Open, err
			}
		}
	}
	if errors.Is(err, ErrRefused) {
		return Undone, n.send(ctx, o, Refund, rand.Text(), pay)
	}
	return Booked, err
}

// Answers implements App.
func (n *naive) Answers(ctx context.Context) (map[string]Answer, error) {
	rows, err := n.db.QueryContext(ctx, `SELECT id, state, pid FROM todo`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	answers := map[string]Answer{}
	for rows.Next() {
		var id, state string
		var pid int
		if err := rows.Scan(&id, &state, &pid); err != nil {
			return nil, err
		}
		a := Answer{PID: pid}
		switch state {
		case stateOpen:
			a.PID = 0
		case stateTaken:
		default:
			a.End = End(state)
		}
		answers[id] = a
	}
	return answers, rows.Err()
}

// Close implements App.
func (n *naive) Close() error { return n.db.Close() }
