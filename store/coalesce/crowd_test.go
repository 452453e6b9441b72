package coalesce_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel/store/coalesce"
)

// doors are flushes that the test lets through one by one, each by its first
// request.
type doors struct {
	gate
	let map[int]chan struct{}
}

// newDoors has two flushes in flight, begun in this order: 10, and eight from
// 11 on. The flush of 10 takes so long that no timer disturbs.
func newDoors(t *testing.T) *doors {
	t.Helper()
	d := &doors{let: map[int]chan struct{}{}}
	for req := range 100 {
		d.let[req] = make(chan struct{})
	}
	d.begun = make(chan []int, 100)
	d.batcher = coalesce.New(func(_ context.Context, batch []*item) {
		var reqs []int
		for _, it := range batch {
			reqs = append(reqs, it.Req)
		}
		d.begun <- reqs
		<-d.let[reqs[0]]
	}, &coalesce.Options[int]{Flushers: 3})
	for req := range 11 { // a crowd
		d.start(t.Context(), req)
	}
	for req := range 3 {
		wantBatch(t, <-d.begun, req)
	}
	time.Sleep(time.Hour)
	wantBatch(t, d.end(0), 3, 4, 5, 6, 7, 8, 9, 10)
	time.Sleep(time.Hour)
	for _, req := range []int{1, 2, 3} {
		wantBatch(t, d.end(req))
	}
	for req := 10; req <= 18; req++ {
		d.start(t.Context(), req)
	}
	wantBatch(t, <-d.begun, 10)
	wantBatch(t, <-d.begun, 11, 12, 13, 14, 15, 16, 17, 18)
	return d
}

// end ends the flush whose first request is req, and gives the batch of the
// next, or nil if none begins.
func (d *doors) end(req int) []int {
	d.let[req] <- struct{}{}
	synctest.Wait()
	select {
	case reqs := <-d.begun:
		return reqs
	default:
		return nil
	}
}

func TestCrowd_FewQueued_FlusherLeavesThemToLaterFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoors(t)
		for req := 20; req < 23; req++ {
			d.start(t.Context(), req)
		}
		wantBatch(t, d.end(10)) // three would not have had a flush begin
		d.start(t.Context(), 23)
		wantBatch(t, d.end(11), 20, 21, 22, 23)
		wantBatch(t, d.end(20))
	})
}

func TestCrowd_LaterFlushHangs_QueueIsFlushed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoors(t)
		d.start(t.Context(), 20)
		wantBatch(t, d.end(10))
		after, batch := d.waits() // 11 hangs
		wantBatch(t, batch, 20)
		if after > 40*time.Millisecond {
			t.Errorf("20 was held for %v", after)
		}
		d.start(t.Context(), 21)
		wantBatch(t, d.end(20), 21) // nor again, as long as it hangs
		wantBatch(t, d.end(21))
		wantBatch(t, d.end(11))
	})
}

func TestCrowd_EarlierFlushInFlight_FlusherTakesQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoors(t)
		d.start(t.Context(), 20)
		wantBatch(t, d.end(11), 20) // 10 may hang
		wantBatch(t, d.end(20))
		wantBatch(t, d.end(10))
	})
}

func TestCrowd_FullBatchQueued_FlusherTakesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoors(t)
		for req := 20; req < 27; req++ {
			d.start(t.Context(), req)
		}
		d.start(t.Context(), 27, true) // eight for one in flight
		if batch := d.end(10); len(batch) != 8 {
			t.Errorf("flushed %v, want all eight", batch)
		}
		wantBatch(t, d.end(27))
		wantBatch(t, d.end(11))
	})
}

// One that comes alone may be of a crowd all the same.
func TestCrowd_OneSingleRequest_IsNotItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoors(t)
		wantBatch(t, d.end(10))
		d.start(t.Context(), 20)
		wantBatch(t, d.end(11), 20)
		d.start(t.Context(), 21)
		d.wantNone(t)
		wantBatch(t, d.end(20), 21)
		wantBatch(t, d.end(21))
	})
}

// In a crowd whoever meets an idle batcher goes with those who are about to come,
// and so not under its own context.
func TestCrowd_IdleBatcher_IsNotFlushedByCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newCrowd(t, &coalesce.Options[int]{Flushers: 1}, 0)
		for len(g.ctx) > 0 {
			<-g.ctx
		}
		ctx, cancel := context.WithCancel(t.Context())
		g.start(ctx, 10)
		g.start(t.Context(), 11)
		wantBatch(t, <-g.begun, 10)
		flight := <-g.ctx
		if flight == ctx {
			t.Error("the flush has its caller's context")
		}
		cancel()
		synctest.Wait()
		if flight.Err() == nil {
			t.Error("the flush goes on, though nobody waits for it")
		}
		wantBatch(t, g.pass(), 11)
		g.pass()
	})
}

// How many wait for each flush in flight is an option, and no more than a batch
// takes.
func TestQueuedPerFlush_Option_SetsHowManyWait(t *testing.T) {
	for _, c := range []struct{ queuedPerFlush, max, want int }{{0, 0, 8}, {3, 0, 3}, {16, 0, 16}, {16, 5, 5}} {
		synctest.Test(t, func(t *testing.T) {
			g := gate{begun: make(chan []int, 100)}
			hung := make(chan struct{})
			g.batcher = coalesce.New(func(_ context.Context, batch []*item) {
				g.begun <- []int{batch[0].Req, len(batch)}
				if batch[0].Req >= 100 {
					<-hung
				} else {
					time.Sleep(time.Hour)
				}
			}, &coalesce.Options[int]{Flushers: 2, QueuedPerFlush: c.queuedPerFlush, MaxBatch: c.max})
			for req := range 40 { // a crowd
				g.start(t.Context(), req)
			}
			time.Sleep(100 * time.Hour)
			for len(g.begun) > 0 {
				<-g.begun
			}
			g.start(t.Context(), 100)
			synctest.Wait()
			wantBatch(t, <-g.begun, 100, 1)
			for i := range c.want {
				if synctest.Wait(); len(g.begun) > 0 {
					t.Errorf("%+v: a flush began for %d", c, i)
				}
				g.start(t.Context(), 101+i)
			}
			synctest.Wait()
			wantBatch(t, <-g.begun, 101, c.want)
			close(hung)
		})
	}
}
