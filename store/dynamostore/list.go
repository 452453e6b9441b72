package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/semel-go/semel/store"
)

// List implements store.Lister. If the filter asks only for records in flight and
// in doubt (Started, Processing, Unknown), List finds them by the index, which may
// be some milliseconds behind; otherwise it reads the whole table. It reads each
// record consistently. For an unreadable record it yields an error that wraps
// store.ErrCorrupt and continues; any other error ends the list, also one of
// Options.Objects.
func (s *Store) List(ctx context.Context, f store.Filter) iter.Seq2[store.Found, error] {
	return func(yield func(store.Found, error) bool) {
		yielded := 0
		emit := func(it item) bool {
			r, err := decode(it)
			now := s.clock.decisionTime(&r, s.clock.read())
			if err == nil {
				if !f.Match(&r, now) {
					return true
				}
				err = s.fetchOutcome(ctx, it, &r)
			}
			if err != nil {
				return yield(store.Found{}, s.explain("list", err)) && errors.Is(err, store.ErrCorrupt)
			}
			if yielded++; !yield(store.Found{Record: r, Now: now}, nil) {
				return false
			}
			return f.Limit <= 0 || yielded < f.Limit
		}
		err := s.eachItem(ctx, f.States, emit)
		if err != nil && !errors.Is(err, errStopped) {
			yield(store.Found{}, s.explain("list", err))
		}
	}
}

// errStopped ends a walk whose reader wants no more.
var errStopped = errors.New("stopped")

// eachItem calls emit with each record that may be in one of the states, until emit
// returns false.
func (s *Store) eachItem(ctx context.Context, states []store.State, emit func(item) bool) error {
	kinds, ok := kindsOf(states)
	if !ok {
		return s.scanAll(ctx, emit)
	}
	seen := map[string]bool{} // a record may move in the index meanwhile
	for _, kind := range kinds {
		for shard := range s.opt.IndexShards {
			var from item
			for first := true; first || from != nil; first = false {
				keys, next, err := s.queryDue(ctx, s.indexPartition(kind, shard), time.Time{}, from, maxBatch)
				if err != nil {
					return err
				}
				items, err := s.readMany(ctx, keys)
				if err != nil {
					return err
				}
				for _, it := range items {
					d := decoder{it: it}
					partition := d.text(s.opt.PartitionKey)
					if seen[partition] {
						continue
					}
					seen[partition] = true
					if !emit(it) {
						return errStopped
					}
				}
				from = next
			}
		}
	}
	return nil
}

// kindsOf are the kinds of index entries that hold all records in the states; ok is
// false if the index does not hold them.
func kindsOf(states []store.State) (kinds []string, ok bool) {
	live, doubt := false, false
	for _, st := range states {
		switch st {
		case store.Started, store.Processing:
			live = true
		case store.Unknown:
			doubt = true
		default:
			return nil, false
		}
	}
	if live {
		kinds = append(kinds, dueLive)
	}
	if doubt {
		kinds = append(kinds, dueDoubt)
	}
	return kinds, len(kinds) > 0
}

// scanAll reads the whole table, page by page.
func (s *Store) scanAll(ctx context.Context, emit func(item) bool) error {
	consistent := true
	for from := (item)(nil); ; {
		e := newExpression()
		filter := s.prefixCondition(e)
		out, err := s.client.Scan(ctx, &dynamodb.ScanInput{
			TableName: &s.table, ConsistentRead: &consistent, ExclusiveStartKey: from, FilterExpression: &filter,
			ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values,
		})
		if err != nil {
			return err
		}
		for _, it := range out.Items {
			if s.isOwn(it) && !emit(it) {
				return errStopped
			}
		}
		if from = out.LastEvaluatedKey; len(from) == 0 {
			return nil
		}
	}
}

// prefixCondition is the condition that an item is a record of this store, or of one whose
// prefix starts with this one's: check isOwn, too.
func (s *Store) prefixCondition(e *expression) string {
	condition := fmt.Sprintf("begins_with(%s, %s)", e.name(s.opt.PartitionKey), e.value(textOf(s.opt.Prefix)))
	if s.opt.SortKey != "" {
		condition += " AND " + e.equal(s.opt.SortKey, textOf(sortValue))
	}
	return condition
}

// isOwn reports whether an item that prefixCondition has selected is a record of this store:
// all its partition keys have the same length.
func (s *Store) isOwn(it item) bool {
	d := decoder{it: it}
	return len(d.text(s.opt.PartitionKey)) == len(s.opt.Prefix)+digestLength
}

// maxBatch is how many items one BatchGetItem may read.
const maxBatch = 100

// queryDue reads primary keys from one partition key of the index, due up to a time
// if it is not zero, and where to go on; nil at the end.
func (s *Store) queryDue(ctx context.Context, due string, until time.Time, from item, limit int) (keys []item, next item, err error) {
	e := newExpression()
	condition := e.equal(attrDue, textOf(due))
	if !until.IsZero() {
		condition += " AND " + e.name(attrDueAt) + " <= " + e.value(numberOf(store.Micros(until)))
	}
	most := int32(min(limit, maxBatch))
	out, err := s.client.Query(ctx, &dynamodb.QueryInput{
		TableName: &s.table, IndexName: &s.opt.Index, KeyConditionExpression: &condition, ExclusiveStartKey: from, Limit: &most,
		ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values,
	})
	if err != nil {
		return nil, nil, err
	}
	if len(out.LastEvaluatedKey) > 0 {
		next = out.LastEvaluatedKey
	}
	for _, it := range out.Items {
		key := item{s.opt.PartitionKey: it[s.opt.PartitionKey]}
		if s.opt.SortKey != "" {
			key[s.opt.SortKey] = it[s.opt.SortKey]
		}
		keys = append(keys, key)
	}
	return keys, next, nil
}

// readMany reads items consistently. It leaves out those that are gone.
func (s *Store) readMany(ctx context.Context, keys []item) (items []item, err error) {
	consistent := true
	for pause := 10 * time.Millisecond; len(keys) > 0; pause = min(2*pause, time.Second) {
		out, err := s.client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{
			RequestItems: map[string]types.KeysAndAttributes{s.table: {Keys: keys, ConsistentRead: &consistent}},
		})
		if err != nil {
			return nil, err
		}
		items = append(items, out.Responses[s.table]...)
		// The reply has at most 16 MB; DynamoDB also leaves out what is throttled.
		if keys = out.UnprocessedKeys[s.table].Keys; len(keys) > 0 && !sleep(ctx, pause) {
			return nil, context.Cause(ctx)
		}
	}
	return items, nil
}

// sleep waits, and reports false if ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
