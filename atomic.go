package semel

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/semel-go/semel/store"
)

// RunIn runs a call inside a transaction of the store: for people who write
// stores, whose Atomic calls it. The record and what the handler writes in the
// transaction commit together, so that effect happens exactly once.
//
// Commit if the error is nil or a *Failure, which is kept while the handler's
// own writes are undone; else roll back. Nothing is left in the transaction
// then, even if it is committed all the same. It never waits, for the caller
// may hold locks: a duplicate in flight is ErrInProgress at once.
func (g *Guard) RunIn(ctx context.Context, tx store.Tx, call Call, fn Handler) (Result, error) {
	t := alones.Get().(*alone)
	res, err := t.runIn(ctx, g, tx, &call, fn)
	t.free() // not after a panic
	return res, err
}

// alone is the inTx of RunIn. It is used again: all that a handler can reach is
// its Execution, and what the store gives it.
type alone struct {
	inTx
	ctx  context.Context //nolint:containedctx // for what Nested calls
	fn   Handler
	x    *Execution // once the handler is to run
	o    Outcome
	said *passedOn // to Nested

	run, handle func() error // for Nested
}

var alones = sync.Pool{New: func() any {
	t := &alone{}
	t.run, t.handle = t.runNested, t.handleNested
	return t
}}

func (t *alone) free() {
	*t = alone{run: t.run, handle: t.handle}
	alones.Put(t)
}

func (t *alone) runIn(ctx context.Context, g *Guard, tx store.Tx, call *Call, fn Handler) (Result, error) {
	err := t.init(g, call)
	if err != nil {
		return Result{}, err
	}
	t.tx, t.fn, t.ctx = tx, fn, ctx
	err = tx.Nested(ctx, t.run)
	said := t.said
	switch {
	case err == nil:
		return t.end(nil)
	case said == nil: // what was kept could not be written
		t.result, err = Result{}, t.unavailable(ctx, err)
	case err == error(said): //nolint:errorlint // the very error that Nested was given
		err = said.error
	default: // it could not be undone
		t.result, err = Result{}, t.unavailable(ctx, textOf(err))
	}
	return t.end(err)
}

// inTx is a visit whose claim, run and settlement are one transaction.
type inTx struct {
	visit
	tx     store.Tx
	owner  store.Owner // of the first claim, if that was proposed before; else zero
	result Result
	kept   error // the failure that is kept, though the transaction commits
}

func (t *inTx) init(g *Guard, call *Call) error {
	if err := g.check(call); err != nil {
		return err
	}
	if g.opt.Rerun || g.opt.UnprotectedOnOutage {
		return invalid(call.Operation(), errors.New("options: Rerun and UnprotectedOnOutage have no meaning in a transaction"))
	}
	*t = inTx{}
	t.begin(g, call)
	return nil
}

// end is what the caller gets.
func (t *inTx) end(err error) (Result, error) {
	if err == nil {
		err = t.kept
	}
	return t.result, passOn(err)
}

func (t *alone) runNested() (err error) {
	if t.x, err = t.claim(t.ctx, nil); t.x != nil {
		err = t.execute()
	}
	return t.say(err)
}

// say is err as Nested is to give it back.
func (t *alone) say(err error) error {
	if t.said = nil; err == nil {
		return nil
	}
	t.said = &passedOn{err}
	return t.said
}

// claim goes up to the handler, with an Execution for it, one of them. Nil: it
// is not to be run, and the call has its end.
func (t *inTx) claim(ctx context.Context, of *executions) (*Execution, error) {
	p := t.propose()
	if t.owner != (store.Owner{}) {
		p.Owner = t.owner
	}
	f, err := t.tx.Claim(ctx, p)
	if err != nil {
		return nil, t.unavailable(ctx, err)
	}
	if f.Won && !t.call.token.IsZero() { // a bearer only looks; the claim is undone
		return nil, t.refuse(ctx, EventRefused, ErrExpired, 0, nil)
	}
	if !f.Won {
		d := t.decide(&f.Record, f.Now)
		switch d.Action {
		case store.Execute, store.TakeOver:
			f, err = t.tx.Swap(ctx, f.Record.Seen(), t.next(&f.Record, d))
			if errors.Is(err, store.ErrNotFound) && t.call.token.IsZero() {
				f, err = t.tx.Claim(ctx, t.propose()) // it was swept since it was seen
			}
			if err != nil {
				return nil, t.unavailable(ctx, err)
			}
			if !f.Won {
				return nil, t.refuse(ctx, EventBusy, ErrInProgress, 0, nil)
			}
		case store.InProgress:
			return nil, t.refuse(ctx, EventBusy, ErrInProgress, d.Until.Sub(f.Now), nil)
		case store.DoPark, store.Parked:
			return nil, t.refuse(ctx, EventParkedRefused, ErrParked, 0, lastError(&f.Record))
		case store.Exhausted:
			if d.Policy == Park {
				return nil, t.refuse(ctx, EventParkedRefused, ErrParked, 0, errors.New(exhaustedText(&f.Record)))
			}
			t.kept = exhaustedFailure(f.Record.Attempt, lastText(&f.Record))
			return nil, nil
		default:
			var err error
			t.result, err = t.answer(ctx, &f.Record, d)
			if _, ok := errors.AsType[*Failure](err); ok {
				t.kept, err = err, nil
			}
			return nil, err
		}
	}
	x := of.next()
	x.begin(t.g, &f.Record, now())
	return x, nil
}

// execute runs the handler. Its writes are undone if it fails, and the record
// stays to say so.
func (t *alone) execute() error {
	defer t.x.ctx.end(nil)
	err := t.tx.Nested(t.ctx, t.handle)
	said := t.said
	if err != nil && err != error(said) { //nolint:errorlint // the very error that Nested was given; not the handler's error: its writes may still be there
		return t.unavailable(t.ctx, textOf(err))
	}
	if said != nil {
		err = said.error
	}
	return t.settle(t.ctx, t.x, t.o, err)
}

func (t *alone) handleNested() (err error) {
	t.o, err = t.fn(t.x.within(t.ctx), t.x)
	return t.say(err)
}

// settle records what the handler said. An error: nothing is to be left of it.
func (t *inTx) settle(ctx context.Context, x *Execution, o Outcome, err error) error {
	g := t.g
	s, kind := g.completion(o), EventExecuted
	if err != nil {
		f, ok := errors.AsType[*Failure](err)
		if !ok || f == nil || SaysNoEffect(err) {
			g.ended(ctx, x, EventReleased, err)
			return err
		}
		f = f.clean()
		s, kind, t.kept = g.failed(f), EventFailed, f
	}
	s.Attempt = x.attempt
	serr := t.tx.Settle(ctx, x.lease, s)
	if errors.Is(serr, store.ErrTooLarge) {
		s.Outcome = tombstone(s.Outcome)
		serr = t.tx.Settle(ctx, x.lease, s)
	}
	if serr != nil {
		t.kept = nil
		return t.unavailable(ctx, fmt.Errorf("settle: %w", serr))
	}
	t.result = Result{Outcome: o, codecs: g.opt.Codecs}
	g.ended(ctx, x, kind, err)
	return nil
}
