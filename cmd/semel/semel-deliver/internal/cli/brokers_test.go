package cli

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/semelamqp/amqptest"
	"github.com/semel-go/semel/consume/semelkafka"
	"github.com/semel-go/semel/consume/semelsqs"
	"github.com/semel-go/semel/consume/semelsqs/sqstest"
	"github.com/semel-go/semel/store"
)

// side is a broker, and how a test uses it.
type side struct {
	args    []string // --from and the options that belong to it
	publish func(t *testing.T, key, order, body string)
	letters func(t *testing.T) int // in the dead letters
	// quarantined are the keys of the messages in the quarantine. Nil: it cannot tell.
	quarantined func(t *testing.T) []string
}

const orderHeader = "order"

// natsServer starts a server in this process.
func natsServer(t testing.TB, change ...func(*server.Options)) *server.Server {
	t.Helper()
	o := &server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoLog: true, NoSigs: true}
	for _, f := range change {
		f(o)
	}
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the NATS server is not ready")
	}
	return s
}

// openNATS makes a stream with a durable consumer, and a stream of copies. Its server
// takes messages of up to 8 MiB.
func openNATS(t *testing.T) *side {
	t.Helper()
	s := natsServer(t, func(o *server.Options) { o.MaxPayload = 8 << 20 })
	conn, err := nats.Connect(s.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []jetstream.StreamConfig{
		{Name: "ORDERS", Subjects: []string{"orders.>"}, MaxAge: time.Hour}, {Name: "LETTERS", Subjects: []string{"dead-letters.>", "quarantine.>"}},
	} {
		if _, err := js.CreateStream(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := js.CreateOrUpdateConsumer(t.Context(), "ORDERS", jetstream.ConsumerConfig{
		Durable: "billing", AckPolicy: jetstream.AckExplicitPolicy, AckWait: 2 * time.Second, MaxDeliver: -1, MaxAckPending: 10_000,
	}); err != nil {
		t.Fatal(err)
	}
	return &side{
		args: []string{"--from", s.ClientURL() + "/ORDERS/billing", "--order", "header:" + orderHeader},
		publish: func(t *testing.T, key, order, body string) {
			m := nats.NewMsg("orders.placed")
			m.Data = []byte(body)
			m.Header.Set(consume.KeyHeader, key)
			m.Header.Set(orderHeader, order)
			if _, err := js.PublishMsg(t.Context(), m); err != nil {
				t.Fatal(err)
			}
		},
		letters: func(t *testing.T) int {
			letters, err := js.Stream(t.Context(), "LETTERS")
			if err != nil {
				t.Fatal(err)
			}
			return int(letters.CachedInfo().State.Msgs)
		},
		quarantined: quarantineReader(t, js),
	}
}

// openKafka makes topics in a broker of this process.
func openKafka(t *testing.T) *side {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(2, "orders", "dead-letters.billing", "quarantine.billing"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	addr := cluster.ListenAddrs()[0]
	client, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return &side{
		args: []string{"--from", "kafka://" + addr + "/orders", "--group", "billing"},
		publish: func(t *testing.T, key, order, body string) {
			r := semelkafka.Keyed(&kgo.Record{Topic: "orders", Key: []byte(order), Value: []byte(body)}, key)
			if err := client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
				t.Fatal(err)
			}
		},
		letters: func(t *testing.T) int {
			offsets, err := kadm.NewClient(client).ListEndOffsets(t.Context(), "dead-letters.billing")
			if err != nil {
				t.Fatal(err)
			}
			n := int64(0)
			offsets.Each(func(o kadm.ListedOffset) { n += o.Offset })
			return int(n)
		},
	}
}

var queues atomic.Int64

// openRabbit makes a queue on the node that tests share.
func openRabbit(t *testing.T) *side {
	t.Helper()
	s := amqptest.Shared(t)
	conn, err := amqp.Dial(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprint("orders-", queues.Add(1))
	if _, err := ch.QueueDeclare(name, true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	if err := ch.Confirm(false); err != nil {
		t.Fatal(err)
	}
	return &side{
		args: []string{"--from", s.URL() + "?queue=" + name + "&kind=classic", "--short-retention", "--order", "header:" + orderHeader},
		publish: func(t *testing.T, key, order, body string) {
			c, err := ch.PublishWithDeferredConfirm("", name, true, false, amqp.Publishing{
				Headers: amqp.Table{consume.KeyHeader: key, orderHeader: order}, DeliveryMode: amqp.Persistent, Body: []byte(body),
			})
			if err != nil || !c.Wait() {
				t.Fatal(err)
			}
		},
		letters: func(t *testing.T) int {
			n, err := s.Messages(name + ".dead-letters")
			if err != nil {
				t.Fatal(err)
			}
			return n
		},
	}
}

// openSQS makes FIFO queues on the emulator that tests share.
func openSQS(t *testing.T) *side {
	t.Helper()
	endpoint := sqstest.URL(t)
	client := sqstest.Client(endpoint)
	base := fmt.Sprint("orders-", queues.Add(1))
	urls := map[string]*string{}
	for _, name := range []string{base, base + "-dead-letters", base + "-quarantine"} {
		name += ".fifo"
		out, err := client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name, Attributes: map[string]string{"FifoQueue": "true", "VisibilityTimeout": "5"}})
		if err != nil {
			t.Fatal(err)
		}
		urls[name] = out.QueueUrl
	}
	sent := 0
	return &side{
		args: []string{"--from", "sqs://" + base + ".fifo?region=us-east-1&endpoint=" + endpoint},
		publish: func(t *testing.T, key, order, body string) {
			text, attributes := semelsqs.Encode([]store.Header{{Name: consume.KeyHeader, Value: key}}, []byte(body))
			sent++
			id := fmt.Sprint("m", sent)
			if _, err := client.SendMessage(t.Context(), &sqs.SendMessageInput{
				QueueUrl: urls[base+".fifo"], MessageBody: &text, MessageAttributes: attributes, MessageGroupId: &order, MessageDeduplicationId: &id,
			}); err != nil {
				t.Fatal(err)
			}
		},
		letters: func(t *testing.T) int {
			out, err := client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: urls[base+"-dead-letters.fifo"], MaxNumberOfMessages: 10})
			if err != nil {
				t.Fatal(err)
			}
			return len(out.Messages)
		},
	}
}

// The brokers that the race detector may watch; see pulsar_test.go.
// 300 messages of one order wait, because the first is "later" (423). That is far less than
// the limit of waiting messages, 16 times --in-flight. The broker sends the message of the
// other order after them, so its prefetch must have room for all.
func TestDeliver_RabbitMQ_ManyOfOneOrderWait_OtherOrderGoesOn(t *testing.T) {
	b, e := openRabbit(t), newEndpoint(t)
	for n := range 300 {
		b.publish(t, fmt.Sprint("stuck-", n), "stuck", `{"status":423}`)
	}
	b.publish(t, "healthy", "other", `{}`)
	d := startDelivery(t, append(b.args, "--to", e.URL+"/events", "--store", "memory:", "--log-level", "warn")...)
	eventually(t, "the message of the other order", func() bool { return len(e.of("healthy")) > 0 })
	d.stop()
}

func TestDeliver_EachBroker_EachMessageOnce(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) *side{"NATS": openNATS, "Kafka": openKafka, "RabbitMQ": openRabbit, "SQS": openSQS} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // two of the brokers take seconds to start
			eachMessageOnce(t, open(t))
		})
	}
}

// eachMessageOnce checks that duplicates give one effect, a message that failed once is
// sent again, a final answer goes to the dead letters, order is kept, and a stop is clean.
func eachMessageOnce(t *testing.T, b *side) {
	t.Helper()
	e := newEndpoint(t)
	const lanes, each = 3, 4
	for n := range each {
		for lane := range lanes {
			for range 2 {
				b.publish(t, fmt.Sprintf("k%d-%d", lane, n), fmt.Sprint("lane", lane), fmt.Sprintf(`{"n":%d}`, n))
			}
		}
	}
	b.publish(t, "bad", "bad", `{"status":422}`)
	b.publish(t, "twice", "twice", `{"first":500}`)
	d := startDelivery(t, append(b.args, "--to", e.URL+"/events", "--store", "memory:", "--log-level", "warn")...)
	eventually(t, "all messages have a final answer", func() bool { return e.effects() == lanes*each+2 })
	eventually(t, "one message is in the dead letters", func() bool { return b.letters(t) == 1 })
	if code := d.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	e.check(t, lanes, each)
	if n := len(e.of("twice")); n != 2 {
		t.Errorf("the message that failed once was sent %d times", n)
	}
	if log := d.log.String(); strings.Contains(log, "level=ERROR") {
		t.Error("the log has an error")
	}
}

// While a member runs, its probes answer, and its metrics name decisions.
func TestDeliver_Admin_ReportsReadyAndCounts(t *testing.T) {
	b, e := openNATS(t), newEndpoint(t)
	d := startDelivery(t, append(b.args, "--to", e.URL, "--store", "memory:", "--admin-listen", "127.0.0.1:0")...)
	admin := "http://" + d.find(t, `msg="admin listening" addr=(\S+)`)
	b.publish(t, "k", "", "{}")
	eventually(t, "the message is counted", func() bool {
		_, text := get(t, admin+"/metrics")
		return strings.Contains(text, `semel_message_decisions_total{action="ack",reason="done"} 1`)
	})
	for _, path := range []string{"/healthz", "/readyz"} {
		if status, text := get(t, admin+path); status != 200 {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	if code := d.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
