package consume

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/store"
)

// deliveredTooOften reports whether the broker has delivered the message more
// often than MaxDeliveries.
func (c *Consumer) deliveredTooOften(m *Message) bool {
	return c.opt.MaxDeliveries > 0 && m.Deliveries > c.opt.MaxDeliveries
}

// undeliverable finds the messages beyond MaxDeliveries that run under Unprotected.
// Each delivery has a new key, so nothing counts the starts of the handler, and the
// broker's count alone decides.
func (c *Consumer) undeliverable(m *Message) (driver.Disposition, bool) {
	if !c.deliveredTooOften(m) || !strings.HasPrefix(m.Key, unprotected) {
		return driver.Disposition{}, false
	}
	err := fmt.Errorf("delivered %d times without a key; at most %d are allowed", m.Deliveries, c.opt.MaxDeliveries)
	return driver.Disposition{Action: driver.DeadLetter, Reason: driver.ReasonDeliveries, Err: err}, true
}

// tooManyDeliveries ends a key whose handler has begun MaxDeliveries times.
func (c *Consumer) tooManyDeliveries(m *Message) error {
	return &semel.Failure{Code: semel.CodeAttemptsExhausted, Message: fmt.Sprintf(
		"delivered %d times; at most %d are allowed, and its handler has begun as often", m.Deliveries, c.opt.MaxDeliveries)}
}

// These end a call of Options.Starts, with a start that counts and with one that does not.
var (
	errStartFailed = errors.New("consume: the handler began and failed")
	errNoFailure   = errors.New("consume: the handler did not begin, or did not fail")
)

// startsPrefix begins the keys of Options.Starts.
const startsPrefix = "semel-starts:"

// tryCounted tries a message beyond MaxDeliveries within a call of Options.Starts.
// The attempts of that call are the starts of the message's handler that failed or
// whose process died.
func (c *Consumer) tryCounted(ctx context.Context, t *task) driver.Disposition {
	var d driver.Disposition
	ended := false
	call := semel.Call{
		Operation: t.call.Operation, Tenant: t.call.Tenant, Key: digest(startsPrefix, []byte(t.call.Key), []byte(t.m.Origin.ID)), Payload: semel.NoPayload(),
	}
	_, err := c.opt.Starts.Run(ctx, call, func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
		var ran bool
		d, ran = c.tryOnce(ctx, t, x.Attempt() > c.opt.MaxDeliveries)
		if ended = true; ran && d.Action == driver.Retry {
			return store.Outcome{}, errStartFailed
		}
		return store.Outcome{}, semel.NoEffect(errNoFailure)
	})
	if ended {
		return d
	}
	d = driver.Decide(driver.Result{Err: err, Tries: t.tries}, driver.Policy{Backoff: c.opt.Backoff})
	t.tries++
	return d
}
