package semel

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

type parentKey struct{}

func running(ctx context.Context) (*Execution, context.Context) {
	x := &Execution{}
	return x, x.within(ctx)
}

func TestAHandlersContextEndsWithItsCause(t *testing.T) {
	parent := context.WithValue(t.Context(), parentKey{}, "trace")
	for _, asked := range []bool{false, true} { // whether Done was asked for before must not matter
		x, ctx := running(parent)
		var child context.Context
		if asked {
			c, cancel := context.WithCancel(ctx)
			defer cancel()
			child = c
		}
		if ctx.Err() != nil || context.Cause(ctx) != nil || ctx.Value(parentKey{}) != "trace" {
			t.Fatalf("asked %v: it begins with %v, cause %v", asked, ctx.Err(), context.Cause(ctx))
		}
		if got, ok := FromContext(ctx); !ok || got != x {
			t.Error("the context does not know its run")
		}
		x.ctx.end(ErrLeaseLost)
		x.ctx.end(nil) // the first cause counts
		if !errors.Is(ctx.Err(), context.Canceled) || !errors.Is(context.Cause(ctx), ErrLeaseLost) {
			t.Errorf("asked %v: %v, cause %v", asked, ctx.Err(), context.Cause(ctx))
		}
		<-ctx.Done()
		if asked {
			<-child.Done()
			if !errors.Is(context.Cause(child), ErrLeaseLost) {
				t.Errorf("what was derived from it ended by %v", context.Cause(child))
			}
		}
		late, cancel := context.WithCancel(ctx)
		defer cancel()
		<-late.Done()
	}
}

func TestAHandlersContextEndsWithTheCallers(t *testing.T) {
	errGone := errors.New("gone")
	for _, asked := range []bool{false, true} {
		parent, leave := context.WithCancelCause(t.Context())
		_, ctx := running(parent)
		if asked {
			ctx.Done()
		}
		leave(errGone)
		<-ctx.Done()
		if ctx.Err() == nil || !errors.Is(context.Cause(ctx), errGone) {
			t.Errorf("asked %v: %v, cause %v", asked, ctx.Err(), context.Cause(ctx))
		}
	}
}

func TestNothingIsLeftOfAHandlersContextAfterItsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // fails if a goroutine stays
		parent, leave := context.WithCancel(t.Context())
		defer leave()
		x, ctx := running(parent)
		ended := make(chan struct{})
		context.AfterFunc(ctx, func() { close(ended) })
		x.ctx.end(nil)
		<-ended
		if !errors.Is(context.Cause(ctx), context.Canceled) {
			t.Errorf("cause %v", context.Cause(ctx))
		}
	})
}
