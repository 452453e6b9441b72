package sim

import (
	"context"
	"errors"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/driver"
	"github.com/semel-go/semel/store"
)

// database is a database with transactions, one at a time, as a store has that
// offers Atomic: the records and the money are in it.
type database struct {
	w       *world
	rows    *rows
	open    *tx
	forgets bool // a control: effects are not undone with their transaction
	shared  bool // a control: two transactions at once
}

// tx is a transaction: it works on a copy until it commits.
type tx struct {
	d      *database
	c      *call
	p      *process
	rows   *rows
	paid   []*run
	broken bool
	done   bool // committed
}

var errBroken = errors.New("sim: the transaction is broken")

const longestTx = 30 // ticks, after which the server ends a transaction

// run is like a store's Atomic.Run.
func (d *database) run(ctx context.Context, c *call, g *semel.Guard, sc semel.Call) (semel.Result, error) {
	t := &tx{d: d, c: c, p: c.p}
	if _, err := t.query(ctx, func() reply { return reply{} }, begun); err != nil {
		return semel.Result{}, err
	}
	over := false
	defer func() {
		if !over {
			t.rollback()
		}
	}()
	res, err := driver.RunIn(ctx, g, t, sc, c.handler(g, t))
	if _, kept := errors.AsType[*semel.Failure](err); err != nil && !kept {
		return res, err
	}
	if _, cerr := t.query(ctx, nil, commits); cerr != nil {
		return semel.Result{}, cerr
	}
	over = true
	return res, err
}

// stage is the purpose of a query.
type stage uint8

const (
	begun stage = iota
	works
	commits
	undoes
)

func (t *tx) query(ctx context.Context, apply func() reply, s stage) (reply, error) {
	it := &item{kind: queries, c: t.c, key: t.c.key, fence: uint64(s), apply: apply, tx: t}
	return t.p.ask(ctx, it)
}

func (t *tx) rollback() { _, _ = t.query(context.Background(), nil, undoes) }

// query is the scheduler's part.
func (d *database) query(it *item) {
	w, m, t := d.w, &d.w.plan.message, it.tx
	few := func(n int) int { return w.rng.IntN(n) }
	if w.down > w.tick || w.odds(m.before) {
		if w.rng.IntN(2) == 0 { // the connection breaks, and the server rolls back
			d.end(t)
		}
		w.back(it, few(2), reply{err: errLost})
		return
	}
	there, back := 0, 0
	if w.odds(m.slow) {
		there, back = few(4), few(4)
	}
	lost := w.odds(m.lost)
	w.after(there, func() {
		r := d.serve(it)
		if lost && stage(it.fence) != begun {
			r.err = errors.Join(r.err, errLost)
			if stage(it.fence) == commits {
				w.reach(txCommitLost)
			}
			d.end(t)
		}
		if errors.Is(r.err, errWait) {
			return
		}
		w.back(it, back, r)
	})
}

var errWait = errors.New("sim: the transaction has to wait")

func (d *database) serve(it *item) reply {
	t, w := it.tx, d.w
	s := stage(it.fence)
	switch {
	case s == begun && (t.p.dead || it.left.Load()):
		return reply{err: errBroken}
	case s == begun && (d.open == nil || d.shared):
		d.open, t.rows = t, d.rows.copy()
		w.after(longestTx, func() { d.end(t) })
		w.note("transaction begins", t.c.id, 0)
		return reply{}
	case s == begun:
		w.after(1, func() { // look again
			if r := d.serve(it); !errors.Is(r.err, errWait) {
				w.back(it, 0, r)
			}
		})
		return reply{err: errWait}
	case d.open != t && !d.shared, t.broken:
		w.reach(txBroken)
		return reply{err: errBroken}
	case s == works:
		return it.apply()
	case s == commits:
		d.commit(t)
	}
	d.end(t)
	return reply{}
}

func (d *database) commit(t *tx) {
	w := d.w
	w.reach(txCommitted)
	t.done = true
	w.note("commits", t.c.id, int64(len(t.paid)))
	for k, r := range t.rows.at {
		if old := d.rows.at[k]; !same(&old, &r) {
			w.truth.now[k] = r
			if old.Created != r.Created {
				w.truth.asked[w.truth.lifeOf(&r)] = beginning{t.c.payload, r.Fence}
			}
			w.truth.recorded(&r)
		}
	}
	*d.rows = *t.rows
	for _, r := range t.paid {
		w.book.effect(r)
	}
}

// end closes a transaction, if it is open, and undoes it if it is not committed.
func (d *database) end(t *tx) {
	if d.forgets && !t.broken && !t.done {
		for _, r := range t.paid {
			d.w.book.effect(r)
		}
	}
	t.broken = true
	if d.open == t {
		d.open = nil
		if len(t.paid) > 0 && !t.done {
			d.w.reach(txRolledBack)
		}
	}
}

// Claim implements store.Tx.
func (t *tx) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
	r, err := t.query(ctx, func() reply {
		f, err := t.rows.Claim(ctx, p)
		t.claimed(&f)
		return reply{found: f, err: err}
	}, works)
	return r.found, err
}

// Swap implements store.Tx.
func (t *tx) Swap(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
	r, err := t.query(ctx, func() reply {
		f, err := t.rows.Swap(ctx, seen, p)
		t.claimed(&f)
		return reply{found: f, err: err}
	}, works)
	return r.found, err
}

func (t *tx) claimed(f *store.Found) {
	if f.Won {
		t.d.w.truth.claims[claimID{f.Record.Key, f.Record.Fence}] = t.d.w.truth.lifeOf(&f.Record)
	}
}

// Settle implements store.Tx.
func (t *tx) Settle(ctx context.Context, l store.Lease, s store.Settlement) error {
	_, err := t.query(ctx, func() reply { return reply{err: t.rows.Settle(ctx, l, s)} }, works)
	return err
}

// Nested implements store.Tx, by a savepoint.
func (t *tx) Nested(ctx context.Context, fn func() error) error {
	var at *rows
	var paid int
	if _, err := t.query(ctx, func() reply { at, paid = t.rows.copy(), len(t.paid); return reply{} }, works); err != nil {
		return err
	}
	done := false
	defer func() {
		if !done {
			_, _ = t.query(context.Background(), func() reply { t.rows, t.paid = at, t.paid[:paid]; return reply{} }, works)
		}
	}()
	err := fn()
	if err == nil {
		done = true
		return nil
	}
	done = true
	if _, uerr := t.query(context.Background(), func() reply { t.rows, t.paid = at, t.paid[:paid]; return reply{} }, works); uerr != nil {
		return uerr
	}
	return err
}

// pay is a handler's write in the transaction.
func (t *tx) pay(ctx context.Context, r *run) error {
	_, err := t.query(ctx, func() reply { t.paid = append(t.paid, r); return reply{} }, works)
	return err
}
