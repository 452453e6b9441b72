package watermill

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill-redisstream/pkg/redisstream"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/redis/go-redis/v9"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/semelwatermill"
	"github.com/semel-go/semel/store/redisstore"
	"github.com/semel-go/semel/store/redisstore/redistest"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

const (
	orders     = 100
	deliveries = 130 // 30 orders come twice
	routers    = 3
)

// billing is a handler whose first attempts may fail. Its effect is at its end.
type billing struct {
	mu       sync.Mutex
	attempts map[string]int
	effects  map[string]int
}

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
	return []*message.Message{message.NewMessage(watermill.NewUUID(), message.Payload("bill of "+id))}, nil
}

// bills counts the bills of each order by their UUIDs.
type bills map[string]map[string]int

// serve publishes the orders to Redis, and takes them with several routers of one
// consumer group, until each delivery has published its bill. wrap makes the handler of a
// router.
func serve(t *testing.T, url string, wrap func(message.HandlerFunc) message.HandlerFunc) (*billing, bills) {
	t.Helper()
	options, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	publisher, err := redisstream.NewPublisher(redisstream.PublisherConfig{Client: client}, nil)
	if err != nil {
		t.Fatal(err)
	}
	topic := "orders-" + watermill.NewUUID()
	for i := range deliveries {
		id := fmt.Sprint(topic, i%orders)
		if err := publisher.Publish(topic, message.NewMessage(id, message.Payload(id))); err != nil {
			t.Fatal(err)
		}
	}
	subscriber := func(group string) *redisstream.Subscriber {
		s, err := redisstream.NewSubscriber(redisstream.SubscriberConfig{Client: client, ConsumerGroup: group}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	b := &billing{attempts: map[string]int{}, effects: map[string]int{}}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range routers {
		router := message.NewDefaultRouter(nil)
		router.AddHandler("billing", topic, subscriber("billing"), topic+"-bills", publisher, wrap(b.handle))
		all.Go(func() {
			if err := router.Run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	from, err := subscriber("accounting").Subscribe(ctx, topic+"-bills")
	if err != nil {
		t.Fatal(err)
	}
	found := bills{}
	for range deliveries {
		bill := <-from
		if found[string(bill.Payload)] == nil {
			found[string(bill.Payload)] = map[string]int{}
		}
		found[string(bill.Payload)][bill.UUID]++
		bill.Ack()
	}
	cancel()
	all.Wait()
	return b, found
}

func TestRedisStreams_ThirtyPercentDuplicates_OneEffectAndTheSameBill(t *testing.T) {
	url := redistest.Database(t)
	b, found := serve(t, url, func(h message.HandlerFunc) message.HandlerFunc {
		store, err := redisstore.Open(t.Context(), url, &redisstore.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		guard, err := semel.New(store, &semel.Options{Retention: consume.DefaultRetention})
		if err != nil {
			t.Fatal(err)
		}
		once, err := semelwatermill.Handler(guard, consume.Keyed("billing", consume.BrokerID()), h, nil)
		if err != nil {
			t.Fatal(err)
		}
		return once
	})
	for id, n := range b.effects {
		if n != 1 || len(found["bill of "+id]) != 1 {
			t.Errorf("%s has %d effects and %d bills", id, n, len(found["bill of "+id]))
		}
	}
	if len(b.effects) != orders || len(found) != orders {
		t.Errorf("%d effects and %d bills, want %d", len(b.effects), len(found), orders)
	}
}

// The control: without the wrapper each duplicate has an effect.
func TestControl_RedisStreamsWithoutWrapper_DuplicatesDouble(t *testing.T) {
	b, _ := serve(t, redistest.Database(t), func(h message.HandlerFunc) message.HandlerFunc { return h })
	double := 0
	for _, n := range b.effects {
		double += n - 1
	}
	if double != deliveries-orders {
		t.Errorf("%d duplicates had an effect, want %d", double, deliveries-orders)
	}
}
