package pgstore

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel"
)

var (
	// errCareful: something has to be undone, and there is no savepoint.
	errCareful = errors.New("the batch needs savepoints")
	// errDivide: the handler of many failed.
	errDivide = errors.New("the batch has to be divided")
	// errSwallowed: a handler returned nil though the transaction had failed.
	errSwallowed = errors.New("a statement of the handler failed, and it returned nil")
)

// inbox is one try of a batch in one transaction.
type inbox struct {
	a       *Atomic
	t       *storeTx
	careful bool // behind savepoints

	visitors []visitor
	failed   map[pgtype.UUID]bool // keys with a failed attempt in this batch
	notes    []*visitor           // whose failed attempts are to be noted afterwards
	written  bool                 // there is something to commit besides pending
	touched  bool                 // the handler has used the transaction
	saved    bool                 // its savepoint is set
	running  *visitor             // whose handler runs
}

func (a *Atomic) newInbox(t *storeTx, careful bool) *inbox {
	t.hold = true
	return &inbox{a: a, t: t, careful: careful, failed: map[pgtype.UUID]bool{}}
}

// try runs some of the calls in one transaction. On an error nothing has
// happened, or it is not known, and none of them has an end.
func (b *batch) try(ctx context.Context, which []int, careful bool) error {
	t := b.a.newOwnTx()
	if err := t.connect(ctx); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	y := b.a.newInbox(t.storeTx, careful)
	maps.Copy(y.failed, b.failed)
	defer func() {
		t.end()
		if y.running != nil {
			b.a.noteAttempt(ctx, y.running.attempt(), "panic, or runtime.Goexit")
		}
	}()
	if err := y.gather(ctx, which, b.calls); err != nil {
		return err
	}
	var err error
	tx := &handlerTx{&touchedTx{t.line.tx, y}, &t.over}
	if b.whole != nil {
		err = y.runWhole(ctx, func(fresh []*Fresh) error { return b.whole(b.a.s.withTx(ctx, tx), fresh) })
	} else {
		err = y.runEach(ctx, func(ctx context.Context, x *semel.Execution, i int) (semel.Outcome, error) {
			return b.each(b.a.s.withTx(ctx, tx), x, i)
		})
	}
	if err != nil {
		return err
	}
	if err := y.commit(ctx, t); err != nil {
		return err
	}
	b.failed = y.failed
	for i := range y.visitors {
		v := &y.visitors[i]
		b.ended[v.i] = Ended{v.res, v.err}
		if v.won != nil {
			b.a.s.ended(v.id)
		}
	}
	for _, v := range y.notes {
		b.a.noteAttempt(ctx, v.attempt(), v.said.Error())
	}
	return nil
}

// attempt is the visitor's as noteAttempt takes it.
func (v *visitor) attempt() *ownTx { return &ownTx{storeTx: &storeTx{won: v.won, seen: v.seen}} }

// gather looks for the keys of all calls in one statement.
func (y *inbox) gather(ctx context.Context, which []int, calls []semel.Call) error {
	y.visitors = make([]visitor, len(which))
	keys := make([]pgtype.UUID, 0, len(which))
	for n, i := range which {
		v := &y.visitors[n]
		v.i, v.y = i, y
		if v.steps, v.err = y.a.g.Steps(calls[i]); v.err == nil {
			v.id = idOf(v.steps.Key())
			keys = append(keys, v.id)
		}
	}
	return y.t.gather(ctx, keys)
}
