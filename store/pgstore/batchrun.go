package pgstore

import (
	"cmp"
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/driver"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
)

// runWhole runs one handler for all calls that are to be done. Of those with
// the same key the first is in the first round, and the next comes when that
// has its end: mostly there is one round.
func (y *batchTry) runWhole(ctx context.Context, fn func([]*NewCall) error) error {
	round := make([]*batchCall, len(y.batchCalls))
	room := make([]NewCall, len(y.batchCalls))
	for i := range y.batchCalls {
		round[i] = &y.batchCalls[i]
	}
	var busy map[pgtype.UUID]bool // of those that are to be run; nil: each knows who comes before it
	if y.prefetched == nil {
		busy = make(map[pgtype.UUID]bool, len(round))
	}
	admitted, fresh := make([]*batchCall, 0, len(round)), make([]*NewCall, 0, len(round))
	for len(round) > 0 {
		var later []*batchCall
		admitted, fresh = admitted[:0], fresh[:0]
		clear(busy)
		for _, v := range round {
			if v.steps != nil && (busy[v.id] || v.ofKey().busy) {
				later = append(later, v)
				continue
			}
			if !y.goes(v) {
				continue
			}
			if x := v.claim(ctx); x != nil {
				room[0] = NewCall{Index: v.i, Execution: x}
				admitted, fresh = append(admitted, v), append(fresh, &room[0])
				if room = room[1:]; busy != nil {
					busy[v.id] = true
				} else {
					v.ofKey().busy = true
				}
				continue
			}
			if err := y.ended(ctx, v); err != nil {
				return err
			}
		}
		if len(admitted) > 0 {
			if err := y.runAdmitted(ctx, admitted, fresh, fn); err != nil {
				return err
			}
		}
		round = later
	}
	return nil
}

func (y *batchTry) runAdmitted(ctx context.Context, admitted []*batchCall, fresh []*NewCall, fn func([]*NewCall) error) error {
	y.touched = false
	if len(admitted) == 1 {
		y.running = admitted[0]
	}
	said := fn(slices.Clone(fresh))
	y.running = nil
	status := y.status()
	if len(admitted) == 1 && said == nil && status == failedTx {
		said = fresh[0].Err // what failed is not hidden, if this tells of it
	}
	if len(admitted) > 1 && status != brokenTx && (said != nil || status == failedTx) && !pgwire.Again(said) && !lostRace(said) {
		return fmt.Errorf("%w: %w", errDivide, errors.Join(said))
	}
	said, err := y.after(ctx, said)
	if err != nil {
		return err
	}
	for i, v := range admitted {
		f := fresh[i]
		v.ofKey().busy = false
		if v.said = f.Err; said != nil {
			v.said = said
		}
		v.settle(ctx, f.Outcome)
		if (v.saved || v.swapped) && v.undone() && len(admitted) > 1 {
			return errDivide // its savepoint lies before what the handler wrote for the others
		}
		if err := y.ended(ctx, v); err != nil {
			return err
		}
	}
	return nil
}

// goes reports whether a call that is looked for goes on.
func (y *batchTry) goes(v *batchCall) bool {
	if v.steps != nil && y.failed[v.id] { // it has waited for that, and does not run it once more
		v.err = &semel.Error{Reason: semel.ErrReleased, Operation: string(v.steps.Key().Operation)}
		return false
	}
	return v.steps != nil // else it is invalid
}

// ended sees to what the end of a call leaves to be done. An error: the
// transaction cannot go on.
func (y *batchTry) ended(ctx context.Context, v *batchCall) error {
	if v.ahead.wrote != nil && !v.ahead.done {
		return errPrefetchDiffers
	}
	undone := error(nil)
	if v.undone() {
		undone = v.err
		if v.was != nil && y.t.pending[v.id] == v.was {
			delete(y.t.pending, v.id)
		}
	}
	if v.saved || v.swapped {
		if err := y.leave(ctx, saveSwap, undone); err != nil {
			return err
		}
	}
	if v.err != nil && y.status() != openTx {
		return fmt.Errorf("the transaction failed: %w", v.err)
	}
	y.written = y.written || v.swapped
	if v.undone() && attempted(v.said) {
		y.note(v)
	}
	return nil
}

// attempted reports whether what a handler said is a failed attempt.
func attempted(said error) bool {
	return said != nil && !pgwire.Again(said) && !lostRace(said) && !errors.Is(said, semel.ErrInProgress) && !errors.Is(said, errSwallowed) && !driver.IsNoEffect(said)
}

// note keeps the count of a failed attempt.
func (y *batchTry) note(v *batchCall) {
	if v.won == nil {
		return
	}
	y.failed[v.id] = true
	if v.seen != nil { // its swap was undone
		y.notes = append(y.notes, v)
		return
	}
	is := &pending{p: *v.won, r: v.was.r}
	_, _ = crand.Read(is.p.Owner[:])                                                                                       // it never fails
	_ = is.settle(&store.Settlement{State: store.Released, Attempt: is.p.Attempt, Error: v.said.Error(), Keep: is.p.Keep}) // no outcome: it fits
	is.r.Owner = is.p.Owner
	y.t.pending[v.id] = is
}

// The states of a connection's transaction.
const (
	openTx   = 'T'
	failedTx = 'E'
	brokenTx = 0 // there is no connection
)

func (y *batchTry) status() byte {
	c := y.t.line.Conn()
	if c.IsClosed() {
		return brokenTx
	}
	return c.PgConn().TxStatus()
}

// after sees to what a handler left. If that failed, what it wrote is undone;
// if it cannot be, the transaction is over.
func (y *batchTry) after(ctx context.Context, said error) (error, error) {
	if said == nil && y.status() == failedTx {
		said = errSwallowed
	}
	switch {
	case pgwire.Again(said) || lostRace(said):
		return nil, said
	case y.status() == brokenTx:
		return nil, fmt.Errorf("%w: %w", errBroke, cmp.Or(said, errSwallowed))
	case !y.touched:
		return said, nil
	}
	y.saved = false
	return said, y.leave(ctx, saveHandler, said)
}

// Savepoints: around the change of a record and all that follows, and around
// what a handler writes.
const (
	saveSwap    = "semel_swap"
	saveHandler = "semel_handler"
)

// save sets a savepoint, if this try has any.
func (y *batchTry) save(ctx context.Context, name string) error {
	if !y.careful {
		return nil
	}
	at := y.t.line.Length()
	y.t.line.Push("SAVEPOINT "+name, nil, nil)
	err := y.t.line.Flush(ctx)
	if err != nil {
		y.t.line.Cut(at) // what was not sent must not come behind what it is to undo
	}
	return err
}

// leave releases a savepoint, or if something failed goes back to it.
func (y *batchTry) leave(ctx context.Context, name string, failed error) error {
	switch {
	case !y.careful && failed != nil:
		return errCareful
	case !y.careful:
		return nil
	case failed == nil: // sent with what comes next
		y.t.line.Push("RELEASE "+name, nil, nil)
		return nil
	}
	if err := y.t.line.Flush(ctx); err != nil {
		return err
	}
	// Both as they are: where a statement has failed none can be prepared.
	_, err := y.t.db.db.Exec(ctx, "ROLLBACK TO "+name+"; RELEASE "+name)
	return err
}

// touch comes before what a handler does with its transaction. If it fails, that
// is not done: a statement may be too late by its own context, and not the next.
func (y *batchTry) touch(ctx context.Context) error {
	if y.careful && !y.saved {
		if err := y.save(ctx, saveHandler); err != nil {
			return err
		}
		y.saved = true
	}
	y.touched = true
	return nil
}

// commit writes the records, and commits.
func (y *batchTry) commit(ctx context.Context, t *ownTx) error {
	wrote := y.prefetched != nil && y.prefetched.n > 0
	if wrote && y.prefetched.done != y.prefetched.n {
		return errPrefetchDiffers
	}
	if len(y.t.pending) == 0 && !y.written && !wrote {
		return nil // nothing was done
	}
	y.t.writeHeld()
	t.won = nil
	for i := range y.batchCalls {
		v := &y.batchCalls[i]
		if v.won != nil && !v.undone() {
			t.won = v.won
			break
		}
	}
	err := t.commit(ctx)
	if err == nil {
		return nil
	}
	broke := y.status() == brokenTx
	t.end()
	undone := pgwire.Refused(err) || errors.Is(err, errRolledBack)
	if !undone && t.won != nil {
		is, known := y.a.committed(ctx, t)
		if is {
			return nil
		}
		undone = known
	}
	if broke && undone {
		return fmt.Errorf("%w at COMMIT: %w", errBroke, err)
	}
	if !undone {
		err = fmt.Errorf("%w: %w", semel.ErrInDoubt, err)
	}
	return fmt.Errorf("commit: %w", err)
}
