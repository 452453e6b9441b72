package dynamostore

import (
	"context"
	"encoding/binary"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/semel-go/semel/store"
)

// The steps of a record are attributes of its item. They may take maxStepBytes of
// the item's 400 KB, so that the call's outcome, at least as a tombstone, still
// fits, and the tombstones of steps maxGoneBytes.
const (
	maxStepBytes = 300_000
	maxGoneBytes = 350_000
)

// RecordStep implements store.Journal with one conditional UpdateItem. The steps
// of a call have 300 KB together.
func (s *Store) RecordStep(ctx context.Context, l store.Lease, step store.Step) error {
	return s.explain("record a step", s.recordStep(ctx, &l, &step))
}

func (s *Store) recordStep(ctx context.Context, l *store.Lease, step *store.Step) error {
	e := newExpression()
	change, condition, err := s.stepUpdate(e, l, step)
	if err != nil {
		return err
	}
	_, err = s.update(ctx, l.Key, e, change, condition, types.ReturnValueNone)
	if err == nil {
		return nil
	}
	it, was, err := s.refusedLease(ctx, l, err)
	if err != nil {
		return err
	}
	return stepRefusal(it, &was, step)
}

// stepUpdate makes the update that adds steps, and its condition.
func (s *Store) stepUpdate(e *expression, l *store.Lease, steps ...*store.Step) (change, condition string, err error) {
	set, names, size, limit := "SET ", []types.AttributeValue{}, 0, maxGoneBytes
	condition = e.allEqual(leaseItem(l), leaseAttributes...)
	for _, step := range steps {
		b, err := s.encodeStep(step)
		if err != nil {
			return "", "", err
		}
		attribute := stepAttribute(step.Name)
		set += fmt.Sprintf("%s = %s, ", e.name(attribute), e.value(&types.AttributeValueMemberB{Value: b}))
		condition += " AND " + e.equal(attribute, nil)
		names = append(names, textOf(step.Name))
		size, limit = size+stepSize(step, b), min(limit, stepLimit(step))
	}
	if size > limit {
		return "", "", tooManySteps(limit)
	}
	order, total := e.name(attrSteps), e.name(attrStepBytes)
	change = fmt.Sprintf("%s%s = list_append(if_not_exists(%s, %s), %s), %s = if_not_exists(%s, %s) + %s", set,
		order, order, e.value(&types.AttributeValueMemberL{Value: []types.AttributeValue{}}), e.value(&types.AttributeValueMemberL{Value: names}),
		total, total, e.value(numberOf(0)), e.value(numberOf(size)))
	condition += fmt.Sprintf(" AND (%s OR %s <= %s)", e.equal(attrStepBytes, nil), total, e.value(numberOf(limit-size)))
	return change, condition, nil
}

// stepSize is the bytes of the item that a step takes.
func stepSize(step *store.Step, encoded []byte) int {
	return len(stepAttribute(step.Name)) + len(step.Name) + len(encoded)
}

func stepLimit(step *store.Step) int {
	if step.Outcome.Gone {
		return maxGoneBytes
	}
	return maxStepBytes
}

func tooManySteps(limit int) error {
	return fmt.Errorf("%w: the steps of a call may have %d bytes together after compression", store.ErrTooLarge, limit)
}

// stepRefusal says why the record of the lease refused a step; nil if it has the
// same step already.
func stepRefusal(it item, was *store.Record, step *store.Step) error {
	if was.State != store.Processing {
		return store.ErrLeaseLost
	}
	if it[stepAttribute(step.Name)] == nil {
		return tooManySteps(stepLimit(step))
	}
	recorded, err := decodeStep(it, step.Name)
	if err != nil {
		return err
	}
	return store.SameStep(&recorded, step)
}

// Steps implements store.Journal with one consistent GetItem.
func (s *Store) Steps(ctx context.Context, l store.Lease) ([]store.Step, error) {
	steps, err := s.steps(ctx, &l)
	return steps, s.explain("read the steps", err)
}

func (s *Store) steps(ctx context.Context, l *store.Lease) ([]store.Step, error) {
	it, err := s.read(ctx, l.Key)
	if err == nil {
		return stepsFor(l, it)
	}
	if err == store.ErrNotFound { //nolint:errorlint // read returns it as it is
		err = store.ErrLeaseLost
	}
	return nil, err
}

// stepsFor returns the steps of an item if the lease is its record's.
func stepsFor(l *store.Lease, it item) ([]store.Step, error) {
	r, err := decodeFor(l.Key, it)
	if err == nil && r.Lease() != *l {
		err = store.ErrLeaseLost
	}
	if err != nil {
		return nil, err
	}
	return stepsOf(it)
}

// stepsOf returns the steps of an item.
func stepsOf(it item) ([]store.Step, error) {
	if it[attrSteps] == nil {
		return nil, nil
	}
	names, ok := it[attrSteps].(*types.AttributeValueMemberL)
	if !ok {
		return nil, fmt.Errorf("%w: the attribute %q is no list", store.ErrCorrupt, attrSteps)
	}
	var steps []store.Step
	for _, v := range names.Value {
		d := decoder{it: item{attrSteps: v}}
		name := d.text(attrSteps)
		if d.err != nil {
			return nil, d.err
		}
		step, err := decodeStep(it, name)
		if err != nil {
			return nil, err
		}
		steps = append(steps, step)
	}
	return steps, nil
}

// stepAttribute is the attribute of a step. Names of attributes are UTF-8.
func stepAttribute(name string) string {
	if !utf8.ValidString(name) {
		return "quoted" + stepPrefix + strconv.Quote(name)
	}
	return stepPrefix + name
}

// encodeStep encodes a step that is recorded now.
func (s *Store) encodeStep(step *store.Step) ([]byte, error) {
	return encodeStepAt(step, s.clock.read())
}

// encodeStepAt makes a step's value: the time in microseconds, and the packed step.
func encodeStepAt(step *store.Step, recorded time.Time) ([]byte, error) {
	packed, err := pack(store.EncodeStep(step))
	if err != nil {
		return nil, err
	}
	return append(binary.BigEndian.AppendUint64(nil, uint64(store.Micros(recorded))), packed...), nil
}

func decodeStep(it item, name string) (store.Step, error) {
	d := decoder{it: it}
	b := d.text(stepAttribute(name))
	if d.err != nil || len(b) < 8 {
		return store.Step{}, fmt.Errorf("%w: the step %q has %d bytes", store.ErrCorrupt, name, len(b))
	}
	unpacked, err := unpack([]byte(b[8:]))
	if err != nil {
		return store.Step{}, err
	}
	return store.DecodeStep(name, store.Time(int64(binary.BigEndian.Uint64([]byte(b[:8])))), unpacked)
}

// Receive implements store.Receiver with one conditional PutItem, which returns the
// existing item if there is one that is as late.
func (s *Store) Receive(ctx context.Context, r store.Record, steps []store.Step) (store.Found, error) {
	f, err := s.receive(ctx, &r, steps)
	return f, s.explain("receive", err)
}

func (s *Store) receive(ctx context.Context, r *store.Record, steps []store.Step) (f store.Found, err error) {
	outcome, err := s.packOutcome(ctx, r)
	if err != nil { // an outage of Options.Objects is no ErrTooLarge: the sender has the outcome still
		return f, err
	}
	it := s.encode(r, outcome)
	if err := addSteps(it, steps); err != nil {
		return f, err
	}
	e := newExpression()
	fence, updated := e.name(attrFence), e.name(attrUpdated)
	condition := fmt.Sprintf("%s OR %s < %s OR (%s AND %s < %s)", e.equal(s.opt.PartitionKey, nil), fence, e.value(it[attrFence]),
		e.equal(attrFence, it[attrFence]), updated, e.value(it[attrUpdated]))
	_, err = s.client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: &s.table, Item: it, ConditionExpression: &condition, ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if err == nil {
		return store.Found{Record: *r, Won: true, Now: s.clock.read()}, nil
	}
	old, err := s.refusedItem(ctx, r.Key, err)
	now := s.clock.read()
	if err != nil {
		return f, err
	}
	existing, err := s.readRecord(ctx, r.Key, old)
	return store.Found{Record: existing, Now: s.clock.decisionTime(&existing, now)}, err
}

// addSteps adds steps to an item without any.
func addSteps(it item, steps []store.Step) error {
	if len(steps) == 0 {
		return nil
	}
	names, size, limit := []types.AttributeValue{}, 0, 0
	for i := range steps {
		step := &steps[i]
		b, err := encodeStepAt(step, step.Recorded)
		if err != nil {
			return err
		}
		it[stepAttribute(step.Name)] = &types.AttributeValueMemberB{Value: b}
		names = append(names, textOf(step.Name))
		size, limit = size+stepSize(step, b), max(limit, stepLimit(step)) // a tombstone may have come last
	}
	if size > limit {
		return tooManySteps(limit)
	}
	it[attrSteps], it[attrStepBytes] = &types.AttributeValueMemberL{Value: names}, numberOf(size)
	return nil
}
