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
	guard   *semel.Guard
	gate    *gate
	tenants *tenants        // nil: all messages belong to one tenant
	stop    <-chan struct{} // closed when messages are to be given back
	// places has an element for each message that is sent or about to be. A message
	// whose answer is here has none: while it is recorded, the next one is sent.
	places chan struct{}
	// questions has an element for each message that asks the reconcile hook. They are
	// fewer than the consumer runs at once, so that a hook without an answer leaves room for
	// other messages.
	questions chan struct{}
	// wait is how long a parked message stays here and asks the reconcile hook again.
	// Zero: it goes to the quarantine at once.
	wait time.Duration

	mu     sync.Mutex
	parked map[store.Key]time.Time // since when each parked message waits
}

func newRunner(g *semel.Guard, gate *gate, stop <-chan struct{}, requests, questions int) *runner {
	return &runner{
		guard: g, gate: gate, stop: stop, places: make(chan struct{}, requests), questions: make(chan struct{}, questions), parked: map[store.Key]time.Time{},
	}
}

// Retention is for consume.New.
func (r *runner) Retention() time.Duration { return r.guard.Retention() }

// StoreKey is for the consumer, which names the record of a message by it.
func (r *runner) StoreKey(call semel.Call) store.Key { return r.guard.StoreKey(call) }

// Ping is for the consumer, which tells an outage of the store by it.
func (r *runner) Ping(ctx context.Context) error { return r.guard.Ping(ctx) }

// Run implements semel.Runner.
func (r *runner) Run(ctx context.Context, call semel.Call, fn semel.Handler) (semel.Result, error) {
	s := &sending{runner: r, tenant: call.Tenant}
	defer s.leave()
	ctx = context.WithValue(ctx, sendingKey{}, s)
	asks, over := r.isParked(call)
	if asks && !s.ask() && !over { // after its time the message goes on without a place: somebody may have decided
		return semel.Result{}, r.hold(call, &semel.Error{Reason: semel.ErrParked, Operation: call.Operation, Cause: errManyQuestions}, true)
	}
	for {
		// A message waits before its claim, so that a crash leaves no doubt about it.
		if !asks {
			if err := s.enter(ctx); err != nil {
				return semel.Result{}, &semel.Error{Reason: semel.ErrInProgress, Operation: call.Operation, Cause: err}
			}
		}
		res, err := r.guard.Run(ctx, call, s.handler(fn))
		if errors.Is(err, errNotEntered) { // the hook says that nothing happened
			s.leave()
			r.forget(call) // so that it enters before its next claim, should it wait for its turn
			asks = false
			continue
		}
		if err == nil && res.Replayed && res.Code >= http.StatusBadRequest { // the reconcile hook, or an operator, said so
			err = &semel.Failure{Code: failureCode(res.Code), Message: fmt.Sprintf("the message was resolved with the status %d", res.Code)}
		}
		return res, r.hold(call, err, s.unasked)
	}
}

// failureCode is the code of a failure with a status.
func failureCode(status int) string { return "http_" + strconv.Itoa(status) }

// callKey names a message in the map of those that are parked.
func callKey(call semel.Call) store.Key {
	return store.Key{Operation: call.Operation, Tenant: call.Tenant, Value: call.Key}
}

// isParked reports whether a message waits here for the reconcile hook, and whether its time
// is over.
func (r *runner) isParked(call semel.Call) (parked, over bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	since, parked := r.parked[callKey(call)]
	return parked, parked && time.Since(since) >= r.wait
}

// forget ends the wait of a message for the reconcile hook.
func (r *runner) forget(call semel.Call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.parked, callKey(call))
}

// hold keeps a parked message here, until the reconcile hook knows what happened or
// the time is over. Without a time, a message stays until the hook was asked about it.
func (r *runner) hold(call semel.Call, err error, unasked bool) error {
	if r.wait <= 0 {
		if unasked && errors.Is(err, semel.ErrParked) {
			return stillInDoubt(call, err)
		}
		return err
	}
	key := callKey(call)
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
	return stillInDoubt(call, err)
}

func stillInDoubt(call semel.Call, err error) error {
	return &semel.Error{Reason: semel.ErrInProgress, Operation: call.Operation, Cause: fmt.Errorf("in doubt, and --reconcile-url does not know yet: %w", textOnly{err})}
}

// textOnly is an error without its identity, so that the message counts as in progress
// and not as parked.
type textOnly struct{ err error }

// Error implements error.
func (t textOnly) Error() string { return t.err.Error() }
