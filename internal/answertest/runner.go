package answertest

import (
	"context"
	"net/http"
	"sync/atomic"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

type endKey struct{}

// Endable returns a context that ends when the table says so: as if the client had left.
func Endable(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	return context.WithValue(ctx, endKey{}, cancel)
}

// end ends the context that Endable made. It panics if an adapter has lost that context.
func end(ctx context.Context) {
	ctx.Value(endKey{}).(context.CancelFunc)()
	<-ctx.Done()
}

func endRequest(r *http.Request) { end(r.Context()) }

// runner does to the handler what an Answer says.
type runner struct {
	*semel.Guard
	answer *Answer
	ended  atomic.Bool // the first request's context
}

// Run implements semel.Runner.
func (r *runner) Run(ctx context.Context, call semel.Call, fn semel.Handler) (semel.Result, error) {
	return r.Guard.Run(ctx, call, func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
		if r.answer.EndsEarly && !r.ended.Swap(true) {
			end(ctx)
		}
		if r.answer.Undone != nil {
			_, _ = fn(ctx, x) // a store's Atomic rolls its transaction back here, and begins a new one
		}
		return fn(ctx, x)
	})
}

// repeatsFirst repeats the transaction of its first call.
type repeatsFirst struct {
	*semel.Guard
	repeated atomic.Bool
}

// Run implements semel.Runner.
func (r *repeatsFirst) Run(ctx context.Context, call semel.Call, fn semel.Handler) (semel.Result, error) {
	return r.Guard.Run(ctx, call, func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
		if !r.repeated.Swap(true) {
			_, _ = fn(ctx, x)
		}
		return fn(ctx, x)
	})
}
