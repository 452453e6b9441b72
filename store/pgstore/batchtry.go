package pgstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/driver"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
	"github.com/semel-go/semel/store/pgstore/internal/table"
)

var (
	// errCareful: something has to be undone, and there is no savepoint.
	errCareful = errors.New("the batch needs savepoints")
	// errDivide: the handler of many failed.
	errDivide = errors.New("the batch has to be divided")
	// errSwallowed: a handler returned nil though the transaction had failed.
	errSwallowed = errors.New("a statement of the handler failed, and it returned nil")
	// errBroke: it did while a handler had it, or at COMMIT, and nothing was
	// committed.
	errBroke = errors.New("the connection broke")
)

// batchTry is one try of a batch in one transaction.
type batchTry struct {
	a       *Atomic
	t       *storeTx
	careful bool // behind savepoints

	batchCalls []batchCall
	failed     map[pgtype.UUID]bool // keys with a failed attempt in this batch
	notes      []*batchCall         // whose failed attempts are to be noted afterwards
	written    bool                 // there is something to commit besides pending
	touched    bool                 // the handler has used the transaction
	saved      bool                 // its savepoint is set
	running    *batchCall           // whose handler runs
	prefetched *prefetched          // what was written ahead; nil: nothing was
}

func (a *Atomic) newBatchTry(t *storeTx, careful bool) *batchTry {
	y := &batchTry{a: a, careful: careful, failed: map[pgtype.UUID]bool{}}
	if t != nil {
		y.in(t)
	}
	return y
}

// in is the transaction of the try.
func (y *batchTry) in(t *storeTx) {
	y.t, t.hold = t, true
}

// try runs some of the calls in one transaction. On an error nothing has
// happened, or it is not known, and none of them has an end.
func (b *batchRun) try(ctx context.Context, which []int, careful bool) error {
	t, y, err := b.open(ctx, which, careful)
	if err != nil {
		return err
	}
	defer func() {
		t.end()
		if y.running != nil {
			_ = b.a.noteAttempt(ctx, y.running.attempt(), "panic, or runtime.Goexit")
		}
	}()
	inside := withBatch(t.handlerContext(ctx, &touchedTx{t.line.Tx, y}), y, &t.over)
	b.now = y
	defer func() { b.now = nil }()
	err = y.runWhole(ctx, func(fresh []*NewCall) error { return b.whole(inside, fresh) })
	if err == nil {
		err = y.commit(ctx, t)
	}
	if errors.Is(err, errBroke) {
		t.end()
		return b.broke(ctx, y, which, err)
	}
	if err != nil {
		return err
	}
	b.failed = y.failed
	for i := range y.batchCalls {
		v := &y.batchCalls[i]
		b.ended[v.i] = Ended{v.res, v.err}
		if v.won != nil {
			b.a.s.ended(v.id)
		}
	}
	for _, v := range y.notes {
		_ = b.a.noteAttempt(ctx, v.attempt(), v.said.Error())
	}
	return nil
}

// broke is after a try whose connection broke by what a handler did, perhaps. That
// may be one call's doing, and would be so again, and all others wait for ever. So
// if the store answers it is as where a handler fails: the batch is divided, and
// who is alone has failed once more.
func (b *batchRun) broke(ctx context.Context, y *batchTry, which []int, err error) error {
	if ctx.Err() != nil || y.waitFree(ctx) != nil { // what ended ctx has broken it; or the store is down
		return err
	}
	if len(which) > 1 {
		return fmt.Errorf("%w: %w", errDivide, err)
	}
	if v := &y.batchCalls[0]; attempted(err) {
		if b.a.noteAttempt(ctx, v.attempt(), err.Error()) != nil {
			return err
		}
		y.failed[v.id] = true
		b.failed = y.failed
	}
	b.fail(ctx, which, err)
	return nil
}

// waitFree waits until the server has noticed that the connection broke, and the
// keys are free.
func (y *batchTry) waitFree(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, aftermath)
	defer cancel()
	var highs, lows []int32
	for i := range y.batchCalls {
		v := &y.batchCalls[i]
		if l := y.t.looks[v.id]; v.won != nil || l != nil && l.locked {
			high, low := y.t.s.lockOf(v.id)
			highs, lows = append(highs, high), append(lows, low)
		}
	}
	_, err := y.t.s.own.Exec(ctx, `SELECT count(pg_advisory_xact_lock_shared(u.high, u.low)) FROM (SELECT unnest($1::integer[]) AS high, unnest($2::integer[]) AS low) u`, pgwire.Array(highs), pgwire.Array(lows))
	return err
}

// attempt is the call's as noteAttempt takes it.
func (v *batchCall) attempt() *storeTx { return &storeTx{won: v.won, seen: v.seen} }

// open begins a transaction, and looks for the keys of calls; or it takes over
// the one that was begun ahead.
func (b *batchRun) open(ctx context.Context, which []int, careful bool) (*ownTx, *batchTry, error) {
	if t, y := b.next.begun(ctx, careful); t != nil {
		return t, y, nil
	}
	t := b.a.newOwnTx()
	if err := t.connect(ctx); err != nil {
		return nil, nil, fmt.Errorf("begin: %w", err)
	}
	y := b.a.newBatchTry(&t.storeTx, careful)
	maps.Copy(y.failed, b.failed)
	if err := y.gather(ctx, which, b.calls); err != nil {
		t.end()
		return nil, nil, err
	}
	return t, y, nil
}

// gather looks for the keys of all calls in one statement.
func (y *batchTry) gather(ctx context.Context, which []int, calls []semel.Call) error {
	y.visit(which, calls)
	keys := make([]pgtype.UUID, 0, len(which))
	for i := range y.batchCalls {
		if v := &y.batchCalls[i]; v.steps != nil {
			keys = append(keys, v.id)
		}
	}
	return y.t.gather(ctx, keys)
}

// visit begins the steps of calls that lie behind each other.
func (y *batchTry) visit(which []int, calls []semel.Call) {
	if len(which) == 0 {
		return
	}
	y.batchCalls = slices.Grow(y.batchCalls[:0], len(which))[:len(which)]
	for n, i := range which {
		v := &y.batchCalls[n]
		v.i, v.y = i, y
		if v.steps, v.err = driver.NewTxCall(y.a.g, calls[i]); v.err == nil {
			v.id = table.ID(v.steps.Key())
		}
	}
}
