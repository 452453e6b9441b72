package semelpulsar_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelpulsar"
	"github.com/semel-go/semel/consume/semelpulsar/pulsartest"
	"github.com/semel-go/semel/internal/proctest"
	"github.com/semel-go/semel/store/memstore"
)

// A message that is larger than the broker's limit comes in chunks; so does its copy.
func TestServe_Chunks_AreOneMessage(t *testing.T) {
	t.Parallel()
	b := open(t, pulsar.Shared)
	b.opt.OrderKey = nil
	p, err := b.client.CreateProducer(pulsar.ProducerOptions{Topic: b.topic, DisableBatching: true, EnableChunking: true})
	if err != nil {
		t.Fatal(err)
	}
	var runs atomic.Int64
	const size = 6 << 20
	c := consumer(t, memstore.New(nil), keyHeader, func(_ context.Context, _ *semel.Execution, m *consume.Message) error {
		if len(m.Body) != size {
			t.Errorf("the body has %d bytes, want %d", len(m.Body), size)
		}
		if runs.Add(1) < 3 {
			return errors.New("not now")
		}
		return semel.Final(errors.New("never"))
	}, consume.Options{Backoff: func(int) time.Duration { return 150 * time.Millisecond }})
	serve(t, c, b.member(t))
	m := keyed("large")
	m.Body = make([]byte, size)
	send(t, p, m)
	until(t, "acked", func() bool { return runs.Load() >= 3 && b.Unsettled(t) == 0 })
	// A reader of this client hangs at a message in chunks, so the test reads as an
	// operator does.
	letters, err := b.client.Subscribe(pulsar.ConsumerOptions{Topic: b.topic + copyTopics[driver.DeadLetter], SubscriptionName: "semel", Type: pulsar.Shared})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	raw, err := letters.Receive(ctx)
	if err != nil {
		t.Fatal(err)
	}
	letter := semelpulsar.Decode(raw)
	if reason, _ := letter.Header(driver.LetterReason); len(letter.Body) != size || reason != string(driver.ReasonFailed) || runs.Load() != 3 {
		t.Errorf("the letter has %d bytes, and its reason is %q, after %d runs", len(letter.Body), reason, runs.Load())
	}
}

// A consumer without a schema changes none, and the handler gets the bytes.
func TestServe_TopicWithSchema_GetsTheBytes(t *testing.T) {
	t.Parallel()
	b := open(t, pulsar.Shared)
	type order struct {
		ID int `json:"id"`
	}
	schema := pulsar.NewJSONSchema(`{"type":"record","name":"order","fields":[{"name":"id","type":"int"}]}`, nil)
	p, err := b.client.CreateProducer(pulsar.ProducerOptions{Topic: b.topic, Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	before, err := b.server.Request("GET", "/schemas/public/default/"+b.topic+"/schema", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Send(t.Context(), &pulsar.ProducerMessage{Value: order{7}, Properties: map[string]string{consume.KeyHeader: "k"}}); err != nil {
		t.Fatal(err)
	}
	var h handled
	serve(t, consumer(t, memstore.New(nil), keyHeader, func(_ context.Context, _ *semel.Execution, m *consume.Message) error {
		h.run(m)
		return semel.Final(errors.New("no"))
	}, consume.Options{}), b.member(t))
	until(t, "acked", func() bool { return b.Unsettled(t) == 0 })
	if h.total() != 1 || h.all[0] != `{"id":7}` {
		t.Errorf("the handler got %q", h.all)
	}
	after, err := b.server.Request("GET", "/schemas/public/default/"+b.topic+"/schema", "")
	if err != nil || after != before {
		t.Errorf("the schema was %s and is %s, %v", before, after, err)
	}
	if letters := b.Copies(t, driver.DeadLetter); len(letters) != 1 || string(letters[0].Body) != `{"id":7}` {
		t.Errorf("%d letters", len(letters))
	}
}

// The client drops an empty message that is not in a batch and has no property, and acks
// it. The package's documentation says so; if this test fails, the client has been mended.
func TestClient_EmptyMessageWithoutProperties_IsDropped(t *testing.T) {
	t.Parallel()
	b := open(t, pulsar.Shared)
	var h handled
	serve(t, consumer(t, memstore.New(nil), consume.BrokerID(), func(_ context.Context, _ *semel.Execution, m *consume.Message) error {
		h.run(m)
		return nil
	}, consume.Options{}), b.member(t))
	until(t, "subscribed", func() bool { return len(b.stats(t)[b.topic].Consumers) == 1 })
	b.Publish(t, consume.Message{}, keyed("full"))
	until(t, "acked", func() bool { return h.total() > 0 && b.Unsettled(t) == 0 })
	if !slices.Equal(h.all, []string{"full"}) {
		t.Errorf("the handler got %q", h.all)
	}
}

// A message of Pulsar's client for Python has its key in a property, and its order key in
// the partition key. The second run of the producer sends the same messages again, in a batch.
func TestServe_PythonProducer_KeysAreRecognized(t *testing.T) {
	t.Parallel()
	b := open(t, pulsar.KeyShared)
	b.opt.OrderKey = nil // by the message's key
	fetch := exec.CommandContext(t.Context(), "testdata/python.sh")
	python, err := fetch.Output()
	if err != nil {
		proctest.Need(t, fmt.Errorf("%w: %w", errNoPython, err), errNoPython)
	}
	var h handled
	var keys sync.Map
	serve(t, consumer(t, memstore.New(nil), keyHeader, func(_ context.Context, _ *semel.Execution, m *consume.Message) error {
		keys.Store(m.OrderKey, true)
		h.run(m)
		return nil
	}, consume.Options{}), b.member(t))
	until(t, "subscribed", func() bool { return len(b.stats(t)[b.topic].Consumers) == 1 })
	for _, batching := range []string{"one", "batch"} {
		cmd := exec.CommandContext(t.Context(), strings.TrimSpace(string(python)), "testdata/producer.py", b.server.URL(), b.topic, batching)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("producer.py: %v\n%s", err, out)
		}
	}
	until(t, "acked", func() bool { return h.total() >= 3 && b.Unsettled(t) == 0 })
	slices.Sort(h.all)
	if _, ok := keys.Load("ann"); !ok || !slices.Equal(h.all, []string{"from Python 0", "from Python 1", "from Python 2"}) {
		t.Errorf("the handler got %q; a message has the order key ann: %v", h.all, ok)
	}
}

var errNoPython = errors.New("no Python with pulsar-client")

// A message of Pulsar's own client, which is written in Java, has its key in a property.
func TestCampaign_JavaProducer_KeyIsRecognized(t *testing.T) {
	if testing.Short() {
		t.Skip("starts Java programs")
	}
	t.Parallel()
	b := open(t, pulsar.KeyShared)
	home, err := pulsartest.Home()
	if err != nil {
		t.Fatal(err) // the server runs
	}
	var h handled
	serve(t, consumer(t, memstore.New(nil), keyHeader, func(_ context.Context, _ *semel.Execution, m *consume.Message) error {
		h.run(m)
		return nil
	}, consume.Options{}), b.member(t))
	until(t, "subscribed", func() bool { return len(b.stats(t)[b.topic].Consumers) == 1 })
	for range 2 { // the second run of the producer sends it again
		cmd := exec.CommandContext(t.Context(), filepath.Join(home, "bin", "pulsar-client"), "--url", b.server.URL(),
			"produce", b.topic, "-m", "from Java", "-k", "order-7", "-p", consume.KeyHeader+"=java-1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("pulsar-client: %v\n%s", err, out)
		}
	}
	until(t, "acked", func() bool { return h.total() > 0 && b.Unsettled(t) == 0 })
	if !slices.Equal(h.all, []string{"from Java"}) {
		t.Errorf("the handler got %q", h.all)
	}
}
