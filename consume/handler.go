package consume

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/driver"
)

// Handler does the work of one message. Its result decides what happens next:
//
//   - nil: the work is done.
//   - a *semel.Failure, or semel.Final(err): the message failed for good.
//   - semel.NoEffect(err): nothing was done; the message is tried again later, and
//     this attempt does not count.
//   - any other error, or a panic: the message is tried again later; under semel.Park
//     the call is parked instead, and the message quarantined.
//
// The execution x has the key, the attempt and the fencing token of the run. If the lease
// of the call cannot be renewed, ctx ends shortly before another process may take the
// call over. When Serve ends, ctx ends after Options.Drain.
type Handler func(ctx context.Context, x *semel.Execution, m *Message) error

// PanicError is the error of a handler that panicked, in events and dead letters.
type PanicError struct {
	Value any
	Stack []byte
}

// Error names the value. It leaves out the stack, because the text goes to the
// dead letters.
func (e *PanicError) Error() string { return fmt.Sprintf("the handler panicked: %v", e.Value) }

// errGoexit is the error of a handler that called runtime.Goexit.
var errGoexit = errors.New("the handler called runtime.Goexit")

// safely turns a panic into an error inside the run, where it is doubt, like
// any other error.
func safely(ctx context.Context, h Handler, x *semel.Execution, m *Message) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return driver.ReadableError(h(ctx, x, m))
}
