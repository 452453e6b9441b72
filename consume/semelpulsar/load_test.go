package semelpulsar_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/consumetest"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelpulsar/pulsartest"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// figure is what the evidence of this repository collects from a test's log.
type figure struct {
	Claim    string `json:"claim"`
	Where    string `json:"where"`
	Trials   int    `json:"trials"`
	Failures int    `json:"failures"`
	Control  bool   `json:"control"`
	Detail   string `json:"detail"`
}

func report(t *testing.T, f figure) {
	t.Helper()
	f.Where = "Pulsar"
	text, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("evidence: %s", text)
}

// size returns the number of messages and kills of a load. SEMEL_EVIDENCE=1 selects the
// long form.
func size() (messages, kills int) {
	if os.Getenv("SEMEL_EVIDENCE") == "1" {
		return 100_000, 100
	}
	return 10_000, 10
}

// mortal is a store's connection that dies with its process.
type mortal struct {
	store.Store
	dead *atomic.Bool
}

func (s mortal) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
	if s.dead.Load() {
		return store.Found{}, errDead
	}
	return s.Store.Claim(ctx, p)
}

func (s mortal) Settle(ctx context.Context, l store.Lease, t store.Settlement) error {
	if s.dead.Load() {
		return errDead
	}
	return s.Store.Settle(ctx, l, t)
}

// ledger is the world outside: how often each message took effect there.
type ledger struct {
	mu      sync.Mutex
	runs    map[string]int      // by the message
	derived map[string]struct{} // the keys that were passed on
	last    map[string]int      // by the order key
	wrong   int                 // messages that a later one of their order key overtook
}

func newLedger() *ledger {
	return &ledger{runs: map[string]int{}, derived: map[string]struct{}{}, last: map[string]int{}}
}

func (l *ledger) done() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.runs)
}

// counts are the messages that never ran, and the runs beyond the first.
func (l *ledger) counts(n int) (lost, again int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range n {
		if r := l.runs[strconv.Itoa(i)]; r == 0 {
			lost++
		} else {
			again += r - 1
		}
	}
	return lost, again
}

func (l *ledger) effect(x *semel.Execution, m *consume.Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := string(m.Body)
	n, err := strconv.Atoi(key)
	if err != nil {
		panic(err)
	}
	if m.OrderKey != "" && l.runs[key] == 0 {
		if n < l.last[m.OrderKey] {
			l.wrong++
		}
		l.last[m.OrderKey] = n
	}
	l.runs[key]++
	l.derived[x.DownstreamKey("effect")] = struct{}{}
}

// worker starts a consumer that kill ends as kill -9 would.
func worker(t *testing.T, b *broker, st store.Store, keys consume.CallFunc, l *ledger) (kill func()) {
	dead := &atomic.Bool{}
	g, err := semel.New(mortal{st, dead}, &semel.Options{Retention: consume.DefaultRetention, Lease: 2 * time.Second, SettleTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	c, err := consume.New(g, keys, func(_ context.Context, x *semel.Execution, m *consume.Message) error {
		l.effect(x, m)
		return nil
	}, &consume.Options{Retention: consume.DefaultRetention, AllowShortRetention: true, Drain: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	m := b.member(t)
	stop := serve(t, c, m)
	return func() {
		dead.Store(true)
		m.Kill()
		go func() { _ = stop() }()
	}
}

// publish sends messages in batches, 30 % of them twice. A repeat comes after its message.
func publish(ctx context.Context, b *broker, messages int) error {
	p, err := b.client.CreateProducer(pulsar.ProducerOptions{Topic: b.topic, BatcherBuilderType: pulsar.KeyBasedBatchBuilder, BatchingMaxMessages: 50})
	if err != nil {
		return err
	}
	defer p.Close()
	var failed atomic.Pointer[error]
	send := func(i int) {
		m := keyed(strconv.Itoa(i))
		m.OrderKey = fmt.Sprint("lane", i%37)
		p.SendAsync(ctx, producerMessage(&m), func(_ pulsar.MessageID, _ *pulsar.ProducerMessage, err error) {
			if err != nil {
				failed.Store(&err)
			}
		})
	}
	for i := range messages {
		send(i)
		if i%10 < 3 {
			send(rand.N(i + 1))
		}
	}
	if err := p.FlushWithCtx(ctx); err != nil {
		return err
	}
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

// load publishes messages and kills members meanwhile. Disturb is called at each kill.
func load(t *testing.T, b *broker, keys consume.CallFunc, messages, kills int, disturb func()) (l *ledger, took time.Duration) {
	if b.opt.Type == pulsar.Shared {
		b.opt.OrderKey = nil
	}
	st := memstore.New(nil)
	l = newLedger()
	published := make(chan error, 1)
	go func() { published <- publish(t.Context(), b, messages) }()
	began := time.Now()
	workers := []func(){worker(t, b, st, keys, l), worker(t, b, st, keys, l)}
	for k := range kills {
		target := min(max(l.done()+1, messages*(k+1)/(kills+1)), messages)
		until(t, "some progress", func() bool { return l.done() >= target })
		if disturb != nil {
			disturb()
		}
		workers[k%2]()
		workers[k%2] = worker(t, b, st, keys, l)
	}
	if err := <-published; err != nil {
		t.Fatal(err)
	}
	until(t, "all messages handled", func() bool { return l.done() >= messages })
	until(t, "all messages acked", func() bool { return b.Unsettled(t) == 0 })
	took = time.Since(began)
	if n := len(b.Copies(t, driver.DeadLetter)) + len(b.Copies(t, driver.Quarantine)); n > 0 {
		t.Errorf("%d messages were dead-lettered or quarantined", n)
	}
	return l, took
}

// campaign is a load whose messages must each have one outcome. In an exclusive
// subscription their order must be kept, too. In the others the broker itself may send
// messages out of order after a death: see docs/decisions/0110.
func campaign(t *testing.T, b *broker, name string, messages, kills int, disturb func()) {
	t.Helper()
	l, took := load(t, b, consume.Keyed("load", keyHeader), messages, kills, disturb)
	lost, again := l.counts(messages)
	failures := lost + max(len(l.derived)-messages, messages-len(l.derived))
	if b.opt.Type == pulsar.Exclusive {
		failures += l.wrong
	}
	if failures > 0 {
		t.Errorf("of %d messages %d were lost, %d derived keys were passed on, and %d were overtaken by one of their key", messages, lost, len(l.derived), l.wrong)
	}
	claim := "a message published up to twice, to members that die, is handled, and passes on one derived key"
	if b.opt.Type == pulsar.Exclusive {
		claim += "; the order of each key is kept"
	}
	report(t, figure{
		Claim: claim + " (" + name + ")", Trials: messages, Failures: failures,
		Detail: fmt.Sprintf("%d kills, 30 %% duplicates, %d handlers ran again after a death, %d messages overtaken by one of their key, %.0f messages/s", kills, again, l.wrong, float64(messages)*1.3/took.Seconds()),
	})
}

func TestCampaign_MembersDie_EachKeyHasOneOutcome(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of both cores")
	}
	messages, kills := size()
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) { campaign(t, open(t, kind), name+" subscription", messages, kills, nil) })
	}
}

// The broker is killed, too, and comes back.
func TestCampaign_BrokerKilled_EachKeyHasOneOutcome(t *testing.T) {
	if testing.Short() || os.Getenv("SEMEL_EVIDENCE") != "1" {
		t.Skip("starts brokers of its own, which takes a minute: SEMEL_EVIDENCE=1")
	}
	server := pulsartest.Private(t)
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			campaign(t, openOn(t, server, kind), name+" subscription, and the broker is killed, too", 10_000, 3, func() {
				server.Kill()
				if err := server.Start(); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

func TestCampaign_ControlNoDeduplication_DuplicatesTakeEffect(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of both cores")
	}
	messages, _ := size()
	messages /= 10
	l, _ := load(t, open(t, pulsar.Shared), consume.Keyed("load", consume.Unprotected()), messages, 0, nil)
	lost, again := l.counts(messages)
	if again == 0 || lost > 0 {
		t.Errorf("%d duplicates took effect, %d messages were lost: the load proves nothing", again, lost)
	}
	report(t, figure{Claim: "without deduplication a duplicate takes effect again", Trials: messages, Failures: again, Control: true})
}

// Consumers come and go while handlers fail and are slow.
func TestCampaign_Restarts_LoseNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of both cores")
	}
	consumetest.ReportRestarts(t, "Pulsar, key-shared subscription", harness(pulsar.KeyShared), 6, nil)
}

func TestOneStuck_OthersGoOn(t *testing.T) {
	for _, name := range []string{"key-shared", "failover"} {
		t.Run(name, func(t *testing.T) {
			consumetest.ReportStuck(t, "Pulsar, "+name+" subscription", harness(kinds[name]))
		})
	}
}
