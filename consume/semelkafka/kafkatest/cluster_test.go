package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/consumetest"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelkafka"
	"github.com/semel-go/semel/internal/proctest"
	"github.com/semel-go/semel/store"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// fake starts a kfake of one broker. It ends with the test. With SEMEL_TEST_KAFKA=only
// the test is skipped, because it runs in the short form of all tests.
func fake(t testing.TB, opts ...kfake.Opt) (*fakeKafka, string) {
	t.Helper()
	if os.Getenv("SEMEL_TEST_KAFKA") == "only" {
		t.Skip("SEMEL_TEST_KAFKA=only: this test runs on kfake, without the variable")
	}
	return longFake(t, opts...)
}

// longFake is fake for tests whose long form runs nowhere else.
func longFake(t testing.TB, opts ...kfake.Opt) (*fakeKafka, string) {
	t.Helper()
	c, err := newFake(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, c.ListenAddrs()[0]
}

// fakeBeside is the address of a kfake in a process of its own, which ends with the
// test, so that its memory and work do not count for this process.
func fakeBeside(t testing.TB) string {
	t.Helper()
	port, err := proctest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	(&task{Fake: port}).spawn(t)
	seed := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	until(t, "listening: "+seed, func() bool {
		conn, err := net.Dial("tcp", seed)
		if err == nil {
			err = conn.Close()
		}
		return err == nil
	})
	return seed
}

// serveFake is a kfake, until the process is killed.
func (k *task) serveFake() error {
	if _, err := newFake(kfake.Ports(k.Fake)); err != nil {
		return err
	}
	select {}
}

// client is one that ends with the test.
func client(t testing.TB, seed string, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(seed), kgo.MetadataMinAge(50 * time.Millisecond)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

var brokers atomic.Int64

const (
	partitions = 3
	session    = 3 * time.Second
)

// broker is a topic with a group, and the topics of its copies.
type broker struct {
	seed string
	name string // of the topic, the group, and the topics of the copies below it
	cl   *kgo.Client
	adm  *kadm.Client
	opt  semelkafka.Options
	turn atomic.Int64
}

// open makes a broker of its own at a cluster.
func open(t testing.TB, seed string, configs ...string) *broker {
	t.Helper()
	b := &broker{seed: seed, name: fmt.Sprintf("t%d", brokers.Add(1))}
	b.cl = client(t, seed, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0), kgo.ProducerBatchMaxBytes(16<<20))
	b.adm = kadm.NewClient(b.cl)
	config := map[string]*string{}
	for i := 0; i+1 < len(configs); i += 2 {
		config[configs[i]] = &configs[i+1]
	}
	b.create(t, b.name, config)
	b.create(t, b.name+".dead", nil)
	b.create(t, b.name+".quarantine", nil)
	b.opt = semelkafka.Options{
		DeadLetters: b.name + ".dead", Quarantine: b.name + ".quarantine",
		PollWait: 200 * time.Millisecond, CommitEvery: 10 * time.Millisecond, HandOver: time.Second,
		Client: []kgo.Opt{
			kgo.SeedBrokers(seed), kgo.SessionTimeout(session), kgo.HeartbeatInterval(100 * time.Millisecond),
			kgo.RebalanceTimeout(10 * time.Second), kgo.MetadataMinAge(50 * time.Millisecond), kgo.RetryBackoffFn(func(int) time.Duration { return 50 * time.Millisecond }),
		},
	}
	return b
}

// known waits until the broker serves a topic, which a busy Apache Kafka does some
// time after it has confirmed the creation.
func known(t testing.TB, adm *kadm.Client, topic string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		ends, err := adm.ListEndOffsets(ctx, topic)
		if err = errors.Join(err, ends.Error()); err == nil && len(ends[topic]) > 0 {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("the topic %s is not served: %v", topic, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (b *broker) create(t testing.TB, topic string, configs map[string]*string) {
	t.Helper()
	r, err := b.adm.CreateTopic(context.Background(), partitions, 1, configs, topic)
	if err = errors.Join(err, r.Err); err != nil {
		t.Fatal(err)
	}
	known(t, b.adm, topic)
}

// record is a message for the broker's topic.
func (b *broker) record(m *consume.Message) *kgo.Record {
	r := &kgo.Record{Topic: b.name, Value: m.Body}
	for _, h := range m.Headers {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: h.Name, Value: []byte(h.Value)})
	}
	if m.OrderKey == "" {
		r.Partition = int32(b.turn.Add(1) % partitions)
		return r
	}
	r.Key = []byte(m.OrderKey)
	h := fnv.New32()
	_, _ = h.Write(r.Key)
	r.Partition = int32(h.Sum32() % partitions)
	return r
}

// Publish implements consumetest.Broker.
func (b *broker) Publish(t testing.TB, ms ...consume.Message) {
	t.Helper()
	rs := make([]*kgo.Record, len(ms))
	for i := range ms {
		rs[i] = b.record(&ms[i])
	}
	if err := b.cl.ProduceSync(context.Background(), rs...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// Copies implements consumetest.Broker.
func (b *broker) Copies(t testing.TB, to driver.Action) (ms []consume.Message) {
	t.Helper()
	topic := b.opt.DeadLetters
	if to == driver.Quarantine {
		topic = b.opt.Quarantine
	}
	for _, r := range b.records(t, topic) {
		m := consume.Message{Body: r.Value, OrderKey: string(r.Key)}
		for _, h := range r.Headers {
			m.Headers = append(m.Headers, store.Header{Name: h.Key, Value: string(h.Value)})
		}
		ms = append(ms, m)
	}
	return ms
}

// records is all that a topic has.
func (b *broker) records(t testing.TB, topic string) (rs []*kgo.Record) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ends, err := b.adm.ListEndOffsets(ctx, topic)
	if err != nil {
		t.Fatal(err)
	}
	left := int64(0)
	ends.Each(func(o kadm.ListedOffset) { left += o.Offset })
	if left == 0 {
		return nil
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.seed), kgo.ConsumeTopics(topic), kgo.FetchMaxWait(100*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	for int64(len(rs)) < left {
		f := cl.PollFetches(ctx)
		if err := f.Err(); err != nil {
			t.Fatal(err)
		}
		rs = append(rs, f.Records()...)
	}
	return rs
}

// Unsettled implements consumetest.Broker.
func (b *broker) Unsettled(t testing.TB) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ends, err := b.adm.ListEndOffsets(ctx, b.name)
	if err != nil {
		t.Fatal(err)
	}
	done, err := b.adm.FetchOffsets(ctx, b.name)
	if err != nil && !errors.Is(err, kerr.GroupIDNotFound) && !errors.Is(err, kerr.CoordinatorNotAvailable) { // nobody has committed yet
		t.Fatal(err)
	}
	n := int64(0)
	ends.Each(func(o kadm.ListedOffset) {
		n += o.Offset
		if c, ok := done.Lookup(o.Topic, o.Partition); ok && c.At > 0 {
			n -= c.At
		}
	})
	return int(n)
}

// source is a member without a wrapper.
func (b *broker) source(t testing.TB, change func(o *semelkafka.Options)) *semelkafka.Source {
	t.Helper()
	o := b.opt
	if change != nil {
		change(&o)
	}
	s, err := semelkafka.New(b.name, []string{b.name}, &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// Connect implements consumetest.Broker.
func (b *broker) Connect(t testing.TB) consumetest.Conn {
	t.Helper()
	l := &line{}
	s := b.source(t, func(o *semelkafka.Options) {
		o.Client = append(o.Client[:len(o.Client):len(o.Client)], kgo.Dialer(l.dial))
	})
	return &conn{Source: s, line: l}
}

// State says which members the group has, and how far they are.
func (b *broker) State(t testing.TB) string {
	t.Helper()
	groups, err := b.adm.DescribeGroups(t.Context(), b.name)
	if err != nil {
		return err.Error()
	}
	var said strings.Builder
	for _, g := range groups {
		fmt.Fprintf(&said, "group %s is %s", g.Group, g.State)
		for _, m := range g.Members {
			c, _ := m.Assigned.AsConsumer()
			fmt.Fprintf(&said, "\n%s has %+v", m.MemberID, c)
		}
	}
	return said.String()
}
