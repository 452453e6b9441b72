package pgstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/store"
)

// ownTx is the transaction of one try of Atomic.Run. It has a connection from
// its claim on, unless that is answered without. Its BEGIN goes out with the
// claim, its COMMIT with the settlement.
type ownTx struct {
	storeTx
	tide *tide
	conn *pgxpool.Conn
	lent *lent          // nil: no handler has it
	last store.Proposal // of Claim, for won to point to
	cut  bool           // the connection broke, or another is at what this waits for

	placed bool // it has a place in the relay, until its end
	handed int  // how often conn was handed over before
}

// ownTxs are used again: memory that was just used is near, and new memory is
// not. Nobody who outlives the try has one: a handler is lent something else.
var ownTxs = sync.Pool{New: func() any { return &ownTx{} }}

func (a *Atomic) newOwnTx() *ownTx {
	t := ownTxs.Get().(*ownTx)
	t.s, t.late, t.own, t.idle, t.tide = a.s, true, true, &a.s.idle, &a.tide
	return t
}

// free gives a transaction back that has come to its end, if all that it has
// sent was answered, and no tracer may have kept its arguments.
func (t *ownTx) free() {
	if t.cut || t.s.traced {
		return
	}
	was, read := t.pending, t.one.read
	clear(was)
	*t = ownTx{}
	t.pending, t.one.read = was, read
	ownTxs.Put(t)
}

// begin takes a connection when its turn comes; or it is handed one, on which
// the transaction is open, and the look at the key is done.
func (t *ownTx) begin(ctx context.Context, id pgtype.UUID) error {
	l := t.s.relay.join(&t.storeTx, id)
	if l != nil {
		if err := t.s.relay.wait(ctx, l); err != nil {
			t.cut = true
			return err
		}
	}
	t.placed = true
	if l == nil || l.conn == nil {
		return t.connectDirectly(ctx, t.s.txSQL.ofRuns())
	}
	t.conn, t.handed, t.sent = l.conn, l.handed, true
	t.init(t.s, t.conn.Conn(), true)
	t.line.tx, t.line.sent = l.tx, 1 // the look, by another line
	t.line.direct = directOf(t.conn.Conn())
	return nil
}

// connect takes a connection, on which nothing is sent yet.
func (t *ownTx) connect(ctx context.Context) (err error) {
	if t.s.closed.Load() {
		return ErrClosed
	}
	if t.conn, err = t.s.app.Acquire(ctx); err != nil {
		return err
	}
	t.init(t.s, t.conn.Conn(), true)
	t.line.begin = true
	return nil
}

// connectDirectly is connect for statements that are to go directly.
func (t *ownTx) connectDirectly(ctx context.Context, all []string) error {
	if err := t.connect(ctx); err != nil {
		return err
	}
	t.line.direct = directOf(t.conn.Conn())
	return t.line.direct.prepare(ctx, t.conn.Conn(), all)
}

// Claim implements store.Tx.
func (t *ownTx) Claim(ctx context.Context, p store.Proposal) (f store.Found, err error) {
	id := idOf(p.Key)
	if t.conn == nil {
		if t.tide.high() {
			if f, is := t.s.lookForKept(ctx, id, p.Key); is {
				t.asked = id
				t.tide.saw(true)
				return f, nil
			}
		}
		if err := t.begin(ctx, id); err != nil {
			return f, explain("begin", err)
		}
	}
	t.last = p
	f, err = t.claimID(ctx, id, &t.last)
	if err == nil && (f.Won || stays(&f)) {
		t.tide.saw(!f.Won)
	}
	return f, err
}

// lend is the context for the handler, with the transaction. Outer is that of
// Run.
func (t *ownTx) lend(ctx, outer context.Context, tx pgx.Tx) *lent {
	l := &lent{Context: ctx}
	l.tx, l.statement = handlerTx{Tx: tx, of: l}, statementContext{outer, l}
	l.in, l.runs = txIn{s: t.s, tx: &l.tx, over: &l.over}, runs{s: t.s, id: t.asked, over: &l.over}
	l.in.outer, _ = outer.Value(txKey{}).(*txIn)
	l.runs.outer, _ = outer.Value(runsKey{}).(*runs)
	t.lent = l
	return l
}

// recall ends what was lent.
func (t *ownTx) recall() {
	if t.lent != nil {
		t.lent.over.Store(true)
	}
}

// errRolledBack: the server took COMMIT for a rollback.
var errRolledBack = errors.New("the transaction had failed before, and was rolled back")

// commit sends what is left, and COMMIT, and what begins the run that is next
// on the connection, if one waits.
func (t *ownTx) commit(ctx context.Context) error {
	t.recall()
	done := false
	t.line.push(commitSQL, nil, func(res pgx.BatchResults) error {
		tag, err := res.Exec()
		if err == nil && tag.String() != "COMMIT" {
			err = fmt.Errorf("%w (%s)", errRolledBack, tag)
		}
		done = err == nil
		return err
	})
	begun := false
	if next := t.next(); next != nil {
		next.send(&t.line)
		late := time.AfterFunc(heldUp, func() { close(next.late) })
		defer func() { // whatever happens: it waits
			late.Stop()
			t.handOver(next, begun)
		}()
	}
	err := t.line.flush(ctx)
	if begun = done && err == nil; done {
		return nil // the rest is the other's
	}
	return err
}

// next is the run to which the connection goes after this; nil: none.
func (t *ownTx) next() *leg {
	if !t.placed || t.handed >= maxHanded || t.s.closed.Load() {
		return nil
	}
	return t.s.relay.next()
}

// handOver gives a run the place of t, and if it has begun there, the connection.
func (t *ownTx) handOver(to *leg, begun bool) {
	if begun {
		to.conn, to.tx, to.handed = t.conn, t.line.tx, t.handed+1
		t.conn = nil
	}
	t.placed = false
	close(to.told)
}

// end rolls back what was not committed, and gives the connection back, and the
// place in the relay. Harmless when repeated.
func (t *ownTx) end() {
	t.recall()
	if t.conn != nil {
		t.cut = giveBack(t.conn) || t.cut
		t.conn = nil
	}
	if t.placed {
		t.placed = false
		t.s.relay.free()
	}
}

// giveBack rolls back what is open on a connection of the pool, and releases it.
// It reports whether that broke.
func giveBack(conn *pgxpool.Conn) (cut bool) {
	c := conn.Conn()
	if !c.IsClosed() && c.PgConn().TxStatus() != 'I' {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_, _ = c.Exec(ctx, "ROLLBACK") // if it fails the pool closes the connection
	}
	cut = c.IsClosed()
	conn.Release()
	return cut
}
