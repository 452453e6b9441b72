package semelwatermill

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"

	"github.com/semel-go/semel"
)

func TestHandler_ThirtyPercentDuplicates_OneEffectAndTheSameBill(t *testing.T) {
	b := newBilling()
	s := open(t, wrap(t, guardOf(t, nil), b.handle, nil), nil)
	s.publish(t, load()...)
	for id, n := range b.effects {
		if n != 1 {
			t.Errorf("%s has %d effects", id, n)
		}
	}
	published, bills := 0, s.billed()
	for bill, uuids := range bills {
		if len(uuids) != 1 {
			t.Errorf("%s has %d UUIDs", bill, len(uuids))
		}
		for _, n := range uuids {
			published += n
		}
	}
	if len(b.effects) != 100 || len(bills) != 100 || published != 130 {
		t.Errorf("%d orders have an effect; %d bills were published %d times, want 100, 100 and 130", len(b.effects), len(bills), published)
	}
}

// The control: without the wrapper each duplicate has an effect.
func TestControl_WithoutWrapper_DuplicatesDouble(t *testing.T) {
	b := newBilling()
	s := open(t, b.handle, nil)
	s.publish(t, load()...)
	double := 0
	for _, n := range b.effects {
		double += n - 1
	}
	if double != 30 || len(s.billed()["bill of order-0"]) != 2 {
		t.Errorf("%d duplicates had an effect, want 30", double)
	}
}

// deaf is a publisher that fails at first.
type deaf struct {
	message.Publisher
	mu       sync.Mutex
	failures int
	tried    []*message.Message
}

func (d *deaf) Publish(topic string, ms ...*message.Message) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tried = append(d.tried, ms...)
	if d.failures > 0 {
		d.failures--
		return errors.New("no connection")
	}
	return nil
}

func (*deaf) Close() error { return nil }

func TestHandler_PublishingFails_NextDeliveryPublishesTheSame(t *testing.T) {
	b, d := newBilling(), &deaf{failures: 2}
	s := open(t, wrap(t, guardOf(t, nil), b.handle, nil), d)
	s.publish(t, "order-1")
	for _, m := range d.tried {
		if m.Context().Err() != nil {
			t.Error("the context of a published message has ended")
		}
	}
	if len(d.tried) != 3 || b.effects["order-1"] != 1 || !d.tried[0].Equals(d.tried[1]) || !d.tried[0].Equals(d.tried[2]) {
		t.Errorf("%d effects; tried to publish %v", b.effects["order-1"], d.tried)
	}
}

// The order of the package documentation: poison queue, Retry, Timeout.
func TestRouter_WithItsMiddlewares_FailedMessagesArePoisonOthersDone(t *testing.T) {
	b := newBilling()
	once := wrap(t, guardOf(t, nil), func(msg *message.Message) ([]*message.Message, error) {
		switch string(msg.Payload) {
		case "bad":
			return nil, semel.Final(errors.New("no such customer"))
		case "slow-1":
			if x, _ := semel.FromContext(msg.Context()); x.Attempt() == 1 {
				<-msg.Context().Done()
				return nil, msg.Context().Err()
			}
		}
		return b.handle(msg)
	}, nil)
	poison := &deaf{}
	filtered, err := middleware.PoisonQueueWithFilter(poison, "poison", ForPoisonQueue)
	if err != nil {
		t.Fatal(err)
	}
	retry := middleware.Retry{
		MaxRetries: 5, InitialInterval: time.Millisecond, ResetContextOnRetry: true,
		ShouldRetry: func(p middleware.RetryParams) bool { return !ForPoisonQueue(p.Err) },
	}
	s := open(t, once, nil, filtered, retry.Middleware, middleware.Timeout(300*time.Millisecond), middleware.Recoverer)
	s.publish(t, "slow-1", "order-1", "order-3", "order-7", "bad", "bad")
	for _, id := range []string{"slow-1", "order-1", "order-3", "order-7"} {
		if b.effects[id] != 1 {
			t.Errorf("%s has %d effects", id, b.effects[id])
		}
	}
	if len(poison.tried) != 2 || poison.tried[0].UUID != "bad" || !strings.Contains(poison.tried[0].Metadata.Get(middleware.ReasonForPoisonedKey), "failed): no such customer") {
		t.Errorf("the poison queue has %v", poison.tried)
	}
}
