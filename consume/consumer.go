package consume

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume/driver"
)

// Consumer runs a handler once for each message's call. Safe for concurrent
// use, also of several Serve loops. Nothing to close.
type Consumer struct {
	runner semel.Runner
	call   CallFunc
	handle Handler
	opt    Options
}

// New makes a Consumer. The runner is a *semel.Guard or a store's Atomic. It
// does no I/O, and reports all that is wrong.
func New(run semel.Runner, call CallFunc, h Handler, o *Options) (*Consumer, error) {
	var errs []error
	missing := func(name string, is bool) {
		if is {
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
	r, ok := run.(interface{ Retention() time.Duration })
	switch {
	case o != nil && o.Retention != 0:
		if ok && r.Retention() < opt.Retention {
			errs = append(errs, fmt.Errorf("options: Retention: is %v, but the runner keeps outcomes for %v; leave it zero, or keep them longer", opt.Retention, r.Retention()))
		}
	default:
		if ok {
			opt.Retention = r.Retention()
		} else {
			errs = append(errs, errors.New("options: Retention is zero, and the runner does not tell its own; set it to that of the Guard, such as DefaultRetention"))
		}
	}
	if err := errors.Join(append(errs, opt.validate())...); err != nil {
		return nil, fmt.Errorf("consume: %w", err)
	}
	return &Consumer{runner: run, call: call, handle: h, opt: opt}, nil
}

// Handle tries one message and says what is to become of it: for tests, and
// for loops that are not Serve's. It changes m.Key.
func (c *Consumer) Handle(ctx context.Context, m *Message) driver.Disposition {
	t := &task{m: m}
	c.identify(t)
	return c.try(ctx, t)
}

// task is one message on its way through a Consumer.
type task struct {
	m    *Message
	call semel.Call
	// refused is why there is no call; nil: there is one.
	refused *driver.Disposition

	tries    int  // since it was delivered
	failures int  // of those, the ones that count as attempts
	undone   bool // the last one counts because its transaction did not commit
	forgiven int  // of those that were undone, the ones that were an outage's

	work
}

// identify finds the message's call. It looks at the message alone, so it is
// done once.
func (c *Consumer) identify(t *task) {
	returned := false
	defer func() {
		switch v := recover(); {
		case v != nil:
			t.refused = &driver.Disposition{Action: driver.DeadLetter, Reason: driver.ReasonInvalid, Err: fmt.Errorf("the CallFunc panicked: %v", v)}
		case !returned:
			t.refused = &driver.Disposition{Action: driver.DeadLetter, Reason: driver.ReasonInvalid, Err: errors.New("the CallFunc called runtime.Goexit")}
		}
	}()
	var err error
	t.call, err = c.call(t.m)
	returned = true
	switch {
	case err == nil:
		t.m.Key = t.call.Key()
	case errors.Is(err, ErrRejected):
		t.refused = &driver.Disposition{Action: driver.Hold, Reason: driver.ReasonRejected, Err: err}
	case errors.Is(err, ErrNoKey):
		t.refused = &driver.Disposition{Action: driver.DeadLetter, Reason: driver.ReasonNoKey, Err: err}
	default:
		t.refused = &driver.Disposition{Action: driver.DeadLetter, Reason: driver.ReasonInvalid, Err: err}
	}
}

// mostForgiven is how many tries of a message whose transactions did not commit
// are put down to the store, since it was away afterwards: not all, for it may be
// the message that drives it away.
const mostForgiven = 3

// try runs the message's call once.
func (c *Consumer) try(ctx context.Context, t *task) driver.Disposition {
	if t.refused != nil {
		return *t.refused
	}
	if d, ok := c.overdue(t.m); ok {
		return d
	}
	r := driver.Result{Tries: t.tries}
	var said error // by the handler
	ran := false
	res, err := c.runner.Run(ctx, t.call, func(ctx context.Context, x *semel.Execution) (semel.Outcome, error) {
		if t.begins != nil {
			t.begins()
		}
		ran, said = true, errGoexit
		defer func() {
			if errors.Is(said, errGoexit) { // nothing after Run is reached then
				t.failures++
			}
		}()
		r.Attempt = max(x.Attempt(), t.failures+1)
		said = c.attempt(context.WithValue(ctx, messageKey{}, t.m), t, x, &r)
		return semel.Outcome{}, said
	})
	r.Err, r.Replayed, r.FromHandler = err, res.Replayed, ran && own(err, said)
	t.tries++
	away := errors.Is(err, semel.ErrUnavailable)
	noEffect := semel.SaysNoEffect(said)
	if away && !ran && t.undone && t.forgiven < mostForgiven {
		t.failures, t.forgiven = t.failures-1, t.forgiven+1
	}
	t.undone = ran && away && !noEffect // its transaction did not commit
	if t.undone || r.FromHandler && !noEffect {
		t.failures++
	}
	if r.FromHandler && noEffect { // which the Runner does not pass on: it is said of a run that has ended
		r.Err = said
	}
	d := driver.Decide(r, driver.Policy{Backoff: c.opt.Backoff, AckFailures: c.opt.AckFailures})
	d.Err = err
	return d
}

// overdue are the messages that must not be run at all.
func (c *Consumer) overdue(m *Message) (driver.Disposition, bool) {
	if n := c.opt.MaxDeliveries; n > 0 && m.Deliveries > n {
		err := fmt.Errorf("delivered %d times; at most %d are allowed", m.Deliveries, n)
		return driver.Disposition{Action: driver.DeadLetter, Reason: driver.ReasonDeliveries, Err: err}, true
	}
	if age := time.Since(m.Published); !m.Published.IsZero() && age > c.opt.Retention {
		err := fmt.Errorf("published %v ago; outcomes are kept for %v", age.Round(time.Second), c.opt.Retention)
		return driver.Disposition{Action: c.opt.lateAction(), Reason: driver.ReasonLate, Err: err}, true
	}
	return driver.Disposition{}, false
}

// attempt runs the handler, if an attempt is left, and ends the key with the
// last one. Under Park that is not needed: one doubt parks the key.
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
	if _, final := asFailure(err); err == nil || final || r.Attempt < n || semel.SaysNoEffect(err) {
		return err
	}
	return exhausted(n, err.Error())
}

func exhausted(n int, last string) error {
	return &semel.Failure{Code: semel.CodeAttemptsExhausted, Message: fmt.Sprintf("all %d attempts failed; the last: %s", n, last)}
}

// own reports whether the Runner passed the handler's error on, in place of
// one of its own: both may hold a *semel.Error, for handlers make calls too.
func own(err, said error) bool {
	if err == nil || said == nil {
		return false
	}
	e, ok := errors.AsType[*semel.Error](err)
	if !ok {
		return true
	}
	s, _ := errors.AsType[*semel.Error](said)
	return e == s
}

func asFailure(err error) (*semel.Failure, bool) {
	f, ok := errors.AsType[*semel.Failure](err)
	return f, ok && f != nil
}
