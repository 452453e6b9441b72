package semellambda

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/semel-go/semel"
)

// record is one record of a batch.
type record[T any] struct {
	event    T
	doc      json.RawMessage // where pointers look
	key      string          // the source's own ID
	id       string          // by which a failure is reported
	group    string          // records with the same group keep their order; empty: it has none
	envelope envelope
}

// batch runs the records of a batch, each in its turn.
type batch[T any] struct {
	run     semel.Runner
	options Options[T]
	handler func(ctx context.Context, event T) error

	stopped map[string]bool // the groups with a record that is not done
	failed  map[callKey]bool
	// reported are the IDs of the records that are not done, in their order.
	reported []string
}

// callKey is the identity of a call within a batch.
type callKey struct{ tenant, key string }

var (
	errAfterFailure = errors.New("semellambda: did not run, because an earlier record of its group or shard, or with its key, is not done")
	errNoTimeLeft   = errors.New("semellambda: did not run, because the time of the invocation is over")
)

// runAll returns the IDs of the records that are not done.
func (b batch[T]) runAll(ctx context.Context, records []record[T]) []string {
	ctx, cancel := withinInvocation(ctx)
	defer cancel()
	b.stopped, b.failed = map[string]bool{}, map[callKey]bool{}
	for i := range records {
		r := &records[i]
		if err := b.runOne(ctx, r); err != nil {
			if r.group != "" {
				b.stopped[r.group] = true
			}
			b.reported = append(b.reported, r.id)
			b.options.report(ctx, r.id, err)
		}
	}
	return b.reported
}

// runOne runs a record. Nil: it is done.
func (b *batch[T]) runOne(ctx context.Context, r *record[T]) error {
	switch {
	case b.stopped[r.group]:
		return errAfterFailure
	case ctx.Err() != nil:
		return errNoTimeLeft
	}
	var call semel.Call
	err := recovered("Options.Key, Tenant or Payload", func() (err error) {
		call, err = b.options.call(r.event, r.doc, r.key, r.envelope)
		return err
	})
	if err != nil {
		return err
	}
	key := callKey{call.Tenant, call.Key}
	if b.failed[key] {
		return errAfterFailure
	}
	err = b.once(ctx, call, r.event)
	if err != nil {
		b.failed[key] = true
	}
	return err
}

// recovered calls a function of the application. If it panics, the panic is its error, because
// otherwise it would fail the whole batch, each time.
func recovered(name string, fn func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("semellambda: %s panicked: %v", name, p)
		}
	}()
	return fn()
}

// once runs a call. After a panic of the handler the call is in doubt.
func (b *batch[T]) once(ctx context.Context, call semel.Call, event T) error {
	err := recovered("the handler", func() error {
		return semel.Once(ctx, b.run, call, func(ctx context.Context, _ *semel.Execution) error { return b.handler(ctx, event) })
	})
	if _, failed := errors.AsType[*semel.Failure](err); failed {
		return err
	}
	if errors.Is(err, semel.ErrNotKept) || errors.Is(err, semel.ErrOutcomeNotStored) {
		return nil
	}
	return err
}
