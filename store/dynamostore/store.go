package dynamostore

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/semel-go/semel/store"
)

// Store keeps records in a DynamoDB table. It is safe for concurrent use. Make it
// with [New]. There is nothing to close.
type Store struct {
	client requests
	table  string
	opt    Options
	clock  *clock
	// sweptFence is the highest fence that this process has swept. It matters only
	// if the clock is set back by more than MaxSkew.
	sweptFence atomic.Uint64
}

var _ interface {
	store.Store
	store.Lister
	store.Journal
	store.Timers
	store.Eraser
	store.Waiter
	store.Receiver
	store.Migrator
	store.Checker
} = (*Store)(nil)

// New makes a store on a table. It does no I/O; [Store.Migrate] makes the table.
// The store uses the client's settings, with its retries: a claim that the client
// sends again is recognized by its owner token, and is applied once.
func New(client *dynamodb.Client, table string, o *Options) (*Store, error) {
	opt, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if client == nil {
		return nil, errors.New("dynamostore: New: the client is nil; make it with dynamodb.NewFromConfig")
	}
	if table == "" {
		return nil, errors.New("dynamostore: New: the table's name is empty; pass the name that Migrate shall create or use")
	}
	s := &Store{table: table, opt: opt, clock: newClock(&opt)}
	s.client = requestsOf(dynamodb.New(client.Options(), func(o *dynamodb.Options) {
		// A request that met a transaction was not applied.
		o.Retryer = retry.AddWithErrorCodes(o.Retryer, "TransactionConflictException")
		o.APIOptions = append(o.APIOptions, keepRefusals)
		if s.clock.checksServer {
			o.APIOptions = append(o.APIOptions, s.clock.compare)
		}
	}))
	return s, nil
}

// Claim implements store.Store with one conditional PutItem, which returns the
// existing item if there is one.
func (s *Store) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
	f, err := s.claim(ctx, &p)
	return f, s.explain("claim", err)
}

func (s *Store) claim(ctx context.Context, p *store.Proposal) (f store.Found, err error) {
	if err := s.checkClock(ctx, p.State); err != nil {
		return s.refusedClaim(ctx, p, err)
	}
	now := s.clock.read()
	r := p.Insert(now, s.sweptFence.Load())
	outcome, err := s.packOutcome(ctx, &r)
	if err != nil {
		return f, err
	}
	it, e := s.encode(&r, outcome), newExpression()
	condition := e.equal(s.opt.PartitionKey, nil)
	_, err = s.client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: &s.table, Item: it, ConditionExpression: &condition, ExpressionAttributeNames: e.names,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if err == nil {
		f = s.found(&r, p, now)
	} else if f, err = s.existing(ctx, p, err); err != nil {
		return f, err
	}
	if f.Won {
		if err := s.clock.checkFor(p.State); err != nil {
			return store.Found{}, err
		}
	}
	return f, nil
}

// existing is the record that refused a claim or swap. It may be the proposal's
// own, from an earlier sending.
func (s *Store) existing(ctx context.Context, p *store.Proposal, refused error) (store.Found, error) {
	it, err := s.refusedItem(ctx, p.Key, refused)
	now := s.clock.read()
	if err != nil {
		return store.Found{Now: now}, err
	}
	r, err := s.readRecord(ctx, p.Key, it)
	if err != nil { // the record shows the Guard that this is no outage of the table
		return store.Found{Record: r, Now: now}, err
	}
	return s.found(&r, p, now), nil
}

// refusedItem is the item that a condition refused, or ErrNotFound, or err itself if it is
// no refusal.
func (s *Store) refusedItem(ctx context.Context, k store.Key, err error) (item, error) {
	refused, ok := errors.AsType[*types.ConditionalCheckFailedException](err)
	if !ok {
		return nil, err
	}
	if len(refused.Item) > 0 {
		return refused.Item, nil
	}
	// There is no item, or the server does not return it.
	return s.read(ctx, k)
}

// read reads an item, or returns ErrNotFound.
func (s *Store) read(ctx context.Context, k store.Key) (item, error) {
	consistent := true
	out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &s.table, Key: s.key(s.partition(k)), ConsistentRead: &consistent})
	if err != nil {
		return nil, err
	}
	if len(out.Item) == 0 {
		return nil, store.ErrNotFound
	}
	return out.Item, nil
}

// found is the record as the sender of p sees it.
func (s *Store) found(r *store.Record, p *store.Proposal, now time.Time) store.Found {
	won := p.Owner != store.Owner{} && r.Owner == p.Owner && r.State == p.State
	if !won {
		now = s.clock.decisionTime(r, now)
	}
	return store.Found{Record: *r, Won: won, Now: now}
}

// Swap implements store.Store with one conditional UpdateItem, or with a PutItem
// if the record begins a new life, so that no step of the old one stays.
func (s *Store) Swap(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
	f, err := s.swap(ctx, &seen, &p)
	return f, s.explain("swap", err)
}

func (s *Store) swap(ctx context.Context, seen *store.Seen, p *store.Proposal) (f store.Found, err error) {
	if p.Key != seen.Key {
		return f, errors.New("the proposal is for another key than what was seen")
	}
	if err := s.checkClock(ctx, p.State); err != nil {
		return f, err
	}
	now := s.settleTime(ctx)
	r := p.Replace(&store.Record{Fence: seen.Fence}, now)
	outcome, err := s.packOutcome(ctx, &r)
	if err != nil {
		return f, err
	}
	it, e := s.encode(&r, outcome), newExpression()
	condition := e.allEqual(seenItem(seen), seenAttributes...)
	if p.Restart {
		_, err = s.client.PutItem(ctx, &dynamodb.PutItemInput{
			TableName: &s.table, Item: it, ConditionExpression: &condition,
			ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values,
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		})
	} else {
		it, err = s.update(ctx, p.Key, e, e.assign(it, s.written(claimAttributes)...), condition, types.ReturnValueAllNew)
		if err == nil {
			written := r.Outcome
			r, err = decodeFor(p.Key, it)
			r.Outcome = written
		}
	}
	if err == nil {
		f = s.found(&r, p, now)
	} else if f, err = s.existing(ctx, p, err); err != nil {
		return f, err
	}
	if f.Won {
		if err := s.clock.checkFor(p.State); err != nil {
			return store.Found{}, err
		}
	}
	return f, nil
}

// seenItem is the attributes that Swap compares.
func seenItem(seen *store.Seen) item {
	it := item{attrOwner: ownerOf(seen.Owner), attrFence: numberOf(seen.Fence), attrState: textOf(seen.State.String())}
	if !seen.Until.IsZero() {
		it[attrUntil] = numberOf(store.Micros(seen.Until))
	}
	if !seen.Expires.IsZero() {
		it[attrExpires] = numberOf(store.Micros(seen.Expires))
	}
	return it
}

// written are the attributes of a settlement, and more.
func (s *Store) written(more []string) []string {
	return append(append([]string{s.opt.TTL}, settleAttributes...), more...)
}

// update sends an UpdateItem and returns the item that it asks for.
func (s *Store) update(ctx context.Context, k store.Key, e *expression, change, condition string, want types.ReturnValue) (item, error) {
	out, err := s.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &s.table, Key: s.key(s.partition(k)), UpdateExpression: &change, ConditionExpression: &condition,
		ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values, ReturnValues: want,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if err != nil {
		return nil, err
	}
	return out.Attributes, nil
}

// leaseItem is the attributes that the owner of a claim compares.
func leaseItem(l *store.Lease) item {
	return item{attrOwner: ownerOf(l.Owner), attrFence: numberOf(l.Fence), attrState: textOf(store.Processing.String())}
}

// Settle implements store.Store with one conditional UpdateItem.
func (s *Store) Settle(ctx context.Context, l store.Lease, t store.Settlement) error {
	return s.explain("settle", s.settle(ctx, &l, &t))
}

func (s *Store) settle(ctx context.Context, l *store.Lease, t *store.Settlement) error {
	r := t.Apply(store.Record{Key: l.Key, Fence: l.Fence}, s.settleTime(ctx))
	outcome, err := s.packSettled(ctx, &r)
	if errors.Is(err, errObjects) && s.isSettled(ctx, l, t.State, outcome) {
		return nil
	}
	if err != nil {
		return err
	}
	it, e := s.encode(&r, outcome), newExpression()
	condition := e.allEqual(leaseItem(l), leaseAttributes...)
	_, err = s.update(ctx, l.Key, e, e.assign(it, s.written(nil)...), condition, types.ReturnValueNone)
	if err == nil {
		return nil
	}
	old, was, err := s.refusedLease(ctx, l, err)
	if err == nil && (was.State != t.State || !sameOutcome(old, outcome)) { // it was settled before, by another settlement
		err = store.ErrLeaseLost
	}
	return err
}

// refusedLease is the record that refused a change by the owner of l, or
// ErrLeaseLost if the owner is another by now.
func (s *Store) refusedLease(ctx context.Context, l *store.Lease, refused error) (item, store.Record, error) {
	it, err := s.refusedItem(ctx, l.Key, refused)
	if errors.Is(err, store.ErrNotFound) {
		return nil, store.Record{}, store.ErrLeaseLost
	}
	if err != nil {
		return nil, store.Record{}, err
	}
	r, err := decodeFor(l.Key, it)
	if err == nil && r.Lease() != *l {
		err = store.ErrLeaseLost
	}
	return it, r, err
}

// Get implements store.Store with one consistent GetItem, and the object of a large
// outcome.
func (s *Store) Get(ctx context.Context, k store.Key) (store.Found, error) {
	it, err := s.read(ctx, k)
	now := s.clock.read()
	if err != nil {
		return store.Found{Now: now}, s.explain("get", err)
	}
	r, err := s.readRecord(ctx, k, it)
	return store.Found{Record: r, Now: s.clock.decisionTime(&r, now)}, s.explain("get", err)
}
