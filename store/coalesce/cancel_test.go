package coalesce_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/semel-go/semel/store/coalesce"
)

func (a answer) wantErr(t *testing.T, target error) {
	t.Helper()
	if !errors.Is(a.err, target) {
		t.Errorf("got %q, %v; want %v", a.res, a.err, target)
	}
}

func TestDo_ContextEnded_SendsNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l := coalesce.New(func(context.Context, []*item) { t.Error("flushed") }, nil)
	res, err := l.Do(ctx, 1)
	answer{res, err}.wantErr(t, context.Canceled)
}

func TestDo_ContextEndsInQueue_SendsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		g := newGate(nil)
		g.start(t.Context(), 1)
		gone, urgent, stays := g.start(ctx, 2), g.start(ctx, 3, true), g.start(t.Context(), 4)
		cancel()
		(<-gone).wantErr(t, context.Canceled)
		(<-urgent).wantErr(t, context.Canceled)
		wantBatch(t, <-g.begun, 1)
		wantBatch(t, g.pass(), 4)
		wantBatch(t, g.pass())
		(<-stays).want(t, "4")
	})
}

func TestDo_AllLeaveQueue_NothingIsFlushed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		g := newGate(nil)
		g.start(t.Context(), 1)
		g.start(ctx, 2)
		cancel()
		synctest.Wait()
		wantBatch(t, <-g.begun, 1)
		wantBatch(t, g.pass())
		g.start(t.Context(), 3) // the batcher is idle, and works
		wantBatch(t, <-g.begun, 3)
		wantBatch(t, g.pass())
	})
}

func TestDo_OneLeavesInFlight_FlushContinues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		g := newGate(nil)
		g.start(t.Context(), 1)
		gone, stays := g.start(ctx, 2), g.start(t.Context(), 3)
		<-g.ctx
		wantBatch(t, <-g.begun, 1)
		wantBatch(t, g.pass(), 2, 3)
		flight := <-g.ctx
		cancel()
		(<-gone).wantErr(t, context.Canceled)
		if flight.Err() != nil {
			t.Error("one caller cancelled what another waits for")
		}
		wantBatch(t, g.pass())
		(<-stays).want(t, "3")
		if flight.Err() == nil {
			t.Error("the context of a finished flush goes on")
		}
	})
}

func TestFlush_LastCallerLeaves_ContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		g := newGate(nil)
		g.start(t.Context(), 1)
		g.start(ctx, 2)
		g.start(ctx, 3)
		later := g.start(t.Context(), 4)
		<-g.ctx
		g2 := newGate(&coalesce.Options[int]{MaxBatch: 2}) // the same with a full batch before the last
		g2.start(t.Context(), 1)
		a, b := g2.start(ctx, 2), g2.start(ctx, 3)
		g2.start(t.Context(), 4)
		<-g2.ctx
		g.pass()
		g2.pass()
		shared, own := <-g.ctx, <-g2.ctx
		cancel()
		(<-a).wantErr(t, context.Canceled)
		(<-b).wantErr(t, context.Canceled)
		if shared.Err() != nil {
			t.Error("cancelled, though one still waits")
		}
		if own.Err() == nil {
			t.Error("goes on, though nobody waits")
		}
		g.pass()
		(<-later).want(t, "4")
		g2.pass()
		g2.pass()
	})
}

// An item whose caller left in flight must not be handed to another caller
// while its flush still writes to it.
func TestItem_CallerLeftInFlight_IsNotReused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		let := make(chan struct{})
		kept := make(chan *item, 10)
		l := coalesce.New(func(_ context.Context, batch []*item) {
			kept <- batch[0]
			<-let
			for _, it := range batch {
				it.Res = "late"
			}
		}, &coalesce.Options[int]{Flushers: 2, MaxBatch: 1})
		do := func(ctx context.Context, req int) {
			go func() { _, _ = l.Do(ctx, req) }()
			synctest.Wait()
		}
		do(t.Context(), 1)
		do(t.Context(), 2)
		do(ctx, 3) // queued behind both
		let <- struct{}{}
		synctest.Wait() // 3 is in flight
		cancel()
		synctest.Wait()
		do(t.Context(), 4)
		do(t.Context(), 5)
		close(let)
		synctest.Wait()
		<-kept
		<-kept
		abandoned := <-kept
		for range 2 {
			if <-kept == abandoned {
				t.Error("the abandoned item came back")
			}
		}
	})
}

// In a detached batcher a caller returns when its context ends, although the flush,
// which has its request alone, ignores the context.
func TestDo_DetachedFlushHangs_CallerReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(&coalesce.Options[int]{Detached: true})
		ctx, cancel := context.WithCancel(t.Context())
		left := g.start(ctx, 1)
		if reqs := <-g.begun; len(reqs) != 1 {
			t.Fatalf("a flush of %v", reqs)
		}
		cancel()
		if a := <-left; !errors.Is(a.err, context.Canceled) {
			t.Errorf("%v", a)
		}
		next := g.start(t.Context(), 2)
		if reqs := g.pass(); len(reqs) != 1 || reqs[0] != 2 {
			t.Errorf("the next flush has %v", reqs)
		}
		g.pass()
		(<-next).want(t, "2")
	})
}
