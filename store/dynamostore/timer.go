package dynamostore

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/semel-go/semel/store"
)

// A timer is an item of its own, with the key, the version in the attribute of a
// record's owner, and its place in the index of due records. Its partition key begins
// with timerPrefix and not with Options.Prefix, so that it is no record.
const (
	timerPrefix = "timer:"
	dueTimer    = "timer#" // before the operation, in the index
)

var timerAttributes = []string{attrOwner, attrOperation, attrTenant, attrValue, attrDue, attrDueAt}

func (s *Store) timerKey(k store.Key) item { return s.key(timerPrefix + s.partition(k)) }

// timersOf is the partition key of the index for the timers of an operation.
func (s *Store) timersOf(operation string, shard int) string {
	return s.indexPartition(dueTimer+operation+"#", shard)
}

// SetTimer implements store.Timers with one UpdateItem.
func (s *Store) SetTimer(ctx context.Context, k store.Key, seen, next store.Owner, wait time.Duration) (bool, error) {
	set, err := s.setTimer(ctx, &k, seen, next, wait)
	return set && err == nil, s.explain("set a timer", err)
}

func (s *Store) setTimer(ctx context.Context, k *store.Key, seen, next store.Owner, wait time.Duration) (bool, error) {
	if err := s.checkClock(ctx, store.Processing); err != nil {
		return false, err
	}
	d := k.Digest()
	it := item{
		attrOwner: ownerOf(next), attrOperation: textOf(k.Operation), attrValue: &types.AttributeValueMemberB{Value: []byte(k.Value)},
		attrDue:   textOf(s.timersOf(k.Operation, int(d[31])<<8|int(d[30]))),
		attrDueAt: numberOf(store.Micros(s.clock.read().Add(wait))),
	}
	if k.Tenant != "" {
		it[attrTenant] = textOf(k.Tenant)
	}
	e := newExpression()
	change := e.assign(it, timerAttributes...)
	in := &dynamodb.UpdateItemInput{TableName: &s.table, Key: s.timerKey(*k), UpdateExpression: &change}
	if seen != (store.Owner{}) {
		condition := e.equal(attrOwner, ownerOf(seen))
		in.ConditionExpression = &condition
	}
	in.ExpressionAttributeNames, in.ExpressionAttributeValues = e.names, e.values
	_, err := s.client.UpdateItem(ctx, in)
	if _, refused := errors.AsType[*types.ConditionalCheckFailedException](err); !refused {
		return err == nil, err
	}
	items, err := s.readMany(ctx, []item{s.timerKey(*k)})
	if err != nil || len(items) == 0 {
		return false, err
	}
	version := decoder{it: items[0]}
	return version.text(attrOwner) == string(next[:]), version.err
}

// DropTimer implements store.Timers with one DeleteItem.
func (s *Store) DropTimer(ctx context.Context, k store.Key, seen store.Owner) error {
	e := newExpression()
	condition := e.equal(attrOwner, ownerOf(seen))
	_, err := s.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{
		TableName: &s.table, Key: s.timerKey(k), ConditionExpression: &condition,
		ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values,
	})
	if _, refused := errors.AsType[*types.ConditionalCheckFailedException](err); refused {
		err = nil
	}
	return s.explain("drop a timer", err)
}

// DueTimers implements store.Timers by a query of the index for each of
// Options.IndexShards, and consistent reads of the timers. The index may be some
// milliseconds behind, so that a timer is found later. With the error of a timer that cannot
// be read it returns the others.
func (s *Store) DueTimers(ctx context.Context, operation string, within time.Duration, limit int) ([]store.Timer, time.Time, error) {
	now := s.clock.read()
	due, err := s.dueTimers(ctx, operation, now.Add(within), limit)
	return due, now, s.explain("read timers", err)
}

func (s *Store) dueTimers(ctx context.Context, operation string, until time.Time, limit int) (due []store.Timer, err error) {
	var unreadable error // the first one
	for shard := range s.opt.IndexShards {
		var from item
		for read, first := 0, true; read < limit && (first || from != nil); first = false {
			keys, next, err := s.queryDue(ctx, s.timersOf(operation, shard), until, from, limit-read)
			if err != nil {
				return nil, err
			}
			items, err := s.readMany(ctx, keys)
			if err != nil {
				return nil, err
			}
			read += len(keys)
			for _, it := range items {
				t, err := decodeTimer(it)
				if err != nil {
					unreadable = cmp.Or(unreadable, err)
					read--
					continue
				}
				if !t.Due.After(until) { // it may have changed since
					due = append(due, t)
				}
			}
			from = next
		}
	}
	slices.SortFunc(due, func(a, b store.Timer) int { return a.Due.Compare(b.Due) })
	return due[:min(len(due), max(limit, 0))], unreadable
}

func decodeTimer(it item) (store.Timer, error) {
	d := decoder{it: it}
	t := store.Timer{
		Key: store.Key{Operation: d.text(attrOperation), Tenant: d.text(attrTenant), Value: d.text(attrValue)},
		Due: d.time(attrDueAt),
	}
	version := d.text(attrOwner)
	if len(version) != len(t.Version) {
		d.fail(attrOwner)
	}
	copy(t.Version[:], version)
	return t, d.err
}
