package semelwatermill

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/store/memstore"
)

// byUUID is the call of a message whose UUID is its key.
var byUUID = consume.Keyed("billing", consume.BrokerID())

func guardOf(t *testing.T, o *semel.Options) *semel.Guard {
	t.Helper()
	g, err := semel.New(memstore.New(nil), o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func wrap(t *testing.T, run semel.Runner, h message.HandlerFunc, o *consume.Options) message.HandlerFunc {
	t.Helper()
	once, err := Handler(run, byUUID, h, o)
	if err != nil {
		t.Fatal(err)
	}
	return once
}

// order makes a message as a subscriber would.
func order(t *testing.T, id string) *message.Message {
	t.Helper()
	return message.NewMessageWithContext(t.Context(), id, []byte("body"))
}

// billing is a handler whose first attempts may fail. Its effect is at its end.
type billing struct {
	mu       sync.Mutex
	attempts map[string]int
	effects  map[string]int
}

func newBilling() *billing { return &billing{attempts: map[string]int{}, effects: map[string]int{}} }

// handle fails the first attempt of each tenth order, and panics in another tenth.
func (b *billing) handle(msg *message.Message) ([]*message.Message, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	id := string(msg.Payload)
	b.attempts[id]++
	if last := id[len(id)-1]; b.attempts[id] == 1 && last == '3' {
		return nil, errors.New("no connection")
	} else if b.attempts[id] == 1 && last == '7' {
		panic("no connection")
	}
	b.effects[id]++
	bill := message.NewMessage(watermill.NewUUID(), message.Payload("bill of "+id))
	bill.Metadata.Set("order", "\xff"+id)
	return []*message.Message{bill}, nil
}

// shop is a router with a handler of orders that publishes bills.
type shop struct {
	broker *gochannel.GoChannel
	router *message.Router
	bills  chan *message.Message
}

// open starts a router. publish publishes the bills; nil: the broker.
func open(t *testing.T, h message.HandlerFunc, publish message.Publisher, with ...message.HandlerMiddleware) *shop {
	t.Helper()
	s := &shop{
		// Publish returns when all deliveries of the message are acked.
		broker: gochannel.NewGoChannel(gochannel.Config{BlockPublishUntilSubscriberAck: true}, nil),
		router: message.NewDefaultRouter(nil),
		bills:  make(chan *message.Message, 1000),
	}
	if publish == nil {
		publish = s.broker
	}
	s.subscribe(t, "bills", s.bills)
	s.router.AddMiddleware(with...)
	s.router.AddHandler("billing", "orders", s.broker, "bills", publish, h)
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { ended <- s.router.Run(ctx) }()
	<-s.router.Running()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s
}

// subscribe acks all messages of a topic, and sends copies to the channel.
func (s *shop) subscribe(t *testing.T, topic string, to chan<- *message.Message) {
	t.Helper()
	from, err := s.broker.Subscribe(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for m := range from {
			to <- m.Copy()
			m.Ack()
		}
	}()
}

// publish publishes orders at the same time, and returns when all are acked.
func (s *shop) publish(t *testing.T, ids ...string) {
	t.Helper()
	var all sync.WaitGroup
	for _, id := range ids {
		all.Go(func() {
			if err := s.broker.Publish("orders", message.NewMessage(id, message.Payload(id))); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// billed is the bills so far, by their payloads: how often each UUID was published.
func (s *shop) billed() map[string]map[string]int {
	all := map[string]map[string]int{}
	for {
		select {
		case m := <-s.bills:
			if all[string(m.Payload)] == nil {
				all[string(m.Payload)] = map[string]int{}
			}
			all[string(m.Payload)][m.UUID+m.Metadata.Get("order")]++
		default:
			return all
		}
	}
}

// load is 100 orders, of which 30 come twice.
func load() (ids []string) {
	for i := range 130 {
		ids = append(ids, fmt.Sprint("order-", i%100))
	}
	return ids
}
