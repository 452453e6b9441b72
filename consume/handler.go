package consume

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/semel-go/semel"
)

// Handler does the work of one message. nil: done. A *semel.Failure, or
// semel.Final(err): not to be tried again. Any other error: again later, or
// parked, by the Guard's policy. A panic counts as such an error. Its context
// ends when the lease may be lost, or when the time for draining is over.
type Handler func(ctx context.Context, x *semel.Execution, m *Message) error

// Middleware wraps a handler: logging, a time limit, decoding.
type Middleware func(next Handler) Handler

// Chain wraps a handler; the first of the middleware is the outermost.
func Chain(h Handler, with ...Middleware) Handler {
	for i := len(with) - 1; i >= 0; i-- {
		h = with[i](h)
	}
	return h
}

// PanicError is the error of a handler that panicked.
type PanicError struct {
	Value any
	Stack []byte
}

// Error names the value. The stack is not part of it, for it goes to dead
// letters.
func (e *PanicError) Error() string { return fmt.Sprintf("the handler panicked: %v", e.Value) }

// errGoexit is the error of a handler that left by runtime.Goexit.
var errGoexit = errors.New("the handler called runtime.Goexit")

// safely turns a panic into an error, inside the run: there it is doubt, as
// any plain error is.
func safely(ctx context.Context, h Handler, x *semel.Execution, m *Message) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return h(ctx, x, m)
}
