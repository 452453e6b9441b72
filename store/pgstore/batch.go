package pgstore

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
)

// Ended is how one call of a batch has ended: what [Atomic.Run] would return for it.
type Ended struct {
	semel.Result
	Err error
}

// NewCall is a call of a batch that is not done yet. The handler does its work, and
// may set Outcome and Err.
type NewCall struct {
	Index     int // of the call in the batch
	Execution *semel.Execution
	// Outcome is kept, and each duplicate gets it. It may stay zero.
	Outcome store.Outcome
	// Err says that this call has failed, and that nothing was written for it. A
	// *semel.Failure is kept; any other error is noted as a failed attempt. The
	// other calls go on.
	Err error
}

// RunWhole runs fn once for all calls whose work is not done yet, in one
// transaction, so that fn can write their rows in one statement: for one poll of
// a broker. [TxFrom] gives fn the transaction. RunWhole returns after the commit,
// with the end of each call in the order of calls. It does not run fn if all calls
// are done. It does not wait for duplicates in flight, whatever Call.Wait says.
//
// A call that fails takes no other with it: fn sets NewCall.Err for the call that
// it cannot do, or returns an error, and runs again for halves of the batch until
// the failing call is alone. So fn may run several times, and must have no effect
// but in the transaction. For refused commits and broken connections, see
// "Batches" in the package documentation.
func (a *Atomic) RunWhole(ctx context.Context, calls []semel.Call, fn func(ctx context.Context, fresh []*NewCall) error) []Ended {
	return a.runWhole(ctx, nil, calls, fn)
}

func (a *Atomic) runWhole(ctx context.Context, n *PrefetchedBatch, calls []semel.Call, fn func(ctx context.Context, fresh []*NewCall) error) []Ended {
	b := &batchRun{a: a, calls: calls, ended: make([]Ended, len(calls)), whole: fn, next: n}
	if n != nil {
		n.runs = b
	}
	if _, ok := a.s.inside(ctx); ok {
		b.fail(ctx, all(len(calls)), errors.New("pgstore: RunWhole inside a handler of the same store; run its calls one by one, with Run"))
		return b.ended
	}
	b.run(ctx)
	return b.ended
}

// maxTogether is how many calls go in one transaction at most: each takes an
// advisory lock.
const maxTogether = 1000

// batchRun is one call of RunWhole.
type batchRun struct {
	a     *Atomic
	calls []semel.Call
	ended []Ended
	whole func(ctx context.Context, fresh []*NewCall) error

	failed map[pgtype.UUID]bool // keys with a failed attempt in this batch
	next   *PrefetchedBatch     // of which it is the run; nil: of none
	outage error                // what is left ends by this; nil: there is none
	now    *batchTry            // the try that runs; nil: none does
}

func all(n int) []int {
	which := make([]int, n)
	for i := range which {
		which[i] = i
	}
	return which
}

func (b *batchRun) run(ctx context.Context) {
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
func (b *batchRun) part(ctx context.Context, which []int, careful bool) {
	if b.outage != nil {
		b.fail(ctx, which, b.outage)
		return
	}
	careful = careful || len(which) == 1 // one that fails should not run twice
	for refusals, pause := 1, 5*time.Millisecond; ; refusals, pause = refusals+1, pause*3/2 {
		err := b.try(ctx, which, careful)
		meets := pgwire.Again(err) || lostRace(err)
		switch {
		case err == nil:
			return
		case errors.Is(err, errPrefetchDiffers):
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
		case meets && refusals < pgwire.Tries && pgwire.Sleep(ctx, pause):
			continue
		}
		if !meets && !divides(err) { // else it may be the fault of these calls
			b.outage = err
		}
		b.fail(ctx, which, err)
		return
	}
}

// divides reports whether the server refused a transaction for what may be the
// fault of one call in it, or because it was too large.
func divides(err error) bool {
	if errors.Is(err, errDivide) || errors.Is(err, errRolledBack) {
		return true
	}
	return pgwire.Code(err) == pgwire.OutOfMemory || pgwire.RefusedForContent(err) && !lostRace(err) // 53200: too many locks
}

// fail ends calls for what is not their fault.
func (b *batchRun) fail(ctx context.Context, which []int, err error) {
	for _, i := range which {
		b.ended[i] = Ended{Err: unavailable(ctx, b.calls[i], pgwire.Explain("batch", err))}
	}
}
