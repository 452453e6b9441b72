package coalesce_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/semel-go/semel/store/coalesce"
)

// Requests conflict when they are equal modulo 10.
func lastDigit(req *int) uint64 { return uint64(*req % 10) }

func TestConflict_EqualNumbers_TakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(&coalesce.Options[int]{Conflict: lastDigit})
		for _, req := range []int{1, 11, 2, 21, 12, 3} {
			g.start(t.Context(), req)
		}
		wantBatch(t, <-g.begun, 1)
		wantBatch(t, g.pass(), 2, 3, 11)
		wantBatch(t, g.pass(), 12, 21)
		wantBatch(t, g.pass())
	})
}

func TestConflict_EqualNumbers_NeverInTwoFlushes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(&coalesce.Options[int]{Conflict: lastDigit, Flushers: 3})
		for _, req := range []int{1, 11, 2, 21} {
			g.start(t.Context(), req)
		}
		wantBatch(t, <-g.begun, 1)
		wantBatch(t, <-g.begun, 2)
		if len(g.begun) > 0 {
			t.Fatalf("%v flushed beside 1", <-g.begun)
		}
		g.let <- struct{}{} // either returns; then the other
		g.let <- struct{}{}
		synctest.Wait()
		wantBatch(t, <-g.begun, 11)
		wantBatch(t, g.pass(), 21)
		wantBatch(t, g.pass())
	})
}

func TestConflict_NumberInDemand_DoesNotDelayOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(&coalesce.Options[int]{Conflict: lastDigit, MaxBatch: 1})
		for _, req := range []int{1, 11, 21, 31, 2, 3} {
			g.start(t.Context(), req)
		}
		wantBatch(t, <-g.begun, 1)
		for _, want := range []int{2, 3, 11, 21, 31} {
			wantBatch(t, g.pass(), want)
		}
		wantBatch(t, g.pass())
	})
}

func TestUrgent_Conflict_WaitsForEarlierRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(&coalesce.Options[int]{Conflict: lastDigit, MaxBatch: 1})
		g.start(t.Context(), 1)
		g.start(t.Context(), 2)
		g.start(t.Context(), 3)
		g.start(t.Context(), 11, true)
		wantBatch(t, <-g.begun, 1)
		for _, want := range []int{11, 2, 3} { // in turn, but at the head
			wantBatch(t, g.pass(), want)
		}
		wantBatch(t, g.pass())
	})
}

func TestConflict_CallerLeaves_NextIsQueued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		g := newGate(&coalesce.Options[int]{Conflict: lastDigit})
		g.start(t.Context(), 5)
		g.start(ctx, 1)          // queued, holds the number
		g.start(t.Context(), 11) // waits for it
		g.start(ctx, 21)         // waits for it, too
		stays := g.start(t.Context(), 31)
		if n := g.batcher.Queued(); n != 4 {
			t.Errorf("%d queued, want 4", n)
		}
		cancel()
		synctest.Wait()
		if n := g.batcher.Queued(); n != 2 {
			t.Errorf("%d queued after two left, want 2", n)
		}
		wantBatch(t, <-g.begun, 5)
		wantBatch(t, g.pass(), 11)
		wantBatch(t, g.pass(), 31)
		wantBatch(t, g.pass())
		(<-stays).want(t, "31")
		if n := g.batcher.Queued(); n != 0 {
			t.Errorf("%d queued at the end", n)
		}
		g.start(t.Context(), 41) // the number is free again
		wantBatch(t, <-g.begun, 41)
		wantBatch(t, g.pass())
	})
}
