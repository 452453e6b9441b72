package outboxtest

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/semel-go/semel/outbox"
)

func (b *bed) committed() {
	before := time.Now().Add(-time.Hour)
	b.put(whole, outbox.Message{Topic: "t"})
	b.wantStats(outbox.Stats{Waiting: 2})
	taken := b.take(100)
	if len(taken) != 2 {
		b.t.Fatalf("%d messages, want 2", len(taken))
	}
	slices.SortFunc(taken, func(x, y outbox.Taken) int { return int(x.Position - y.Position) })
	e := taken[0].Entry
	if !reflect.DeepEqual(e.Message, whole) {
		b.t.Errorf("taken %+v, want %+v", e.Message, whole)
	}
	if e.Position < 1 || e.State != outbox.Waiting || e.Attempts != 0 || e.Written.Before(before) || time.Until(e.Written) > time.Hour {
		b.t.Errorf("the entry is %+v", e)
	}
	if taken[0].Order != whole.Order() || taken[0].Lane.Number != outbox.LaneOf(whole.Order()) || taken[0].Lane.Fence < 1 {
		b.t.Errorf("order %d, lane %+v; want order %d and its lane", taken[0].Order, taken[0].Lane, whole.Order())
	}
	if other := taken[1].Message; other.ID == "" || other.OrderKey != "" || len(other.Body) != 0 {
		b.t.Errorf("the message without an ID is %+v", other)
	}
	got, err := b.Get(b.ctx, e.Position)
	b.must(err)
	if !reflect.DeepEqual(got.Message, whole) || got.State != outbox.Waiting {
		b.t.Errorf("Get returns %+v", got)
	}
	_, err = b.Get(b.ctx, 1<<40)
	b.wantError(err, outbox.ErrNotFound)
	list, err := b.List(b.ctx, outbox.Waiting, 0, 10)
	b.must(err)
	if len(list) != 2 || list[0].ID != whole.ID || list[0].Body != nil {
		b.t.Errorf("List returns %+v", list)
	}
	list, err = b.List(b.ctx, outbox.Waiting, list[0].Position, 10)
	b.must(err)
	if len(list) != 1 {
		b.t.Errorf("List after the first returns %+v", list)
	}
}

func (b *bed) rolledBack() {
	tx := b.begin(b.t)
	b.must(tx.Put(b.ctx, message("k", 1)))
	b.must(tx.Rollback())
	b.putKey("k", 2, 3)
	b.takeOne("k-2")
}

func (b *bed) invalid() {
	for _, m := range []outbox.Message{{}, {Topic: "a\n"}, {Topic: "t", OrderKey: "\xff"}, {Topic: "t", ID: "order 17 "}} {
		tx := b.begin(b.t)
		if err := tx.Put(b.ctx, m); err == nil {
			b.t.Errorf("%+v was written", m)
		}
		b.must(tx.Rollback())
	}
	b.wantIDs(b.take(100))
}

// The message of the transaction that commits late has the lower position.
func (b *bed) lateCommit() {
	late, early := b.begin(b.t), b.begin(b.t)
	b.must(late.Put(b.ctx, message("late", 1)))
	b.must(early.Put(b.ctx, message("early", 1)))
	b.must(early.Commit())
	first := b.takeOne("early-1")
	b.settle(first, outbox.Delivered, 0)
	b.must(late.Commit())
	second := b.takeOne("late-1")
	if second.Position >= first.Position {
		b.t.Errorf("the late one has position %d, not below %d: the test tests nothing", second.Position, first.Position)
	}
}

// Two transactions write messages of one key: the second waits, so that no message of
// the key becomes visible before an earlier one.
func (b *bed) waitsForKey() {
	one, two := b.begin(b.t), b.begin(b.t)
	b.must(one.Put(b.ctx, message("k", 1)))
	done := make(chan error, 1)
	go func() {
		err := two.Put(b.ctx, message("k", 2))
		if err == nil {
			err = two.Commit()
		}
		done <- err
	}()
	for range 20 {
		b.wantIDs(b.take(100))
	}
	select {
	case err := <-done:
		b.t.Fatalf("the second transaction has ended before the first: %v", err)
	default:
	}
	b.must(one.Commit())
	b.must(<-done)
	b.wantIDs(b.take(100), "k-1", "k-2")
}

func (b *bed) order() {
	var all []string
	for n := range 30 {
		b.putKey("k", n, n+1)
		b.putKey(fmt.Sprint("other", n), 0, 1)
		all = append(all, fmt.Sprint("k-", n))
	}
	var got []string
	for _, id := range b.takeAll() {
		if id[:2] == "k-" {
			got = append(got, id)
		}
	}
	if !slices.Equal(got, all) {
		b.t.Errorf("taken %q, want %q", got, all)
	}
	b.putKey("k", 0, 5)
	for limit := 1; limit < 5; limit++ {
		got := ids(b.take(limit))
		if len(got) == 0 || !slices.Equal(got, []string{"k-0", "k-1", "k-2", "k-3", "k-4"}[:len(got)]) {
			b.t.Errorf("with limit %d: %q; want messages in order, from the first", limit, got)
		}
	}
}

func (b *bed) busy() {
	b.putKey("a", 0, 3)
	b.putKey("b", 0, 1)
	b.wantIDs(b.take(100, (&outbox.Message{Topic: "orders", OrderKey: "a"}).Order()), "b-0")
	failed := b.take(100, (&outbox.Message{Topic: "orders", OrderKey: "b"}).Order())
	b.settle(&failed[0], outbox.Failed, 0)
	b.wantIDs(b.take(100, failed[0].Order), "b-0")
}

func (b *bed) share() {
	b.lease()
	lanes, share, err := b.Lease(b.ctx, "two", long)
	b.must(err)
	if len(lanes) != 0 || share != outbox.Lanes/2 {
		b.t.Fatalf("the second publisher has %d lanes and the share %d, want 0 and %d", len(lanes), share, outbox.Lanes/2)
	}
	b.must(b.Release(b.ctx, "one", b.lanes[3:5]))
	b.must(b.Release(b.ctx, "two", b.lanes[5:6])) // not its own
	lanes, _, err = b.Lease(b.ctx, "two", long)
	b.must(err)
	if len(lanes) != 2 {
		b.t.Fatalf("the second publisher has %v, want the 2 lanes that were released", lanes)
	}
	for i, l := range lanes {
		if old := b.lanes[3+i]; l.Number != old.Number || l.Fence <= old.Fence {
			b.t.Errorf("lane %+v was %+v; want the same number and a higher fence", l, old)
		}
	}
	mine, share, err := b.Lease(b.ctx, "one", long)
	b.must(err)
	if len(mine) != outbox.Lanes-2 || share != outbox.Lanes/2 {
		b.t.Errorf("the first publisher has %d lanes and the share %d", len(mine), share)
	}
	again, _, err := b.Lease(b.ctx, "two", long)
	b.must(err)
	if !slices.Equal(again, lanes) {
		b.t.Errorf("a renewal returns %v, want %v", again, lanes)
	}
}

func (b *bed) takeOver() {
	old, _, err := b.Lease(b.ctx, "one", time.Microsecond)
	b.must(err)
	var lanes []outbox.Lane
	b.until("the lease is over", func() bool {
		lanes, _, err = b.Lease(b.ctx, "two", long)
		b.must(err)
		return len(lanes) == outbox.Lanes
	})
	for i, l := range lanes {
		if l.Number != old[i].Number || l.Fence <= old[i].Fence {
			b.t.Errorf("lane %+v was %+v; want a higher fence", l, old[i])
		}
	}
	b.putKey("k", 0, 1)
	b.lanes = old
	b.wantIDs(b.take(100))
	b.lanes = lanes
	b.takeOne("k-0")
}

func (b *bed) fenced() {
	b.putKey("k", 0, 2)
	old, _, err := b.Lease(b.ctx, "one", time.Microsecond)
	b.must(err)
	b.lanes = old
	taken := b.take(100)
	b.until("the lease is over", func() bool {
		b.lanes, _, err = b.Lease(b.ctx, "two", long)
		b.must(err)
		return len(b.lanes) == outbox.Lanes
	})
	b.settle(&taken[0], outbox.Refused, 0)
	b.settle(&taken[0], outbox.Failed, time.Hour)
	b.wantIDs(b.take(100), "k-0", "k-1")
	b.wantStats(outbox.Stats{Waiting: 2})
}

func (b *bed) delivered() {
	b.putKey("k", 0, 3)
	taken := b.take(100)
	b.must(b.Settle(b.ctx, []outbox.Result{{Taken: &taken[0], Kind: outbox.Delivered}, {Taken: &taken[1], Kind: outbox.Delivered, Keep: true}}))
	b.must(b.Settle(b.ctx, []outbox.Result{{Taken: &taken[0], Kind: outbox.Delivered}})) // its reply was lost
	b.wantStats(outbox.Stats{Waiting: 1})
	b.wantIDs(b.take(100), "k-2")
	e, err := b.Get(b.ctx, taken[1].Position)
	b.must(err)
	if e.State != outbox.Sent || e.Sent.IsZero() || !reflect.DeepEqual(e.Message, taken[1].Message) {
		b.t.Errorf("the kept message is %+v", e)
	}
	n, err := b.Trim(b.ctx, time.Hour, 10)
	b.must(err)
	if n != 0 {
		b.t.Errorf("%d messages of the last hour were deleted", n)
	}
	b.until("the retention of 1µs is over", func() bool {
		n, err = b.Trim(b.ctx, time.Microsecond, 10)
		b.must(err)
		return n == 1
	})
	b.wantStats(outbox.Stats{Waiting: 1})
}
