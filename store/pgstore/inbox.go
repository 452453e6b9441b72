package pgstore

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// Ended is how one call of a batch ended: what [Atomic.Run] would have
// returned for it.
type Ended struct {
	semel.Result
	Err error
}

// Fresh is a call of a batch whose work is to be done now. The handler may set
// Outcome and Err.
type Fresh struct {
	Index     int // of the call
	Execution *semel.Execution
	// Outcome is kept, and given to each duplicate. Zero is fine.
	Outcome store.Outcome
	// Err says that this call failed and nothing was written for it: a
	// *semel.Failure is kept, any other error is noted as a failed attempt. The
	// others go on.
	Err error
}

// RunBatch runs fn for each of calls whose work is not done yet, in their
// order, all in one transaction: for a whole poll of a broker. It is told which
// call by its index; [TxFrom] gives it the transaction, and the rules of
// [Atomic.Run] hold. The keys are claimed in one statement, and the records
// written in one, with the COMMIT: three round trips and fn's own. It returns
// when all is committed, with the end of each call in the order of calls;
// acknowledge those messages whose Err is nil, or a failure.
//
// A call that fails takes no other with it. If it has used the transaction,
// all is rolled back and fn runs again for each, this time behind savepoints:
// so fn must bear to run again, and have no effect but in the transaction. Of
// a key that is there twice the second gets what the first left. A duplicate in
// flight elsewhere is semel.ErrInProgress; there is no waiting, whatever
// Call.Wait says. What the server refuses because of another transaction is run
// again, whole, then in halves, and so is what it refuses to commit; so a
// batch may end as several transactions, in order. A connection that breaks is
// semel.ErrUnavailable for each call that it was to commit, and for those behind
// them: fn is not run for what might have to come later. But one that breaks in fn,
// or at COMMIT, may be a call's doing, which would break it each time: if the store
// answers, and nothing was committed, the batch runs again, in halves, and
// semel.ErrUnavailable is the end of the call that was alone, a noted attempt.
//
// Each key takes an advisory lock for the time of the transaction (see
// [Atomic.In] for how many there are); more than 1,000 calls are several
// transactions. In a handler of this store RunBatch joins its transaction.
func (a *Atomic) RunBatch(ctx context.Context, calls []semel.Call, fn func(ctx context.Context, x *semel.Execution, i int) (store.Outcome, error)) []Ended {
	b := &batch{a: a, calls: calls, ended: make([]Ended, len(calls)), each: fn}
	if tx, ok := a.s.inside(ctx); ok {
		for i, c := range calls {
			b.ended[i].Result, b.ended[i].Err = a.In(tx).Run(ctx, c, func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
				return fn(ctx, x, i)
			})
		}
		return b.ended
	}
	b.run(ctx)
	return b.ended
}

// RunWhole is RunBatch with one handler for all calls whose work is to be done,
// so that their rows can be written in one statement: fn is given the
// transaction by its context ([TxFrom]), and the calls in their order. It is
// not run if there are none.
//
// If fn returns an error, all it wrote is undone, and it runs again for halves
// of the batch, until the call that makes it fail is alone, and the error is
// that call's. It is cheaper if fn sets Err of the one that it cannot do: then
// fn runs again only if that call has a record already, because it failed before
// or has expired. If fn panics nothing is noted as an attempt, unless it was run
// for one call. A second call with the same key gets what the first left. In a
// handler of this store RunWhole is an error: use [Atomic.Admit].
func (a *Atomic) RunWhole(ctx context.Context, calls []semel.Call, fn func(ctx context.Context, fresh []*Fresh) error) []Ended {
	return a.runWhole(ctx, nil, calls, fn)
}

func (a *Atomic) runWhole(ctx context.Context, n *Next, calls []semel.Call, fn func(ctx context.Context, fresh []*Fresh) error) []Ended {
	b := &batch{a: a, calls: calls, ended: make([]Ended, len(calls)), whole: fn, next: n}
	if n != nil {
		n.runs = b
	}
	if _, ok := a.s.inside(ctx); ok {
		b.fail(all(len(calls)), errors.New("pgstore: RunWhole in a handler of the same store; use Admit with its transaction"))
		return b.ended
	}
	b.run(ctx)
	return b.ended
}

// maxTogether is how many calls go in one transaction at most: each takes an
// advisory lock.
const maxTogether = 1000

// batch is a call of RunBatch or RunWhole.
type batch struct {
	a     *Atomic
	calls []semel.Call
	ended []Ended
	each  func(ctx context.Context, x *semel.Execution, i int) (store.Outcome, error)
	whole func(ctx context.Context, fresh []*Fresh) error

	failed map[pgtype.UUID]bool // keys with a failed attempt in this batch
	next   *Next                // of which it is the run; nil: of none
	outage error                // what is left ends by this; nil: there is none
	now    *inbox               // the try that runs; nil: none does
}

func all(n int) []int {
	which := make([]int, n)
	for i := range which {
		which[i] = i
	}
	return which
}

func (b *batch) run(ctx context.Context) {
	for which := range slices.Chunk(all(len(b.calls)), maxTogether) {
		// Where calls fail, others often follow: for some batches the
		// savepoints come first.
		wary := b.a.wary.Add(-1) >= 0
		if !wary {
			b.a.wary.Add(1)
		}
		b.part(ctx, which, wary)
	}
}

// wholeTries is how often a batch that meets others is run whole.
const wholeTries = 3

// part runs some of the calls, in one transaction or, if that cannot be, in
// halves.
func (b *batch) part(ctx context.Context, which []int, careful bool) {
	if b.outage != nil {
		b.fail(which, b.outage)
		return
	}
	careful = careful || len(which) == 1 // one that fails should not run twice
	for refusals, pause := 1, 5*time.Millisecond; ; refusals, pause = refusals+1, pause*3/2 {
		err := b.try(ctx, which, careful)
		meets := again(err) || lostRace(err)
		switch {
		case err == nil:
			return
		case errors.Is(err, errTaken):
			b.a.wary.Store(10)
			continue
		case errors.Is(err, errCareful):
			careful = true
			b.a.wary.Store(10)
			continue
		case len(which) > 1 && (divides(err) || meets && refusals >= wholeTries):
			half := len(which) / 2
			b.part(ctx, which[:half], careful)
			b.part(ctx, which[half:], careful)
			return
		case meets && refusals < tries && sleep(ctx, pause):
			continue
		}
		if !meets && !divides(err) { // else it may be the fault of these calls
			b.outage = err
		}
		b.fail(which, err)
		return
	}
}

// divides reports whether the server refused a transaction for what may be the
// fault of one call in it, or because it was too large.
func divides(err error) bool {
	if errors.Is(err, errDivide) || errors.Is(err, errRolledBack) {
		return true
	}
	return code(err) == outOfMemory || RefusedForContent(err) && !lostRace(err) // 53200: too many locks
}

// fail ends calls for what is not their fault.
func (b *batch) fail(which []int, err error) {
	for _, i := range which {
		b.ended[i] = Ended{Err: unavailable(b.calls[i], explain("batch", err))}
	}
}
