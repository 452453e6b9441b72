package outboxtest

import (
	"fmt"
	"slices"
	"time"

	"github.com/semel-go/semel/outbox"
)

// A publisher that was frozen settles a message again, after others were written.
func (b *bed) lateSettle() {
	b.putKey("k", 0, 1)
	old := b.takeOne("k-0")
	b.settle(old, outbox.Delivered, 0)
	b.putKey("k", 1, 2)
	b.settle(old, outbox.Delivered, 0)
	b.settle(old, outbox.Refused, 0)
	b.takeOne("k-1")
}

// A publisher that was frozen settles messages that the next owner of their lanes has
// settled before.
func (b *bed) lateDelivery() {
	b.putKey("k", 0, 4)
	b.settle(&b.take(100)[0], outbox.Failed, 0)
	b.settle(b.takeOne("k-0"), outbox.Delivered, 0)
	old := b.take(100)
	b.wantIDs(old, "k-1", "k-2", "k-3")
	b.must(b.Release(b.ctx, "one", b.lanes))
	var err error
	b.lanes, _, err = b.Lease(b.ctx, "two", long)
	b.must(err)
	taken := b.take(100)
	b.wantIDs(taken, "k-1", "k-2", "k-3")
	b.settle(&taken[0], outbox.Delivered, 0)
	b.settle(&taken[1], outbox.Refused, 0)
	for _, i := range []int{0, 2} { // neither is the message that stops the key
		b.settle(&old[i], outbox.Delivered, 0)
		b.wantIDs(b.take(100))
		if s := b.stats(); s.Quarantined != 1 || s.StoppedKeys != 1 {
			b.t.Errorf("after the late delivery of %s: stats %+v; want 1 quarantined message and 1 stopped key", old[i].ID, s)
		}
	}
	b.putKey("k", 4, 5)
	b.settle(&old[1], outbox.Delivered, 0) // it was delivered after all
	if got, want := b.takeAll(), []string{"k-4"}; !slices.Equal(got, want) {
		b.t.Errorf("taken %q, want %q", got, want)
	}
	b.wantStats(outbox.Stats{})
}

func (b *bed) failed() {
	b.putKey("bad", 0, 3)
	b.putKey("good", 0, 1)
	taken := b.take(100)
	i := slices.IndexFunc(taken, func(t outbox.Taken) bool { return t.ID == "bad-0" })
	b.settle(&taken[i], outbox.Failed, time.Hour)
	b.takeOne("good-0")
	b.putKey("bad", 3, 4)
	b.takeOne("good-0")
	e, err := b.Get(b.ctx, taken[i].Position)
	b.must(err)
	if e.State != outbox.Held || e.Attempts != 1 || e.LastError != "it failed" {
		b.t.Errorf("the failed message is %+v", e)
	}
}

func (b *bed) goesOn() {
	b.putKey("k", 0, 3)
	for attempt := range 3 {
		taken := b.take(100)
		if attempt > 0 { // after a failure the first comes alone
			b.wantIDs(taken, "k-0")
		}
		if taken[0].Attempts != attempt {
			b.t.Errorf("attempt %d: the message has %d attempts", attempt, taken[0].Attempts)
		}
		b.settle(&taken[0], outbox.Failed, 0)
		b.putKey("k", 3+attempt, 4+attempt)
	}
	b.settle(b.takeOne("k-0"), outbox.Delivered, 0)
	b.putKey("k", 6, 7)
	if got, want := b.takeAll(), []string{"k-1", "k-2", "k-3", "k-4", "k-5", "k-6"}; !slices.Equal(got, want) {
		b.t.Errorf("taken %q, want %q", got, want)
	}
	b.wantStats(outbox.Stats{})
	b.putKey("k", 7, 9)
	b.wantIDs(b.take(100), "k-7", "k-8") // nothing is left of the failure
}

// The reply to a settlement is lost, so that the publisher sends it again.
func (b *bed) failedAgain() {
	b.putKey("k", 0, 2)
	for attempt := range 3 {
		failed := b.take(100)[0]
		b.settle(&failed, outbox.Failed, 0)
		b.settle(&failed, outbox.Failed, time.Hour) // it does not delay the key either
		if again := b.takeOne("k-0"); again.Attempts != attempt+1 {
			b.t.Fatalf("after %d failures the message has %d attempts", attempt+1, again.Attempts)
		}
	}
	last := b.takeOne("k-0")
	b.settle(last, outbox.Refused, 0)
	b.must(b.Retry(b.ctx, last.Position))
	b.settle(last, outbox.Refused, 0) // an operator has decided since
	if again := b.takeOne("k-0"); again.Attempts != 4 {
		b.t.Errorf("the message has %d attempts, want 4", again.Attempts)
	}
}

func (b *bed) refused() {
	b.putKey("k", 0, 2)
	taken := b.take(100)
	b.settle(&taken[0], outbox.Refused, 0)
	b.wantIDs(b.take(100))
	if s := b.stats(); s.Quarantined != 1 || s.StoppedKeys != 1 || s.Waiting+s.Held != 1 {
		b.t.Errorf("stats %+v; want 1 quarantined, 1 stopped key and 1 other", s)
	}
	list, err := b.List(b.ctx, outbox.Quarantined, 0, 10)
	b.must(err)
	if len(list) != 1 || list[0].ID != "k-0" || list[0].LastError != "it failed" || list[0].Attempts != 1 || list[0].State != outbox.Quarantined {
		b.t.Fatalf("the quarantine has %+v", list)
	}
	b.must(b.Retry(b.ctx, list[0].Position))
	if got, want := b.takeAll(), []string{"k-0", "k-1"}; !slices.Equal(got, want) {
		b.t.Errorf("taken %q, want %q", got, want)
	}
	b.wantError(b.Retry(b.ctx, list[0].Position), outbox.ErrNotFound)
	b.wantStats(outbox.Stats{})
}

func (b *bed) drop() {
	b.putKey("k", 0, 3)
	taken := b.take(100)
	b.settle(&taken[0], outbox.Refused, 0)
	b.must(b.Drop(b.ctx, taken[2].Position)) // not the first: the key stays stopped
	b.wantIDs(b.take(100))
	b.must(b.Drop(b.ctx, taken[0].Position))
	if got, want := b.takeAll(), []string{"k-1"}; !slices.Equal(got, want) {
		b.t.Errorf("taken %q, want %q", got, want)
	}
	b.putKey("x", 0, 1)
	last := b.takeOne("x-0")
	b.settle(last, outbox.Failed, time.Hour)
	b.must(b.Drop(b.ctx, last.Position)) // nothing is left of the key
	b.putKey("x", 1, 3)
	b.wantIDs(b.take(100), "x-1", "x-2")
}

func (b *bed) dropStates() {
	b.wantError(b.Drop(b.ctx, 1<<40), outbox.ErrNotFound)
	b.wantError(b.Retry(b.ctx, 1<<40), outbox.ErrNotFound)
	b.putKey("k", 0, 2)
	taken := b.take(100)
	b.wantError(b.Retry(b.ctx, taken[0].Position), outbox.ErrState)
	b.must(b.Drop(b.ctx, taken[0].Position))
	b.wantIDs(b.take(100), "k-1")
	b.must(b.Settle(b.ctx, []outbox.Result{{Taken: &taken[1], Kind: outbox.Delivered, Keep: true}}))
	b.wantError(b.Drop(b.ctx, taken[1].Position), outbox.ErrState)
	b.wantError(b.Retry(b.ctx, taken[1].Position), outbox.ErrState)
}

// One request returns fewer messages than there are after a failed one.
func (b *bed) manyBehind() {
	b.putKey("bad", 0, 300)
	first := b.take(5)
	b.settle(&first[0], outbox.Failed, time.Hour)
	var good []string
	for n := range 20 {
		b.putKey(fmt.Sprint("good", n), 0, 1)
		good = append(good, fmt.Sprint("good", n, "-0"))
	}
	var got []string
	b.until("all other keys", func() bool {
		taken := b.take(5)
		got = append(got, ids(taken)...)
		for i := range taken {
			b.settle(&taken[i], outbox.Delivered, 0)
		}
		return len(got) >= len(good)
	})
	slices.Sort(got)
	slices.Sort(good)
	if !slices.Equal(got, good) {
		b.t.Errorf("taken %q, want %q", got, good)
	}
	b.must(b.Retry(b.ctx, first[0].Position))
	b.settle(b.takeOne("bad-0"), outbox.Delivered, 0)
	all := b.takeAll()
	for i, id := range all {
		if want := fmt.Sprint("bad-", i+1); id != want {
			b.t.Fatalf("message %d is %q, want %q", i, id, want)
		}
	}
	if len(all) != 299 {
		b.t.Errorf("%d messages, want 299", len(all))
	}
	b.wantStats(outbox.Stats{})
}

// More keys that have failed are due than one request returns.
func (b *bed) manyDue() {
	for n := range 100 {
		b.putKey(fmt.Sprint("bad", n), 0, 1)
	}
	for _, t := range b.take(400) {
		b.settle(&t, outbox.Failed, 0)
	}
	b.putKey("good", 0, 1)
	for _, limit := range []int{2, 5, 16, 80} {
		got := ids(b.take(limit))
		if len(got) > limit || len(got) < 2 || !slices.Contains(got, "good-0") {
			b.t.Errorf("with limit %d: %q; want good-0, and others that have failed", limit, got)
		}
	}
	first := b.take(400)[0]
	b.settle(&first, outbox.Failed, 0) // now the others of its lane have waited longer
	again := b.take(400)
	last := ""
	for i := range again {
		if again[i].Lane == first.Lane && again[i].Attempts > 0 {
			last = again[i].ID
		}
	}
	if len(again) != 101 || last != first.ID {
		b.t.Errorf("%d messages, and the last of those in the lane that have failed is %s; want 101 and %s", len(again), last, first.ID)
	}
}

// More messages of a paused topic wait, and are due after a failure, than one request
// returns.
func (b *bed) pausedTopic() {
	var missing []outbox.Message
	for n := range 100 {
		missing = append(missing, outbox.Message{Topic: "missing \"'<", ID: fmt.Sprint("missing-", n)})
	}
	b.put(missing[:50]...)
	for _, t := range b.take(100) {
		b.settle(&t, outbox.Failed, 0)
	}
	b.put(missing[50:]...)
	b.putKey("due", 0, 2)
	b.paused = []string{"another", missing[0].Topic}
	b.settle(&b.take(100)[0], outbox.Failed, 0)
	b.putKey("new", 0, 1)
	found := map[string]bool{}
	b.until("the messages of the other topic", func() bool {
		for _, id := range ids(b.take(5)) {
			found[id] = true
		}
		return len(found) >= 2
	})
	if !found["due-0"] || !found["new-0"] {
		b.t.Errorf("taken %v, want due-0 and new-0 only", found)
	}
	b.paused = nil
	if n := len(b.take(400)); n != 102 {
		b.t.Errorf("%d messages after the pause, want 102", n)
	}
}

func (b *bed) woken() {
	if b.Woken() == nil {
		b.t.Log("the store has no notifications")
		return
	}
	for n := range 3 { // a first notification may be of an earlier event
		b.putKey("k", n, n+1)
		b.until("a notification", func() bool {
			select {
			case <-b.Woken():
				return true
			default:
				return false
			}
		})
		// A transaction shortly after another need not notify.
		pause := time.After(200 * time.Millisecond)
		<-pause
	}
}
