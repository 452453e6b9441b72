package pgstore

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/driver"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
	"github.com/semel-go/semel/store/pgstore/internal/table"
)

// errPrefetchDiffers: the handler ended differently from the records that the prefetch
// inserted.
var errPrefetchDiffers = errors.New("the batch ended differently from its prefetched records")

// prefetch is the work of a prefetch: it inserts a record for each new call, completed
// and without an outcome.
type prefetch struct {
	settlement      store.Settlement // of each call
	columns         table.StateColumns
	rows            []*batchCall // by id
	deferred        []*batchCall // by id: keys that an earlier batch has too
	lockedElsewhere int          // how many of rows were locked by another transaction
	written         int          // how many records it has inserted
	confirmed       int          // how many of these the handlers have confirmed
}

// compareCalls orders calls by the ids of their keys.
func compareCalls(a, b *batchCall) int { return pgwire.CompareIDs(a.id, b.id) }

// prefetchResult is what a prefetch has found or inserted for a call.
type prefetchResult struct {
	firstCall *batchCall          // the first call with the key, which has the result; nil: this one
	completed *table.CompletedRow // a record that will not change, or nil
	state     *keyState           // any other state, or nil
	inserted  *insertion          // nil: no record was inserted
	confirmed bool                // the call has ended as its record says
}

// insertion has the time and the fencing token of records that one statement inserted.
type insertion struct {
	now, sweptFence int64
	fence           uint64
}

// keyResult is the result for the key of the call.
func (c *batchCall) keyResult() *prefetchResult {
	if c.prefetched.firstCall != nil {
		c = c.prefetched.firstCall
	}
	return &c.prefetched
}

// claim answers a claim from the results of the prefetch. It reports false if there is
// no result, so that the key must be looked up.
func (p *prefetch) claim(call *batchCall, proposal *store.Proposal) (f store.Found, ok bool, err error) {
	switch result := call.keyResult(); {
	case result.confirmed:
		now := store.Time(result.inserted.now)
		r := p.settlement.Apply(call.prefetched.firstCall.proposal.Insert(now, uint64(result.inserted.sweptFence)), now) //nolint:gosec // it is a time
		return proposal.Found(&r, now), true, nil
	case result.inserted != nil: // the first call must end first
		return f, true, errPrefetchDiffers
	case result.completed != nil:
		return result.completed.Found(proposal), true, nil
	case result.state != nil:
		return result.state.found(proposal)
	}
	return f, false, nil
}

// leaveOut moves keys that an earlier batch has to deferred.
func (p *prefetch) leaveOut(others []*batchCall) {
	has := func(r *batchCall) bool {
		for len(others) > 0 && compareCalls(others[0], r) < 0 {
			others = others[1:]
		}
		return len(others) > 0 && compareCalls(others[0], r) == 0
	}
	from := slices.IndexFunc(p.rows, has)
	if from < 0 {
		return
	}
	rows := slices.Clone(p.rows[:from])
	for _, r := range p.rows[from:] {
		if has(r) {
			p.deferred = append(p.deferred, r)
		} else {
			rows = append(rows, r)
		}
	}
	p.rows = rows
	slices.SortFunc(p.deferred, compareCalls)
}

// settle compares a settlement with the record that the prefetch inserted.
func (p *prefetch) settle(call *batchCall, lease *store.Lease, settlement *store.Settlement) {
	outcome := &settlement.Outcome
	if settlement.State == p.settlement.State && settlement.Attempt == p.settlement.Attempt && settlement.Error == "" && settlement.Keep == p.settlement.Keep && lease.Fence == call.prefetched.inserted.fence && lease.Owner == call.proposal.Owner &&
		outcome.Code == 0 && !outcome.Gone && outcome.Codec == "" && len(outcome.Header) == 0 && len(outcome.Body) == 0 {
		call.prefetched.confirmed = true
		p.confirmed++
	}
}

// newPrefetch begins the steps of calls that can be prefetched. It returns nil if the
// calls differ in more than their keys, owners and fingerprints.
func (a *Atomic) newPrefetch(ctx context.Context, calls []semel.Call) *batchTry {
	batch := a.newBatchTry(nil, false)
	batch.prepareCalls(all(len(calls)), calls)
	prefetch := &prefetch{settlement: store.Settlement{State: store.Completed, Attempt: 1, Keep: a.guard.Retention()}, rows: make([]*batchCall, 0, len(calls))}
	prefetch.columns, _ = table.NewStateColumns(prefetch.settlement.State, &prefetch.settlement.Outcome, 0, prefetch.settlement.Keep) // only an outcome can make it fail
	possible := true
	for i := range batch.calls {
		call := &batch.calls[i]
		if call.steps == nil {
			continue
		}
		ok := false
		call.proposal, ok = call.steps.Proposal(ctx)
		prefetch.rows = append(prefetch.rows, call)
		possible = possible && ok && table.Alike(&call.proposal, &prefetch.rows[0].proposal)
	}
	if !possible || len(prefetch.rows) == 0 {
		return nil
	}
	slices.SortFunc(prefetch.rows, func(a, other *batchCall) int {
		return cmp.Or(compareCalls(a, other), cmp.Compare(a.index, other.index))
	})
	rows := prefetch.rows[:0]
	for _, r := range prefetch.rows { // only the first call with a key runs
		if n := len(rows); n > 0 && compareCalls(r, rows[n-1]) == 0 {
			r.prefetched.firstCall = rows[n-1]
		} else {
			rows = append(rows, r)
		}
	}
	prefetch.rows = rows
	batch.prefetch = prefetch
	return batch
}

// Claim implements store.Tx.
func (c *batchCall) Claim(ctx context.Context, p store.Proposal) (f store.Found, err error) {
	if c.batch.prefetch != nil {
		if f, ok, err := c.batch.prefetch.claim(c, &p); ok {
			return f, pgwire.Explain("claim in a transaction", err)
		}
	}
	c.proposal = p
	f, err = c.batch.tx.claimID(ctx, c.id, &c.proposal)
	if err == nil && f.Won {
		c.claimed, c.replaced, c.pendingClaim = &c.proposal, nil, c.batch.tx.pending[c.id]
	}
	return f, err
}

// Swap implements store.Tx.
func (c *batchCall) Swap(ctx context.Context, seen store.Seen, p store.Proposal) (f store.Found, err error) {
	if err := c.batch.setSavepoint(ctx, saveSwap); err != nil {
		return store.Found{}, err
	}
	c.hasSavepoint, c.keyResult().state = c.batch.useSavepoints, nil
	err = c.batch.tx.limited(ctx, func(ctx context.Context) error {
		f, err = c.batch.tx.Swap(ctx, seen, p)
		return err
	})
	if err == nil && f.Won {
		c.claimed, c.replaced, c.swapped = &p, &seen, true
	}
	return f, err
}

// Settle implements store.Tx.
func (c *batchCall) Settle(ctx context.Context, l store.Lease, s store.Settlement) error {
	if c.prefetched.inserted != nil {
		c.batch.prefetch.settle(c, &l, &s)
		return nil
	}
	return c.settleNow(ctx, l, s)
}

func (c *batchCall) settleNow(ctx context.Context, l store.Lease, s store.Settlement) error {
	return pgwire.Explain("settle in a transaction", c.batch.tx.limited(ctx, func(ctx context.Context) error {
		return c.batch.tx.settle(ctx, c.id, &l, &s)
	}))
}

// Steps implements store.Journal, because a leased attempt of the call may have recorded steps.
func (c *batchCall) Steps(ctx context.Context, l store.Lease) (steps []store.Step, err error) {
	err = c.batch.tx.limited(ctx, func(ctx context.Context) error {
		steps, err = c.batch.tx.Steps(ctx, l)
		return err
	})
	return steps, err
}

// RecordStep implements store.Journal. The steps of a call in a transaction commit with it, so
// that none is recorded.
func (c *batchCall) RecordStep(ctx context.Context, l store.Lease, step store.Step) error {
	return c.batch.tx.RecordStep(ctx, l, step)
}

// Nested implements store.Tx. Steps do not use it.
func (c *batchCall) Nested(_ context.Context, fn func() error) error { return fn() }

// lookUpCalls looks up the keys of all calls in one statement.
func (b *batchTry) lookUpCalls(ctx context.Context, which []int, calls []semel.Call) error {
	b.prepareCalls(which, calls)
	keys := make([]pgtype.UUID, 0, len(which))
	for i := range b.calls {
		if c := &b.calls[i]; c.steps != nil {
			keys = append(keys, c.id)
		}
	}
	return b.tx.lookUpMany(ctx, keys)
}

// prepareCalls begins the steps of calls. The indexes in which must be consecutive.
func (b *batchTry) prepareCalls(which []int, calls []semel.Call) {
	if len(which) == 0 {
		return
	}
	b.calls = slices.Grow(b.calls[:0], len(which))[:len(which)]
	for n, i := range which {
		c := &b.calls[n]
		c.index, c.batch = i, b
		if c.steps, c.err = driver.NewTxCall(b.atomic.guard, calls[i]); c.err == nil {
			c.id = table.ID(c.steps.Key())
		}
	}
}
