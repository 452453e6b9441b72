package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/semel-go/semel/store"
)

// A step of a sweep reads at most sweepPages pages of the table. A page has four
// items for each record that the limit allows, between the two sizes.
const (
	smallPage  = 50
	largePage  = 500
	sweepPages = 10
)

// Sweep implements store.Store. It finds lapsed records by the index. With
// Options.SweepExpired it then reads the table, page by page, and deletes expired
// records; without it, DynamoDB's time to live deletes them.
func (s *Store) Sweep(ctx context.Context, from store.Cursor, limit int) (store.SweepResult, error) {
	res, err := s.sweep(ctx, from, limit)
	if err != nil {
		return store.SweepResult{}, s.explain("sweep", err)
	}
	return res, nil
}

// place is where a sweep continues: in a shard of the index, after an entry, or in
// the table, after an item, which may be the application's.
type place struct {
	shard     int // the number of shards: the table
	dueAt     int64
	partition string // empty: the beginning
	sort      string // in the table
}

func (p *place) cursor() store.Cursor {
	return store.Cursor(fmt.Sprintf("%d %d %q %q", p.shard, p.dueAt, p.partition, p.sort))
}

func parsePlace(from store.Cursor) (p place, err error) {
	if from == "" {
		return p, nil
	}
	_, err = fmt.Sscanf(string(from), "%d %d %q %q", &p.shard, &p.dueAt, &p.partition, &p.sort)
	if err != nil || p.shard < 0 || p.cursor() != from {
		return p, fmt.Errorf("cursor is %q; it must be empty or the Next of this store's last step", from)
	}
	return p, nil
}

func (s *Store) sweep(ctx context.Context, from store.Cursor, limit int) (res store.SweepResult, err error) {
	if err := ctx.Err(); err != nil {
		return res, err
	}
	pos, err := parsePlace(from)
	if err != nil {
		return res, err
	}
	if err := s.checkClock(ctx, store.Processing); err != nil { // it decides what has expired, and whose lease is over
		return res, err
	}
	w := &sweeper{s: s, left: max(1, limit)}
	now := s.clock.trusted(s.clock.read())
	w.res.Now = now.Add(-s.opt.MaxSkew)
	for pos.shard < s.opt.IndexShards && w.left > 0 {
		if err := w.dueStep(ctx, &pos); err != nil {
			return res, err
		}
	}
	for page := 0; s.opt.SweepExpired && pos.shard == s.opt.IndexShards && w.left > 0; page++ {
		if page == sweepPages {
			break
		}
		if err := w.tablePage(ctx, &pos, now); err != nil {
			return res, err
		}
	}
	if pos.shard < s.opt.IndexShards || s.opt.SweepExpired && pos.shard == s.opt.IndexShards {
		w.res.Next = pos.cursor()
	}
	return w.res, nil
}

// sweeper is one step of a sweep.
type sweeper struct {
	s    *Store
	left int // how many more records the limit allows
	res  store.SweepResult
}

// dueStep returns lapsed records of a shard, and moves the place on.
func (w *sweeper) dueStep(ctx context.Context, pos *place) error {
	s := w.s
	due := s.indexPartition(dueLive, pos.shard)
	var start item
	if pos.partition != "" {
		start = s.key(pos.partition)
		start[attrDue], start[attrDueAt] = textOf(due), numberOf(pos.dueAt)
	}
	keys, next, err := s.queryDue(ctx, due, w.res.Now, start, w.left)
	if err != nil {
		return err
	}
	items, err := s.readMany(ctx, keys)
	if err != nil {
		return err
	}
	for _, it := range items {
		// The index may be behind, so the record decides. An unreadable one is
		// left for Get and List to report.
		if r, err := decode(it); err == nil && r.Lapsed(w.res.Now) {
			w.res.Lapsed = append(w.res.Lapsed, r)
			w.left--
		}
	}
	if next == nil {
		*pos = place{shard: pos.shard + 1}
		return nil
	}
	d := decoder{it: next}
	pos.dueAt, pos.partition = d.number(attrDueAt), d.text(s.opt.PartitionKey)
	return d.err
}

// tablePage deletes expired records of a page of the table, and moves the place on.
func (w *sweeper) tablePage(ctx context.Context, pos *place, now time.Time) error {
	s := w.s
	e := newExpression()
	cutoff := numberOf(store.Micros(s.clock.deletionCutoff(now)))
	filter := fmt.Sprintf("%s AND %s <= %s", s.prefixCondition(e), e.name(attrExpires), e.value(cutoff))
	var start item
	if pos.partition != "" {
		start = s.key(pos.partition)
		if s.opt.SortKey != "" {
			start[s.opt.SortKey] = textOf(pos.sort)
		}
	}
	consistent, page := true, int32(min(max(4*w.left, smallPage), largePage))
	out, err := s.client.Scan(ctx, &dynamodb.ScanInput{
		TableName: &s.table, ConsistentRead: &consistent, Limit: &page, ExclusiveStartKey: start, FilterExpression: &filter,
		ProjectionExpression:     e.projection(append([]string{s.opt.PartitionKey}, seenAttributes...)...),
		ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values,
	})
	if err != nil {
		return err
	}
	for _, it := range out.Items {
		if w.left == 0 {
			return nil
		}
		d := decoder{it: it}
		partition, fence := d.text(s.opt.PartitionKey), uint64(d.number(attrFence))
		if d.err == nil && s.isOwn(it) {
			if err := w.deleteExpired(ctx, partition, fence, it); err != nil {
				return err
			}
		}
		pos.partition, pos.sort = partition, sortValue
	}
	*pos = place{shard: s.opt.IndexShards + 1}
	if len(out.LastEvaluatedKey) > 0 {
		d := decoder{it: out.LastEvaluatedKey}
		*pos = place{shard: s.opt.IndexShards, partition: d.text(s.opt.PartitionKey), sort: d.text(s.opt.SortKey)}
		return d.err
	}
	return nil
}

// deleteExpired deletes a record if it is still as it was read. A deletion whose
// reply is lost, and which the client sends again, is not counted.
func (w *sweeper) deleteExpired(ctx context.Context, partition string, fence uint64, was item) error {
	err := w.s.deleteRecord(ctx, partition, fence, was)
	if _, changed := errors.AsType[*types.ConditionalCheckFailedException](err); changed {
		return nil
	}
	if err == nil {
		w.res.Deleted++
		w.left--
	}
	return err
}

// deleteRecord deletes a record on the condition that it is as it was read. Its fence is
// kept first, because a claim of the same process may follow at once.
func (s *Store) deleteRecord(ctx context.Context, partition string, fence uint64, was item) error {
	for {
		swept := s.sweptFence.Load()
		if swept >= fence || s.sweptFence.CompareAndSwap(swept, fence) {
			break
		}
	}
	e := newExpression()
	condition := e.allEqual(was, seenAttributes...)
	_, err := s.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{
		TableName: &s.table, Key: s.key(partition), ConditionExpression: &condition,
		ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values,
	})
	return err
}

// Erase implements store.Eraser with a consistent GetItem and a conditional DeleteItem. If
// the outcome is an object, it deletes the object first, and Options.Objects must be an
// [ObjectDeleter]. A record can be erased when twice Options.MaxSkew has passed since its
// last claim, because the clock of the next claim must be past its fence; before that the
// error says when. Backups and point-in-time recovery keep the record.
func (s *Store) Erase(ctx context.Context, seen store.Seen) error {
	if err := store.CheckErase(seen); err != nil {
		return err
	}
	return s.explain("erase", s.erase(ctx, &seen))
}

func (s *Store) erase(ctx context.Context, seen *store.Seen) error {
	if err := s.checkClock(ctx, store.Processing); err != nil { // the fence depends on the clock, as that of a claim does
		return err
	}
	it, err := s.read(ctx, seen.Key)
	if err != nil {
		return err
	}
	if safe := uint64(store.Micros(s.clock.deletionCutoff(s.clock.trusted(s.clock.read())))); seen.Fence >= safe {
		return store.WithExtent(fmt.Errorf("the record is too new: a claim after it could get a lower fence; erase it in %v",
			time.Duration(seen.Fence-safe+1)*time.Microsecond), store.ExtentCall)
	}
	r, err := decodeFor(seen.Key, it)
	switch {
	case err != nil:
		return err
	case r.Seen() != *seen:
		return store.ErrChanged
	}
	if err := s.deleteObject(ctx, it, &r); err != nil {
		return err
	}
	err = s.deleteRecord(ctx, s.partition(seen.Key), seen.Fence, it)
	if _, refused := errors.AsType[*types.ConditionalCheckFailedException](err); !refused {
		return err
	}
	if _, err := s.read(ctx, seen.Key); err != nil { // the client may have sent it twice
		return err
	}
	return store.ErrChanged
}
