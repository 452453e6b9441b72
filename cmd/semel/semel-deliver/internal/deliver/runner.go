package deliver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// runner is the Runner of the consumer: a Guard, before which messages wait while the
// service takes none, or while it has as many as it may have.
type runner struct {
	guard *semel.Guard
	gate  *gate
	stop  <-chan struct{} // closed when messages are to be given back
	// places has an element for each message that is sent or about to be. A message
	// whose answer is here has none: while it is recorded, the next one is sent.
	places chan struct{}
	// wait is how long a parked message stays here and asks the reconcile hook again.
	// Zero: it goes to the quarantine at once.
	wait time.Duration

	mu     sync.Mutex
	parked map[store.Key]time.Time // since when each parked message waits
}

func newRunner(g *semel.Guard, gate *gate, stop <-chan struct{}, requests int) *runner {
	return &runner{guard: g, gate: gate, stop: stop, places: make(chan struct{}, requests), parked: map[store.Key]time.Time{}}
}

// Retention is for consume.New.
func (r *runner) Retention() time.Duration { return r.guard.Retention() }

// StoreKey is for the consumer, which names the record of a message by it.
func (r *runner) StoreKey(call semel.Call) store.Key { return r.guard.StoreKey(call) }

// Ping is for the consumer, which tells an outage of the store by it.
func (r *runner) Ping(ctx context.Context) error { return r.guard.Ping(ctx) }

// sendingKey finds the *sending in the context of a handler.
type sendingKey struct{}

// enteredAt says when the message whose handler has ctx passed the gate.
func enteredAt(ctx context.Context) time.Time {
	if sent, ok := ctx.Value(sendingKey{}).(*sending); ok {
		return sent.entered
	}
	return time.Now()
}

// sending is one request of a message.
type sending struct {
	entered time.Time // when the message passed the gate
	status  int       // of the answer, if the message is done
}

// Run implements semel.Runner.
func (r *runner) Run(ctx context.Context, call semel.Call, fn semel.Handler) (semel.Result, error) {
	// A message waits before its claim, so that a crash leaves no doubt about it.
	free, ok := r.place(ctx)
	if !ok {
		return semel.Result{}, &semel.Error{Reason: semel.ErrInProgress, Operation: call.Operation, Cause: errStops}
	}
	defer free()
	entered, leave, ok := r.gate.enter(ctx, r.stop)
	if !ok {
		return semel.Result{}, &semel.Error{Reason: semel.ErrInProgress, Operation: call.Operation, Cause: errStops}
	}
	defer leave()
	res, err := r.guard.Run(ctx, call, func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
		defer free()
		sent := &sending{entered: entered}
		out, err := fn(context.WithValue(ctx, sendingKey{}, sent), x)
		if err == nil {
			out.Code = sent.status
		}
		return out, err
	})
	if err == nil && res.Replayed && res.Code >= http.StatusBadRequest { // the reconcile hook, or an operator, said so
		err = &semel.Failure{Code: failureCode(res.Code), Message: fmt.Sprintf("the message was resolved with the status %d", res.Code)}
	}
	return res, r.hold(call, err)
}

// errStops is the reason for which a message is given back.
var errStops = errors.New("it was not sent yet, and this program stops")

// place waits until the service may have one more request, and reports false if stop is
// closed or ctx ends first. The caller calls free once or more.
func (r *runner) place(ctx context.Context) (free func(), ok bool) {
	select {
	case r.places <- struct{}{}:
		return sync.OnceFunc(func() { <-r.places }), true
	case <-r.stop:
		return nil, false
	case <-ctx.Done():
		return nil, false
	}
}

// failureCode is the code of a failure with a status.
func failureCode(status int) string { return "http_" + strconv.Itoa(status) }

// hold keeps a parked message here, until the reconcile hook knows what happened or
// the time is over.
func (r *runner) hold(call semel.Call, err error) error {
	if r.wait <= 0 {
		return err
	}
	key := store.Key{Operation: call.Operation, Tenant: call.Tenant, Value: call.Key}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !errors.Is(err, semel.ErrParked) {
		delete(r.parked, key)
		return err
	}
	since, ok := r.parked[key]
	if !ok {
		since = time.Now()
		if len(r.parked) >= maxCounted { // of messages that went to another member
			maps.DeleteFunc(r.parked, func(_ store.Key, t time.Time) bool { return time.Since(t) >= r.wait })
		}
		r.parked[key] = since
	}
	if time.Since(since) >= r.wait {
		delete(r.parked, key)
		return err
	}
	return &semel.Error{Reason: semel.ErrInProgress, Operation: call.Operation, Cause: fmt.Errorf("in doubt, and --reconcile-url does not know yet: %w", textOnly{err})}
}

// textOnly is an error without its identity, so that the message counts as in progress
// and not as parked.
type textOnly struct{ err error }

// Error implements error.
func (t textOnly) Error() string { return t.err.Error() }
