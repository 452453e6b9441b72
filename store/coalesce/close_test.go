package coalesce_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/semel-go/semel/store/coalesce"
)

func TestFlush_Panics_OnlyItsCallersGetIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("broken pipe")
		let := make(chan struct{})
		l := coalesce.New(func(_ context.Context, batch []*item) {
			<-let
			for _, it := range batch {
				it.Res = "half done"
			}
			if batch[0].Req > 0 {
				panic(cause)
			}
		}, nil)
		do := func(req int) <-chan answer {
			c := make(chan answer, 1)
			go func() {
				res, err := l.Do(t.Context(), req)
				c <- answer{res, err}
			}()
			synctest.Wait()
			return c
		}
		lone, a, b := do(1), do(2), do(3)
		close(let)
		for _, c := range []<-chan answer{lone, a, b} {
			got := <-c
			got.wantErr(t, cause)
			p, ok := errors.AsType[*coalesce.PanicError](got.err)
			if !ok || len(p.Stack) == 0 || got.res != "" {
				t.Errorf("got %q, %v: no PanicError with a stack, or a result beside it", got.res, got.err)
			}
		}
		(<-do(0)).want(t, "half done")
		l.Close()
	})
}

func TestFlush_EndsGoroutine_BatcherContinues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		let := make(chan struct{})
		l := coalesce.New(func(_ context.Context, batch []*item) {
			<-let
			if batch[0].Req > 0 {
				runtime.Goexit()
			}
		}, &coalesce.Options[int]{MaxBatch: 1})
		var errs []<-chan error
		for _, req := range []int{1, 2, 0} {
			c := make(chan error, 2)
			errs = append(errs, c)
			go func() {
				defer func() { c <- errors.New("the caller ended") }()
				_, err := l.Do(t.Context(), req)
				c <- err
			}()
			synctest.Wait()
		}
		close(let)
		if err := <-errs[0]; err == nil || err.Error() != "the caller ended" {
			t.Errorf("the lone caller, who flushed itself, got %v", err)
		}
		if _, ok := errors.AsType[*coalesce.PanicError](<-errs[1]); !ok {
			t.Error("the queued caller got no PanicError")
		}
		if err := <-errs[2]; err != nil {
			t.Errorf("the next caller got %v", err)
		}
		l.Close()
	})
}

func TestClose_RequestsQueued_AnswersThemAndRefusesLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(nil)
		a, b := g.start(t.Context(), 1), g.start(t.Context(), 2)
		closed := make(chan struct{})
		for range 2 { // twice is harmless
			go func() {
				g.batcher.Close()
				closed <- struct{}{}
			}()
		}
		synctest.Wait()
		late := g.start(t.Context(), 3)
		(<-late).wantErr(t, coalesce.ErrClosed)
		select {
		case <-closed:
			t.Fatal("closed before the queue was empty")
		default:
		}
		wantBatch(t, <-g.begun, 1)
		wantBatch(t, g.pass(), 2)
		wantBatch(t, g.pass())
		<-closed
		<-closed
		(<-a).want(t, "1")
		(<-b).want(t, "2")
		g.batcher.Close()
	})
}

func TestClose_IdleBatcher_ReturnsAtOnce(t *testing.T) {
	l := coalesce.New(func(context.Context, []*item) {}, nil)
	_, _ = l.Do(t.Context(), 1)
	l.Close()
	if _, err := l.Do(t.Context(), 1); !errors.Is(err, coalesce.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}
