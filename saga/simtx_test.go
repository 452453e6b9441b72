package saga_test

import (
	"context"
	"errors"
	"slices"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/driver"
	"github.com/semel-go/semel/store"
)

// simAtomic makes transactions in the database that has the record of the saga and an
// outbox, as the Atomic of a store does.
type simAtomic struct {
	p     *simProcess
	guard *semel.Guard
	id    string // of the saga
}

type simTxKey struct{}

// Run implements semel.Runner.
func (a simAtomic) Run(ctx context.Context, call semel.Call, fn semel.Handler) (semel.Result, error) {
	t := &simTx{p: a.p, id: a.id}
	var running *semel.Execution
	res, err := driver.RunIn(ctx, a.guard, t, call, func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
		running = x
		return fn(context.WithValue(ctx, simTxKey{}, t), x)
	})
	if _, kept := errors.AsType[*semel.Failure](err); err != nil && !kept {
		return res, err
	}
	if _, cerr := through(a.p, func() (struct{}, error) { return struct{}{}, t.commit() }); cerr != nil {
		return semel.Result{}, &semel.Error{Reason: semel.ErrUnavailable, Cause: errors.Join(semel.ErrInDoubt, cerr)}
	}
	driver.Committed(running)
	return res, err
}

// simTx is a transaction. Its writes take effect together when it commits.
type simTx struct {
	p        *simProcess
	id       string
	lease    store.Lease
	step     *store.Step
	messages []string // names of the steps that have put them
	over     bool     // it has committed, or cannot any more
}

var errNoCall = errors.New("a transaction of a step has no call of its own")

// Claim implements store.Tx.
func (t *simTx) Claim(context.Context, store.Proposal) (store.Found, error) {
	return store.Found{}, errNoCall
}

// Swap implements store.Tx.
func (t *simTx) Swap(context.Context, store.Seen, store.Proposal) (store.Found, error) {
	return store.Found{}, errNoCall
}

// Settle implements store.Tx.
func (t *simTx) Settle(context.Context, store.Lease, store.Settlement) error { return errNoCall }

// Nested implements store.Tx.
func (t *simTx) Nested(_ context.Context, fn func() error) error {
	n, step := len(t.messages), t.step
	err := fn()
	if err != nil {
		t.messages, t.step = t.messages[:n], step
	}
	return err
}

// RecordStep implements store.Journal.
func (t *simTx) RecordStep(_ context.Context, l store.Lease, s store.Step) error {
	t.lease, t.step = l, &s
	return nil
}

// Steps implements store.Journal.
func (t *simTx) Steps(ctx context.Context, l store.Lease) ([]store.Step, error) {
	return t.p.Store.Steps(ctx, l)
}

// commit records the step and sends the messages, or does neither. A commit that comes
// twice, or late, commits one transaction at most.
func (t *simTx) commit() error {
	w := t.p.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if t.over || t.step == nil {
		return nil
	}
	steps, err := w.st.Steps(context.Background(), t.lease)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(steps, func(s store.Step) bool { return s.Name == t.step.Name }) {
		return store.ErrStepRecorded
	}
	if err := w.st.RecordStep(context.Background(), t.lease, *t.step); err != nil {
		return err
	}
	t.over = true
	for _, name := range t.messages {
		w.happens(t.id, simEvent{name: name})
	}
	return nil
}

// put puts a message into the outbox. Without a transaction it is there at once.
func (w *simWorld) put(ctx context.Context, id, name string) {
	if t, ok := ctx.Value(simTxKey{}).(*simTx); ok {
		t.messages = append(t.messages, name)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.happens(id, simEvent{name: name})
}
