package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/semel-go/semel/store"
)

// Tx is one TransactWriteItems in the making: the records of its calls, and the
// writes of their handlers. It holds no lock; if a record has changed meanwhile,
// DynamoDB refuses the whole transaction. Not safe for concurrent use. Make it with
// [Store.NewTx], or let [Atomic.Run] make it.
type Tx struct {
	*txState
	handlers bool // it is a handler's, which cannot end it
	returned bool // and that handler has returned; guarded by mu
}

// txState is what the Tx of the caller and those of its handlers share.
type txState struct {
	store   *Store
	timeout time.Duration // of each request of Atomic.Run, to DynamoDB or Options.Objects; 0: the caller's context limits it
	entries map[store.Key]*entry
	order   []store.Key // of entries

	mu     sync.Mutex // a goroutine that a handler left behind may call Add
	writes []types.TransactWriteItem
	ended  bool
}

// entry is a record in a transaction.
type entry struct {
	base   item // as it was read; nil: there was none
	record store.Record
	// outcome is the value that packOutcome made of the record.
	outcome []byte
	exists  bool // in the transaction
	// replaced is true if the record was changed, and restarted if the steps of
	// base do not stay.
	replaced, restarted bool
	steps               []store.Step // recorded in the transaction
}

var _ interface {
	store.Tx
	store.Journal
} = (*Tx)(nil)

// maxWrites is how many items a transaction of DynamoDB may have.
const maxWrites = 100

var (
	errTxEnded        = errors.New("dynamostore: the transaction, or the handler that got it, has ended")
	errHandlerCommits = errors.New("dynamostore: a handler cannot commit its transaction; it is committed after the handler has returned")
)

// NewTx makes a transaction for [Atomic.In], without I/O. To give it up, drop it.
func (s *Store) NewTx() *Tx {
	return &Tx{txState: &txState{store: s, entries: map[store.Key]*entry{}}}
}

// Add adds writes, which DynamoDB carries out together with the records, or not at
// all. A transaction has at most 100 items, one for each record, and 4 MB. No two
// may be about one item.
func (t *Tx) Add(writes ...types.TransactWriteItem) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended || t.returned {
		return errTxEnded
	}
	if n := len(t.writes) + len(writes); n > maxWrites-max(1, len(t.entries)) {
		return fmt.Errorf("dynamostore: the transaction would have %d writes and %d records; DynamoDB takes %d items together", n, max(1, len(t.entries)), maxWrites)
	}
	t.writes = append(t.writes, writes...)
	return nil
}

// limited is ctx with the time limit of a step.
func (t *txState) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if t.timeout == 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, t.timeout)
}

// load reads a record once for the transaction.
func (t *Tx) load(ctx context.Context, k store.Key) (*entry, error) {
	if t.ended {
		return nil, errTxEnded
	}
	if e := t.entries[k]; e != nil {
		return e, nil
	}
	ctx, cancel := t.limited(ctx)
	defer cancel()
	e := &entry{}
	it, err := t.store.read(ctx, k)
	switch {
	case errors.Is(err, store.ErrNotFound):
	case err != nil:
		return nil, err
	default:
		if e.record, err = t.store.readRecord(ctx, k, it); err != nil {
			return nil, err
		}
		e.base, e.exists = it, true
	}
	t.entries[k] = e
	t.order = append(t.order, k)
	return e, nil
}

// Claim implements store.Tx.
func (t *Tx) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
	ctx, cancel := t.limited(ctx)
	defer cancel()
	if err := t.store.checkClock(ctx, p.State); err != nil {
		return store.Found{}, t.store.explain("claim", err)
	}
	e, err := t.load(ctx, p.Key)
	if err != nil {
		return store.Found{}, t.store.explain("claim", err)
	}
	if err := t.store.clock.checkFor(p.State); err != nil { // the reply may have shown a wrong clock
		return store.Found{}, t.store.explain("claim", err)
	}
	now := t.store.clock.read()
	if !e.exists {
		e.record = p.Insert(now, t.store.sweptFence.Load())
		e.exists, e.replaced, e.restarted = true, true, true
	}
	return t.store.found(&e.record, &p, now), nil
}

// Swap implements store.Tx.
func (t *Tx) Swap(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
	ctx, cancel := t.limited(ctx)
	defer cancel()
	e, err := t.load(ctx, seen.Key)
	now := t.store.settleTime(ctx)
	switch {
	case err != nil:
		return store.Found{}, t.store.explain("swap", err)
	case !e.exists:
		return store.Found{Now: now}, store.ErrNotFound
	case e.record.Seen() == seen:
		r := p.Replace(&e.record, now)
		outcome, err := t.store.packOutcome(ctx, &r)
		if err != nil {
			return store.Found{}, t.store.explain("swap", err)
		}
		e.record, e.outcome, e.replaced = r, outcome, true
		if p.Restart {
			e.restarted, e.steps = true, nil
		}
	}
	return t.store.found(&e.record, &p, now), nil
}

// Settle implements store.Tx.
func (t *Tx) Settle(ctx context.Context, l store.Lease, end store.Settlement) error {
	ctx, cancel := t.limited(ctx)
	defer cancel()
	e, err := t.load(ctx, l.Key)
	switch {
	case err != nil:
		return t.store.explain("settle", err)
	case !e.exists || e.record.Lease() != l:
		return store.ErrLeaseLost
	case e.record.State == store.Processing:
		r := end.Apply(e.record, t.store.settleTime(ctx))
		outcome, err := t.store.packOutcome(ctx, &r)
		if err != nil { // if it is too large, the Guard settles a tombstone
			return t.store.explain("settle", err)
		}
		e.record, e.outcome, e.replaced = r, outcome, true
		return nil
	case end.Done(&e.record):
		return nil
	}
	return store.ErrLeaseLost
}

// RecordStep implements store.Journal.
func (t *Tx) RecordStep(ctx context.Context, l store.Lease, step store.Step) error {
	e, err := t.load(ctx, l.Key)
	if err != nil {
		return t.store.explain("record a step", err)
	}
	if !e.exists || e.record.Lease() != l || e.record.State != store.Processing {
		return store.ErrLeaseLost
	}
	all, err := e.allSteps()
	if err != nil {
		return t.store.explain("record a step", err)
	}
	if slices.ContainsFunc(all, func(s store.Step) bool { return s.Name == step.Name }) {
		return store.ErrStepRecorded
	}
	b, err := t.store.encodeStep(&step)
	if err != nil {
		return t.store.explain("record a step", err)
	}
	total := stepSize(&step, b)
	for i := range all {
		b, err := t.store.encodeStep(&all[i])
		if err != nil {
			return t.store.explain("record a step", err)
		}
		total += stepSize(&all[i], b)
	}
	if limit := stepLimit(&step); total > limit {
		return t.store.explain("record a step", tooManySteps(limit))
	}
	step.Outcome, step.Recorded = step.Outcome.Clone(), t.store.clock.read()
	e.steps = append(slices.Clip(e.steps), step)
	return nil
}

// Steps implements store.Journal.
func (t *Tx) Steps(ctx context.Context, l store.Lease) ([]store.Step, error) {
	e, err := t.load(ctx, l.Key)
	if err != nil {
		return nil, t.store.explain("read the steps", err)
	}
	if !e.exists || e.record.Lease() != l {
		return nil, store.ErrLeaseLost
	}
	steps, err := e.allSteps()
	return steps, t.store.explain("read the steps", err)
}

// allSteps are the steps of a record in the transaction.
func (e *entry) allSteps() ([]store.Step, error) {
	if e.restarted || e.base == nil {
		return slices.Clone(e.steps), nil
	}
	steps, err := stepsOf(e.base)
	return append(steps, e.steps...), err
}

// Nested implements store.Tx. It undoes nothing in the table, because nothing has
// been sent.
func (t *Tx) Nested(_ context.Context, fn func() error) (err error) {
	t.mu.Lock()
	writes := len(t.writes)
	t.mu.Unlock()
	saved := maps.Clone(t.entries)
	for k, e := range saved {
		kept := *e
		saved[k] = &kept
	}
	order, done := len(t.order), false
	defer func() {
		if !done || err != nil {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.entries, t.order, t.writes = saved, t.order[:order:order], t.writes[:writes:writes]
		}
	}()
	err = fn()
	done = true
	return err
}
