package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume/semelnats"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/store/sqlitestore"
	"github.com/semel-go/semel/store/sqlitestore/sqliteoutbox"
)

// shop is an outbox in SQLite, and its store's URL.
type shop struct {
	url    string
	box    *sqliteoutbox.Outbox
	atomic *sqlitestore.Atomic
	calls  int
}

func newShop(t *testing.T) *shop {
	t.Helper()
	path := filepath.Join(t.TempDir(), "shop.db")
	st, err := sqlitestore.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	s := &shop{url: "sqlite:" + path}
	if s.box, err = sqliteoutbox.New(st); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.box.Close() })
	if s.atomic, err = sqlitestore.NewAtomic(st, nil); err != nil {
		t.Fatal(err)
	}
	return s
}

// put writes messages in a transaction.
func (s *shop) put(t *testing.T, messages ...outbox.Message) {
	t.Helper()
	s.calls++
	call := semel.Call{Operation: "o", Tenant: semel.Shared, Key: fmt.Sprint(s.calls), Payload: semel.NoPayload()}
	err := semel.Once(t.Context(), s.atomic, call, func(ctx context.Context, _ *semel.Execution) error {
		tx, _ := sqlitestore.TxFrom(ctx)
		return s.box.Put(ctx, tx, messages...)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// destination is where messages go, and how a test sees them.
type destination struct {
	args  []string // --to and the options that belong to it
	topic string   // of the messages

	mu      sync.Mutex
	ids     map[string][]string // by order key: the IDs in the order in which each has arrived first
	seen    map[string]bool
	repeats int
}

// add notes a message that has arrived.
func (d *destination) add(orderKey, id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.seen[id] {
		d.repeats++
		return
	}
	if d.ids == nil {
		d.ids, d.seen = map[string][]string{}, map[string]bool{}
	}
	d.ids[orderKey], d.seen[id] = append(d.ids[orderKey], id), true
}

// firsts are the IDs of an order key in the order in which each has arrived first.
func (d *destination) firsts(orderKey string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.ids[orderKey])
}

// distinct is how many messages have arrived.
func (d *destination) distinct() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.seen)
}

// check checks that each key has all its messages, in the order of the commits.
func (d *destination) check(t *testing.T, keys, each int) {
	t.Helper()
	for k := range keys {
		key := fmt.Sprint("key", k)
		want := make([]string, each)
		for n := range want {
			want[n] = fmt.Sprintf("%s-%d", key, n)
		}
		if got := d.firsts(key); !slices.Equal(got, want) {
			t.Errorf("%s: the messages have arrived in the order %q", key, got)
		}
	}
}

func toNATS(t *testing.T) *destination {
	s := natsServer(t)
	conn, err := nats.Connect(s.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"shop.>"}}); err != nil {
		t.Fatal(err)
	}
	c, err := js.OrderedConsumer(t.Context(), "ORDERS", jetstream.OrderedConsumerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	d := &destination{topic: "orders", args: []string{"--to", s.ClientURL(), "--topic", "orders=shop.orders"}}
	consuming, err := c.Consume(func(m jetstream.Msg) {
		d.add(m.Headers().Get(semelnats.OrderKeyHeader), m.Headers().Get(outbox.KeyHeader))
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(consuming.Stop)
	return d
}

func toKafka(t *testing.T) *destination {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(3, "orders"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	d := &destination{topic: "orders", args: []string{"--to", "kafka://" + cluster.ListenAddrs()[0]}}
	d.readKafka(t, cluster.ListenAddrs()[0], "orders")
	return d
}

// readKafka notes the records of topics.
func (d *destination) readKafka(t *testing.T, addr string, topics ...string) {
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ConsumeTopics(topics...), kgo.UnknownTopicRetries(-1))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			client.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
				for _, h := range r.Headers {
					if h.Key == outbox.KeyHeader {
						d.add(string(r.Key), string(h.Value))
					}
				}
			})
		}
	}()
	t.Cleanup(func() {
		stop()
		<-done
		client.Close()
	})
}

// Each destination gets each message once, and those of an order key in the order of
// their commits, and a stop is clean.
func TestPublish_EachDestination_GetsMessagesInOrder(t *testing.T) {
	for name, open := range map[string]func(*testing.T) *destination{"NATS": toNATS, "Kafka": toKafka, "RabbitMQ": toRabbit, "SQS": toSQS, "webhook": toWebhook} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // two of the brokers take seconds to start
			d, s := open(t), newShop(t)
			const keys, each = 3, 4
			p := startDelivery(t, append([]string{"publish", "--store", s.url, "--log-level", "warn"}, d.args...)...)
			for n := range each {
				for k := range keys {
					key := fmt.Sprint("key", k)
					s.put(t, outbox.Message{Topic: d.topic, OrderKey: key, ID: fmt.Sprintf("%s-%d", key, n), Body: []byte("{}")})
				}
			}
			eventually(t, "all messages have arrived", func() bool { return d.distinct() == keys*each })
			eventually(t, "the outbox is empty", func() bool {
				stats, err := s.box.Stats(t.Context())
				return err == nil && stats == outbox.Stats{}
			})
			if code := p.stop(); code != 0 {
				t.Errorf("exit code %d", code)
			}
			d.check(t, keys, each)
			if log := p.log.String(); log != "" {
				t.Errorf("the log has %s", log)
			}
		})
	}
}
