package natstest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
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
	f.Where = "NATS JetStream"
	text, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("evidence: %s", text)
}

// size returns the number of messages and kills of a load. SEMEL_EVIDENCE=1 selects
// the long form, and -short the small one.
func size() (messages, kills int) {
	switch {
	case os.Getenv("SEMEL_EVIDENCE") == "1":
		return 100_000, 100
	case testing.Short():
		return 800, 3
	}
	return 4000, 10
}

// mortal is a store's connection that dies with its process.
type mortal struct {
	store.Store
	dead *atomic.Bool
}

var errDead = errors.New("the process is dead")

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
}

// counts are the messages that never ran, and the runs beyond the first.
func (l *ledger) counts(n int) (lost, again int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range n {
		switch r := l.runs[fmt.Sprint(i)]; {
		case r == 0:
			lost++
		default:
			again += r - 1
		}
	}
	return lost, again
}

// member starts a consumer that kill ends as kill -9 would.
func member(t *testing.T, b *broker, st store.Store, keys consume.CallFunc, l *ledger) (kill func()) {
	dead := &atomic.Bool{}
	g, err := semel.New(mortal{st, dead}, &semel.Options{Retention: consume.DefaultRetention, Lease: 2 * time.Second, SettleTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	c, err := consume.New(g, keys, func(_ context.Context, x *semel.Execution, m *consume.Message) error {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.runs[string(m.Body)]++
		l.derived[x.DownstreamKey("effect")] = struct{}{}
		return nil
	}, &consume.Options{Retention: consume.DefaultRetention, AllowShortRetention: true, Drain: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	conn := b.Connect(t)
	stop := serve(t, c, conn)
	return func() {
		dead.Store(true)
		conn.Kill()
		go func() { _ = stop() }()
	}
}

// load publishes messages, 30 % of them twice, and kills members meanwhile.
func load(t *testing.T, keys consume.CallFunc, messages, kills int) (l *ledger, took time.Duration) {
	b := open(t, func(c *jetstream.ConsumerConfig) { c.MaxAckPending = 10_000 })
	st := memstore.New(nil)
	l = &ledger{runs: map[string]int{}, derived: map[string]struct{}{}}
	send := func(i int) {
		m := keyed(fmt.Sprint(i))
		if _, err := b.js.PublishMsgAsync(natsMsg(b, &m), jetstream.WithStallWait(patience)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range messages {
		send(i)
		if i%10 < 3 {
			send(rand.N(i + 1))
		}
	}
	<-b.js.PublishAsyncComplete()
	began := time.Now()
	members := []func(){member(t, b, st, keys, l), member(t, b, st, keys, l)}
	for k := range kills {
		l.mu.Lock()
		target := max(len(l.runs), messages*k/kills)
		l.mu.Unlock()
		until(t, "some progress", func() bool {
			l.mu.Lock()
			defer l.mu.Unlock()
			return len(l.runs) >= min(target, messages)
		})
		members[k%2]()
		members[k%2] = member(t, b, st, keys, l)
	}
	end := time.Now().Add(5 * time.Minute)
	for b.Unsettled(t) > 0 && time.Now().Before(end) {
		<-time.After(20 * time.Millisecond)
	}
	took = time.Since(began)
	if n := b.Unsettled(t); n > 0 {
		t.Errorf("%d messages are left", n)
	}
	if n := len(b.Copies(t, driver.DeadLetter)) + len(b.Copies(t, driver.Quarantine)); n > 0 {
		t.Errorf("%d messages were dead-lettered or quarantined", n)
	}
	return l, took
}

func TestCampaign_MembersDie_EachKeyHasOneOutcome(t *testing.T) {
	messages, kills := size()
	l, took := load(t, consume.Keyed("load", consume.FromHeader(consume.KeyHeader)), messages, kills)
	lost, again := l.counts(messages)
	if lost > 0 || len(l.derived) != messages {
		t.Errorf("of %d messages %d were lost, and %d derived keys were passed on", messages, lost, len(l.derived))
	}
	report(t, figure{
		Claim: "a message published up to twice, to members that die, is handled, and passes on one derived key", Trials: messages, Failures: lost + abs(len(l.derived)-messages),
		Detail: fmt.Sprintf("%d kills, 30 %% duplicates, %d handlers ran again after a death, %.0f messages/s", kills, again, float64(messages)*1.3/took.Seconds()),
	})
}

func TestCampaign_ControlNoDeduplication_DuplicatesTakeEffect(t *testing.T) {
	messages, _ := size()
	messages /= 10
	l, _ := load(t, consume.Keyed("load", consume.Unprotected()), messages, 0)
	lost, again := l.counts(messages)
	if again == 0 || lost > 0 {
		t.Errorf("%d duplicates took effect, %d messages were lost: the load proves nothing", again, lost)
	}
	report(t, figure{Claim: "without deduplication a duplicate takes effect again", Trials: messages, Failures: again, Control: true})
}

func abs(n int) int { return max(n, -n) }
