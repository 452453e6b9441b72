package coalesce_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel/store/coalesce"
)

// newCrowd is a gate whose requests came in a crowd just now, in flushes that
// took so long each. Nothing is in flight.
func newCrowd(t *testing.T, o *coalesce.Options[int], took time.Duration) *gate {
	t.Helper()
	g := newGate(o)
	for req := range o.Flushers + 2 {
		g.start(t.Context(), req)
	}
	for i := range o.Flushers {
		wantBatch(t, <-g.begun, i)
	}
	time.Sleep(took)
	wantBatch(t, g.pass(), o.Flushers, o.Flushers+1)
	for range o.Flushers - 1 {
		wantBatch(t, g.pass())
	}
	time.Sleep(took)
	wantBatch(t, g.pass())
	return g
}

// waits is how long it takes until the next flush begins, and its batch.
func (g *gate) waits() (time.Duration, []int) {
	start := time.Now()
	batch := <-g.begun
	return time.Since(start), batch
}

// wantNone fails if a flush has begun.
func (g *gate) wantNone(t *testing.T) {
	t.Helper()
	synctest.Wait()
	if len(g.begun) > 0 {
		t.Errorf("%v was flushed", <-g.begun)
	}
}

func TestCrowd_FlusherFree_RequestsAreGathered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newCrowd(t, &coalesce.Options[int]{Flushers: 3}, 0)
		for req := 10; req < 18; req++ {
			g.start(t.Context(), req)
		}
		wantBatch(t, <-g.begun, 10)
		g.wantNone(t) // seven wait for one
		for req := 18; req < 34; req++ {
			g.start(t.Context(), req)
		}
		wantBatch(t, <-g.begun, 11, 12, 13, 14, 15, 16, 17, 18)
		g.wantNone(t) // and fifteen for two
		g.start(t.Context(), 34)
		if n := len(<-g.begun); n != 2*8 {
			t.Errorf("%d flushed, want 16", n)
		}
		for range 3 {
			g.let <- struct{}{}
		}
	})
}

func TestCrowd_Over_SingleRequestIsFlushedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newCrowd(t, &coalesce.Options[int]{Flushers: 3}, 0)
		g.start(t.Context(), 10)
		g.start(t.Context(), 11)
		wantBatch(t, <-g.begun, 10)
		wantBatch(t, g.pass(), 11) // alone: the crowd has gone
		g.start(t.Context(), 12)
		wantBatch(t, <-g.begun, 12)
		g.pass()
		g.pass()
	})
}

// A flush that hangs (a row that is locked, a connection that is dead) holds
// up nobody else as long as a flusher is free.
func TestCrowd_FlushHangs_OthersAreFlushed(t *testing.T) {
	for _, c := range []struct{ took, most time.Duration }{
		{0, time.Millisecond},
		{time.Millisecond, 6 * time.Millisecond},
		{time.Hour, 40 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			g := newCrowd(t, &coalesce.Options[int]{Flushers: 4}, c.took)
			g.start(t.Context(), 10)
			wantBatch(t, <-g.begun, 10)
			for req := 11; req <= 13; req++ { // each hangs, too, and the next comes in between
				g.start(t.Context(), req)
				after, batch := g.waits()
				wantBatch(t, batch, req)
				if after > c.most {
					t.Errorf("after flushes of %v, %d was held for %v, want at most %v", c.took, req, after, c.most)
				}
				time.Sleep(after / 3)
			}
			for range 4 {
				g.pass()
			}
		})
	}
}

// The timer is for the flush that hangs, and not for the next one.
func TestCrowd_QueueMoved_RequestWaitsOnceMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newCrowd(t, &coalesce.Options[int]{Flushers: 2}, 0)
		g.start(t.Context(), 10)
		g.start(t.Context(), 11)
		g.start(t.Context(), 12)
		wantBatch(t, <-g.begun, 10)
		time.Sleep(300 * time.Microsecond)
		wantBatch(t, g.pass(), 11, 12)
		g.start(t.Context(), 13)
		after, batch := g.waits()
		wantBatch(t, batch, 13)
		if after <= 200*time.Microsecond || after > 700*time.Microsecond {
			t.Errorf("13 was held for %v", after)
		}
		g.pass()
		g.pass()
	})
}

func TestCrowd_TimerWithEmptyQueue_DoesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		g := newCrowd(t, &coalesce.Options[int]{Flushers: 2}, 0)
		g.start(t.Context(), 10)
		g.start(ctx, 11)
		cancel() // it leaves
		wantBatch(t, <-g.begun, 10)
		time.Sleep(time.Second)
		g.wantNone(t)
		g.start(t.Context(), 12) // a timer is set again
		_, batch := g.waits()
		wantBatch(t, batch, 12)
		g.pass()
		g.pass()
		g.batcher.Close()
	})
}

func TestCrowd_MoreThanFullBatch_FreeFlusherTakesRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newCrowd(t, &coalesce.Options[int]{Flushers: 3, MaxBatch: 2}, 0)
		for req := 10; req <= 15; req++ {
			g.start(t.Context(), req)
		}
		wantBatch(t, <-g.begun, 10)
		wantBatch(t, <-g.begun, 11, 12) // a full batch waits for nobody
		g.wantNone(t)
		start := time.Now()
		g.let <- struct{}{} // either of them
		a, b := <-g.begun, <-g.begun
		if late := time.Since(start); late > 0 {
			t.Errorf("after %v", late)
		}
		if len(a) < len(b) {
			a, b = b, a
		}
		wantBatch(t, a, 13, 14)
		wantBatch(t, b, 15)
		for range 3 {
			g.pass()
		}
	})
}
