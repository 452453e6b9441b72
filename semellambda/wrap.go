package semellambda

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/semel-go/semel"
)

// Wrap makes the handler of a function whose events each have a key, for lambda.Start.
// Duplicates get the result of the first event with the key. The handler gets the
// event as JSON, so that the pointers of o find all its fields.
//
// The handler returns the errors of semel.Do. Lambda repeats an asynchronous invocation that
// returns an error twice, and then sends it to the function's on-failure destination.
func Wrap[T, R any](run semel.Runner, o Options[T], fn func(ctx context.Context, event T) (R, error)) (func(ctx context.Context, event json.RawMessage) (R, error), error) {
	if err := o.check("Wrap", run, fn != nil, false); err != nil {
		return nil, err
	}
	return func(ctx context.Context, doc json.RawMessage) (result R, err error) {
		ctx, cancel := withinInvocation(ctx)
		defer cancel()
		var event T
		if err := json.Unmarshal(doc, &event); err != nil {
			return result, o.invalid(fmt.Errorf("event: %w", err))
		}
		call, err := o.call(event, doc, "", envelope{})
		if err != nil {
			return result, err
		}
		return semel.Do(ctx, run, call, func(ctx context.Context, _ *semel.Execution) (R, error) { return fn(ctx, event) })
	}, nil
}
