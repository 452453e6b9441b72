package consume

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume/driver"
	semeldriver "github.com/semel-go/semel/driver"
	"github.com/semel-go/semel/store"
)

// Consumer runs a handler for each message, through a semel.Runner that recognizes
// duplicates. After a failed attempt the handler runs again: see Options.MaxAttempts. A
// Consumer is safe for concurrent use, also by several Serve loops. There is nothing to
// close.
type Consumer struct {
	runner semel.Runner
	call   CallFunc
	handle Handler
	opt    Options

	storeKey func(semel.Call) store.Key // nil: the runner has none
}

// New makes a Consumer. The runner is a *semel.Guard or a store's Atomic. For most
// consumers, [Keyed] makes the CallFunc. Nil options mean the defaults. New does no I/O,
// and its error names every invalid argument.
func New(run semel.Runner, call CallFunc, h Handler, o *Options) (*Consumer, error) {
	var errs []error
	missing := func(name string, absent bool) {
		if absent {
			errs = append(errs, fmt.Errorf("%s: is nil", name))
		}
	}
	missing("run", run == nil)
	missing("call", call == nil)
	missing("handler", h == nil)
	if call != nil {
		if err := call.Check(); err != nil {
			errs = append(errs, fmt.Errorf("call: %w", err))
		}
	}
	opt := o.withDefaults()
	r, ok := runnerAs[interface{ Retention() time.Duration }](run)
	switch {
	case o != nil && o.Retention != 0:
		if ok && r.Retention() < opt.Retention {
			errs = append(errs, fmt.Errorf("options: Retention: is %v, but the runner keeps outcomes for %v; leave it zero, or raise the runner's Retention", opt.Retention, r.Retention()))
		}
	default:
		if ok {
			opt.Retention = r.Retention()
		} else {
			errs = append(errs, errors.New("options: Retention is zero, and the runner has no method Retention; set it to the Guard's Retention, such as DefaultRetention"))
		}
	}
	if _, isGuard := runnerAs[*semel.Guard](run); opt.MaxDeliveries > 0 && !isGuard && opt.Starts == nil {
		errs = append(errs, errors.New("options: Starts: is nil, but MaxDeliveries is set and the runner forgets the attempts of a process that died; set it to a semel.Guard"))
	}
	if err := errors.Join(append(errs, opt.validate())...); err != nil {
		return nil, fmt.Errorf("consume: %w", err)
	}
	c := &Consumer{runner: run, call: call, handle: h, opt: opt}
	if r, ok := runnerAs[interface {
		StoreKey(call semel.Call) store.Key
	}](run); ok {
		c.storeKey = r.StoreKey
	}
	return c, nil
}

// Handle tries one message and returns what should happen to the message. Handle does not
// ack or wait. Use it in tests, and in a loop of your own instead of Serve. Handle sets
// m.Key.
func (c *Consumer) Handle(ctx context.Context, m *Message) driver.Disposition {
	t := &task{m: m}
	c.identify(t)
	return c.try(ctx, t)
}

// task is one message on its way through a Consumer.
type task struct {
	m    *Message
	call semel.Call
	// refused says why there is no call; nil: there is a call.
	refused *driver.Disposition

	tries       int  // since the delivery
	failures    int  // tries that count as attempts
	uncommitted bool // the last try counts because its transaction did not commit
	forgiven    int  // uncommitted tries that an outage caused, which do not count

	work
}

// identify finds the message's call. The call depends on the message alone, so
// identify runs once per delivery.
func (c *Consumer) identify(t *task) {
	returned := false
	defer func() {
		switch v := recover(); {
		case v != nil:
			t.refused = &driver.Disposition{Action: driver.DeadLetter, Reason: driver.ReasonInvalid, Err: cmp.Or(t.m.Invalid, fmt.Errorf("the CallFunc panicked: %v", v))}
		case !returned:
			t.refused = &driver.Disposition{Action: driver.DeadLetter, Reason: driver.ReasonInvalid, Err: cmp.Or(t.m.Invalid, errors.New("the CallFunc called runtime.Goexit"))}
		}
	}()
	var err error
	t.call, err = c.call(t.m)
	returned = true
	if t.m.Invalid != nil { // the call tells the group, for the letter
		err = t.m.Invalid
	}
	switch err = semeldriver.ReadableError(err); {
	case err == nil:
		t.m.Key = t.call.Key
		if c.storeKey != nil {
			t.m.Record = c.storeKey(t.call)
		}
	case errors.Is(err, ErrRejected):
		t.refused = &driver.Disposition{Action: driver.Hold, Reason: driver.ReasonRejected, Err: err}
	case errors.Is(err, ErrNoKey):
		t.refused = &driver.Disposition{Action: driver.DeadLetter, Reason: driver.ReasonNoKey, Err: err}
	default:
		t.refused = &driver.Disposition{Action: driver.DeadLetter, Reason: driver.ReasonInvalid, Err: err}
	}
}

// maxForgiven is how many uncommitted tries of a message do not count because
// the store was down afterwards. There is a limit, because the message itself
// may bring the store down.
const maxForgiven = 3

// try runs the message's call once.
func (c *Consumer) try(ctx context.Context, t *task) driver.Disposition {
	if t.refused != nil {
		return *t.refused
	}
	if d, ok := c.overdue(t.m); ok {
		return d
	}
	if d, ok := c.undeliverable(t.m); ok {
		return d
	}
	if d, ok := c.reopen(ctx, t); ok {
		return d
	}
	if c.deliveredTooOften(t.m) && c.opt.Starts != nil {
		return c.tryCounted(ctx, t)
	}
	d, _ := c.tryOnce(ctx, t, false)
	return d
}

// tryOnce runs the call. If started is true, its handler has begun too often, and
// it failed or its process died each time. ran reports whether the handler has begun.
func (c *Consumer) tryOnce(ctx context.Context, t *task, started bool) (d driver.Disposition, ran bool) {
	r := driver.Result{Tries: t.tries}
	var handlerErr error
	res, err := c.runner.Run(ctx, t.call, func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
		if t.onStart != nil {
			t.onStart()
		}
		ran, handlerErr, r.Fence = true, errGoexit, x.Fence()
		defer func() {
			if errors.Is(handlerErr, errGoexit) { // the code after Run does not run then
				t.failures++
			}
		}()
		r.Attempt = max(x.Attempt(), t.failures+1)
		if started || c.deliveredTooOften(t.m) && x.Attempt() > c.opt.MaxDeliveries && c.opt.Starts == nil {
			started, ran, r.Attempt = true, false, 0
			handlerErr = c.tooManyDeliveries(t.m)
			return store.Outcome{}, handlerErr
		}
		handlerErr = c.attempt(context.WithValue(ctx, messageKey{}, t.m), t, x, &r)
		return store.Outcome{}, handlerErr
	})
	r.Err, r.Replayed, r.FromHandler = err, res.Replayed, ran && isHandlers(err, handlerErr)
	t.tries++
	unavailable := errors.Is(err, semel.ErrUnavailable) || errors.Is(err, semel.ErrCanceled)
	partAway := store.Affects(err) == store.ExtentPart // the handler cannot be the cause
	noEffect := semeldriver.IsNoEffect(handlerErr)
	if unavailable && !ran && t.uncommitted && t.forgiven < maxForgiven {
		t.failures, t.forgiven = t.failures-1, t.forgiven+1
	}
	t.uncommitted = ran && unavailable && !noEffect && !partAway
	if t.uncommitted || r.FromHandler && !noEffect {
		t.failures++
	}
	if r.FromHandler && noEffect { // the Runner has removed the mark
		r.Err = handlerErr
	}
	d = driver.Decide(r, driver.Policy{Backoff: c.opt.Backoff, AckFailures: c.opt.AckFailures})
	if d.Err = err; started && d.Reason == driver.ReasonExhausted {
		d.Reason = driver.ReasonDeliveries
	}
	d.Fence = driver.FailureFence(ctx, c.opt.Reopen, t.call, d)
	return d, ran
}

// overdue finds the messages that must not run, because they are older than Retention. A
// message that an operator has sent back runs: RabbitMQ keeps its time of publication.
func (c *Consumer) overdue(m *Message) (driver.Disposition, bool) {
	if why, _ := m.Header(RedriveHeader); why != "" && c.opt.Reopen != nil {
		return driver.Disposition{}, false
	}
	if age := time.Since(m.Published); !m.Published.IsZero() && age > c.opt.Retention {
		err := fmt.Errorf("published %v ago; outcomes are kept for %v", age.Round(time.Second), c.opt.Retention)
		return driver.Disposition{Action: driver.Quarantine, Reason: driver.ReasonLate, Err: err}, true
	}
	return driver.Disposition{}, false
}

// attempt runs the handler if an attempt is left, and ends the key with the
// last one. Under semel.Park it does not count, because the first attempt in
// doubt parks the call.
func (c *Consumer) attempt(ctx context.Context, t *task, x *semel.Execution, r *driver.Result) error {
	n := c.opt.MaxAttempts
	if n < 0 || x.Policy() != semel.Retry {
		return safely(ctx, c.handle, x, t.m)
	}
	if r.Attempt > n {
		r.Attempt = n
		return exhausted(n, "its process died, or it was on another consumer")
	}
	err := safely(ctx, c.handle, x, t.m)
	if _, final := asFailure(err); err == nil || final || r.Attempt < n || semeldriver.IsNoEffect(err) {
		return err
	}
	return exhausted(n, err.Error())
}

func exhausted(n int, last string) error {
	return &semel.Failure{Code: semel.CodeAttemptsExhausted, Message: fmt.Sprintf("all %d attempts failed; the last: %s", n, last)}
}

// isHandlers reports whether err, which the Runner returned, is the handler's
// own error. Both may wrap a *semel.Error, because handlers make calls, too.
func isHandlers(err, handlerErr error) bool {
	if err == nil || handlerErr == nil {
		return false
	}
	e, ok := errors.AsType[*semel.Error](err)
	if !ok {
		return true
	}
	s, _ := errors.AsType[*semel.Error](handlerErr)
	return e == s
}

func asFailure(err error) (*semel.Failure, bool) {
	f, ok := errors.AsType[*semel.Failure](err)
	return f, ok && f != nil
}
