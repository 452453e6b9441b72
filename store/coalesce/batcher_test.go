package coalesce_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/semel-go/semel/store/coalesce"
)

type item = coalesce.Item[int, string]

// gate is a flush function whose flushes return when the test says so.
type gate struct {
	batcher *coalesce.Batcher[int, string]
	begun   chan []int           // the batch of each flush
	ctx     chan context.Context // and its context
	let     chan struct{}        // one value lets one flush return
}

func newGate(o *coalesce.Options[int]) *gate {
	g := &gate{begun: make(chan []int, 100), ctx: make(chan context.Context, 100), let: make(chan struct{})}
	g.batcher = coalesce.New(func(ctx context.Context, batch []*item) {
		var reqs []int
		for _, it := range batch {
			reqs = append(reqs, it.Req)
			it.Res = fmt.Sprint(it.Req)
		}
		g.begun <- reqs
		g.ctx <- ctx
		<-g.let
	}, o)
	return g
}

// answer is the result of a call.
type answer struct {
	res string
	err error
}

// start calls Do, or Urgent, and waits until the request is in or queued.
func (g *gate) start(ctx context.Context, req int, urgent ...bool) <-chan answer {
	c := make(chan answer, 1)
	go func() {
		do := g.batcher.Do
		if len(urgent) > 0 {
			do = g.batcher.Urgent
		}
		res, err := do(ctx, req)
		c <- answer{res, err}
	}()
	synctest.Wait()
	return c
}

// pass lets the flush in flight return, and returns the batch of the next one, or
// nil if there is none.
func (g *gate) pass() []int {
	g.let <- struct{}{}
	synctest.Wait()
	select {
	case reqs := <-g.begun:
		return reqs
	default:
		return nil
	}
}

func (a answer) want(t *testing.T, res string) {
	t.Helper()
	if a.err != nil || a.res != res {
		t.Errorf("got %q, %v; want %q", a.res, a.err, res)
	}
}

func wantBatch(t *testing.T, got []int, want ...int) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("flushed %v, want %v", got, want)
	}
}

// goroutine returns the name of the running goroutine.
func goroutine() string {
	name, _, _ := strings.Cut(string(debugStack()), " [")
	return name
}

func debugStack() []byte {
	b := make([]byte, 64)
	return b[:runtime.Stack(b, false)]
}

func TestDo_IdleBatcher_IsFlushedByCaller(t *testing.T) {
	type mark struct{}
	ctx := context.WithValue(t.Context(), mark{}, "mine")
	var on string
	var seen any
	l := coalesce.New(func(ctx context.Context, batch []*item) {
		on, seen = goroutine(), ctx.Value(mark{})
		batch[0].Res = "done"
	}, nil)
	for range 3 {
		on = ""
		res, err := l.Do(ctx, 1)
		answer{res, err}.want(t, "done")
		if on != goroutine() {
			t.Errorf("flushed on %q, called on %q", on, goroutine())
		}
		if seen != "mine" {
			t.Error("the flush of a lone call has another context than the call")
		}
	}
}

func TestDo_FlushInFlight_QueuedRequestsGoTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(nil)
		a := g.start(t.Context(), 1)
		wantBatch(t, <-g.begun, 1)
		b, c := g.start(t.Context(), 2), g.start(t.Context(), 3)
		wantBatch(t, g.pass(), 2, 3)
		(<-a).want(t, "1")
		wantBatch(t, g.pass())
		(<-b).want(t, "2")
		(<-c).want(t, "3")
	})
}

func TestFlush_RequestFails_OnlyItsCallerGetsError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		odd := errors.New("odd")
		in, let := make(chan int, 10), make(chan struct{})
		l := coalesce.New(func(_ context.Context, batch []*item) {
			in <- len(batch)
			<-let
			for _, it := range batch {
				if it.Req%2 == 1 {
					it.Err = odd
				}
			}
		}, nil)
		errs := make([]error, 5)
		for i := range errs {
			go func() { _, errs[i] = l.Do(t.Context(), i) }()
			synctest.Wait()
		}
		close(let)
		synctest.Wait()
		for i, err := range errs {
			if got, want := errors.Is(err, odd), i%2 == 1; got != want {
				t.Errorf("request %d: %v", i, err)
			}
		}
		if first, second := <-in, <-in; first != 1 || second != 4 {
			t.Errorf("batches of %d and %d, want 1 and 4", first, second)
		}
	})
}

func TestFlush_ManyQueued_TakesMaxBatchInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(&coalesce.Options[int]{MaxBatch: 3})
		for i := range 8 {
			g.start(t.Context(), i)
		}
		wantBatch(t, <-g.begun, 0)
		wantBatch(t, g.pass(), 1, 2, 3)
		g.start(t.Context(), 8)
		wantBatch(t, g.pass(), 4, 5, 6)
		wantBatch(t, g.pass(), 7, 8)
		wantBatch(t, g.pass())
	})
}

func TestUrgent_OthersQueued_GoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(&coalesce.Options[int]{MaxBatch: 2})
		for i := range 4 {
			g.start(t.Context(), i)
		}
		for i := 10; i < 13; i++ {
			g.start(t.Context(), i, true)
		}
		wantBatch(t, <-g.begun, 0)
		wantBatch(t, g.pass(), 10, 11)
		wantBatch(t, g.pass(), 12, 1)
		wantBatch(t, g.pass(), 2, 3)
		wantBatch(t, g.pass())
	})
}

func TestFlushers_Several_RunConcurrently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(&coalesce.Options[int]{Flushers: 2})
		for i := range 5 {
			g.start(t.Context(), i)
		}
		wantBatch(t, <-g.begun, 0)
		wantBatch(t, <-g.begun, 1)
		if len(g.begun) != 0 {
			t.Fatal("three flushes in flight")
		}
		wantBatch(t, g.pass(), 2, 3, 4)
		wantBatch(t, g.pass())
		wantBatch(t, g.pass())
	})
}
