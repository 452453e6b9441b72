package pgstore

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/driver"
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

// batchCall is one call of a batch, and the store.Tx for its steps. Its key comes
// first, because all are looked for in one statement.
type batchCall struct {
	i     int
	y     *batchTry
	steps driver.TxCall // nil: the call is invalid
	id    pgtype.UUID
	ahead ahead

	swapped bool // it has replaced a record
	saved   bool // behind a savepoint

	p    store.Proposal  // what it claims
	won  *store.Proposal // what it claimed
	seen *store.Seen     // of the record that won replaced; nil: there was none
	was  *pending        // the claim, if it is not written yet

	said error // what its handler said
	res  semel.Result
	err  error
}

// claim goes up to the handler; nil: that is not to be run.
func (v *batchCall) claim(ctx context.Context) (x *semel.Execution) {
	if at := v.ahead.wrote; at != nil {
		v.won = &v.p
		return v.steps.Inserted(v, at.fence)
	}
	x, v.res, v.err = v.steps.Claim(ctx, v)
	return x
}

// settle goes on behind the handler.
func (v *batchCall) settle(ctx context.Context, o store.Outcome) {
	v.res, v.err = v.steps.Settle(ctx, o, v.said)
}

// undone reports whether nothing of the call is to stay. A failure that is kept
// comes bare.
func (v *batchCall) undone() bool {
	f, kept := v.err.(*semel.Failure) //nolint:errorlint // see above
	return v.err != nil && (!kept || f == nil)
}

// Claim implements store.Tx.
func (v *batchCall) Claim(ctx context.Context, p store.Proposal) (f store.Found, err error) {
	if v.y.prefetched != nil {
		if f, is, err := v.y.prefetched.claim(v, &p); is {
			return f, pgwire.Explain("claim in a transaction", err)
		}
	}
	v.p = p
	f, err = v.y.t.claimID(ctx, v.id, &v.p)
	if err == nil && f.Won {
		v.won, v.seen, v.was = &v.p, nil, v.y.t.pending[v.id]
	}
	return f, err
}

// Swap implements store.Tx.
func (v *batchCall) Swap(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
	if err := v.y.save(ctx, saveSwap); err != nil {
		return store.Found{}, err
	}
	v.saved, v.ofKey().found = v.y.careful, nil
	f, err := v.y.t.Swap(ctx, seen, p)
	if err == nil && f.Won {
		v.won, v.seen, v.swapped = &p, &seen, true
	}
	return f, err
}

// Settle implements store.Tx.
func (v *batchCall) Settle(ctx context.Context, l store.Lease, s store.Settlement) error {
	if v.ahead.wrote != nil {
		v.y.prefetched.settle(v, &l, &s)
		return nil
	}
	return v.settleNow(ctx, l, s)
}

func (v *batchCall) settleNow(ctx context.Context, l store.Lease, s store.Settlement) error {
	return pgwire.Explain("settle in a transaction", v.y.t.settle(ctx, v.id, &l, &s))
}

// Nested implements store.Tx. Steps do not use it.
func (v *batchCall) Nested(_ context.Context, fn func() error) error { return fn() }
