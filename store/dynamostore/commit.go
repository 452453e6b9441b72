package dynamostore

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// ErrWriteRefused says that DynamoDB refused a write of the handler, for example because its
// condition was false. Nothing was written, and nothing is recorded. The error wraps
// a *types.TransactionCanceledException, whose last reasons are those of the writes
// in the order of [Tx.Add].
var ErrWriteRefused = errors.New("a write of the handler was refused")

// Commit sends the transaction, and ends it. An error that is [ErrConflict] or
// [ErrWriteRefused] or store.ErrTooLarge says that nothing was written. After an
// error that is semel.ErrInDoubt the transaction may have been carried out; the same
// calls, made again, find out.
func (t *Tx) Commit(ctx context.Context) error {
	return t.store.explain("commit", t.commit(ctx))
}

func (t *Tx) commit(ctx context.Context) error {
	if t.handlers {
		return errHandlerCommits
	}
	t.mu.Lock()
	ended := t.ended
	t.ended = true
	t.mu.Unlock() // after which nothing changes the writes
	if ended {
		return errTxEnded
	}
	records, err := t.recordWrites()
	if err != nil || len(records)+len(t.writes) == 0 {
		return err
	}
	if n := len(records) + len(t.writes); n > maxWrites {
		return fmt.Errorf("%w: the transaction has %d records and %d writes; DynamoDB takes %d items", store.ErrTooLarge, len(records), len(t.writes), maxWrites)
	}
	// The client adds a request token, so that its retries are carried out once.
	sent := 0
	limited, cancel := t.limited(ctx)
	defer cancel()
	_, err = t.store.client.TransactWriteItems(limited, &dynamodb.TransactWriteItemsInput{TransactItems: append(records, t.writes...)}, countSendings(&sent))
	if err == nil {
		return nil
	}
	if canceled, ok := errors.AsType[*types.TransactionCanceledException](err); ok {
		return explainCanceled(canceled, len(records))
	}
	if sent <= 1 && nothingCarriedOut(err) { // a refusal of a second sending says nothing about the first
		return err
	}
	if t.wasCommitted(ctx) {
		return nil
	}
	return fmt.Errorf("%w: %w", semel.ErrInDoubt, err)
}

// countSendings is an option of a request that counts how often the client sends it.
func countSendings(n *int) func(*dynamodb.Options) {
	return func(o *dynamodb.Options) {
		o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
			return stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc("semelSendings",
				func(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
					*n++
					return next.HandleDeserialize(ctx, in)
				}), middleware.After)
		})
	}
}

// explainCanceled says whether a transaction met another change of its records, which
// come first, or a refusal of the handler's writes.
func explainCanceled(canceled *types.TransactionCanceledException, records int) error {
	for i, reason := range canceled.CancellationReasons {
		if reason.Code == nil || *reason.Code == "None" {
			continue
		}
		switch code := *reason.Code; {
		case code == "TransactionConflict", code == "ConditionalCheckFailed" && i < records:
			return fmt.Errorf("%w: %w", ErrConflict, canceled)
		case code == "ConditionalCheckFailed":
			return fmt.Errorf("%w: %w", ErrWriteRefused, canceled)
		}
	}
	if classifyCanceled(canceled).err != nil {
		return canceled
	}
	return fmt.Errorf("%w: %w", ErrWriteRefused, canceled)
}

// nothingCarriedOut reports whether the server has answered that it carried nothing out.
// A transaction with the same token that is still in progress may be carried out.
func nothingCarriedOut(err error) bool {
	if _, running := errors.AsType[*types.TransactionInProgressException](err); running {
		return false
	}
	class := classify(err)
	return class.err != nil && !errors.Is(class.err, ErrThrottled) || isValidation(err)
}

// recordWrites are the changes of the records.
func (t *Tx) recordWrites() (writes []types.TransactWriteItem, err error) {
	for _, k := range t.order {
		e := t.entries[k]
		var w types.TransactWriteItem
		switch {
		case e.replaced:
			w.Put, err = t.store.put(e)
		case len(e.steps) > 0:
			w.Update, err = t.store.updateSteps(k, e)
		default:
			continue // only read
		}
		if err != nil {
			return nil, err
		}
		writes = append(writes, w)
	}
	return writes, nil
}

// put replaces a record that is still as it was read.
func (s *Store) put(e *entry) (*types.Put, error) {
	it := s.encode(&e.record, e.outcome)
	steps, err := e.allSteps()
	if err != nil {
		return nil, err
	}
	if err := addSteps(it, steps); err != nil {
		return nil, err
	}
	x := newExpression()
	condition := x.equal(s.opt.PartitionKey, nil)
	if e.base != nil {
		x = newExpression()
		condition = x.allEqual(e.base, append([]string{attrStepBytes}, seenAttributes...)...)
	}
	return &types.Put{
		TableName: &s.table, Item: it, ConditionExpression: &condition,
		ExpressionAttributeNames: x.names, ExpressionAttributeValues: x.valuesOrNil(),
	}, nil
}

// updateSteps adds steps to a record whose lease the transaction does not end. The lease
// may be renewed meanwhile.
func (s *Store) updateSteps(k store.Key, e *entry) (*types.Update, error) {
	l := e.record.Lease()
	steps := make([]*store.Step, len(e.steps))
	for i := range e.steps {
		steps[i] = &e.steps[i]
	}
	x := newExpression()
	change, condition, err := s.stepUpdate(x, &l, steps...)
	if err != nil {
		return nil, err
	}
	return &types.Update{
		TableName: &s.table, Key: s.key(s.partition(k)), UpdateExpression: &change, ConditionExpression: &condition,
		ExpressionAttributeNames: x.names, ExpressionAttributeValues: x.values,
	}, nil
}

// wasCommitted reports whether a transaction without an answer is known to have been carried
// out: all its records are as it writes them, and it writes one at least.
func (t *Tx) wasCommitted(ctx context.Context) bool {
	ctx, cancel := t.limited(ctx)
	defer cancel()
	found := false
	for _, k := range t.order {
		e := t.entries[k]
		if !e.replaced && len(e.steps) == 0 {
			continue
		}
		it, err := t.store.read(ctx, k)
		if err != nil {
			return false
		}
		r, err := decodeFor(k, it)
		if err != nil || r.Lease() != e.record.Lease() || e.replaced && r.State != e.record.State {
			return false
		}
		for i := range e.steps {
			recorded, err := decodeStep(it, e.steps[i].Name)
			if err != nil || !recorded.Equal(&e.steps[i]) {
				return false
			}
		}
		found = true
	}
	return found
}
