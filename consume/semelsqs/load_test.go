package semelsqs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/consumetest"
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
	f.Where = "SQS (ElasticMQ)"
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
		return 300, 2
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
	wrong   int                 // messages that an earlier one of their order key followed
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

// member starts a consumer that kill ends as kill -9 would.
func member(t *testing.T, b *broker, st store.Store, keys consume.CallFunc, l *ledger) (kill func()) {
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
	conn := b.Connect(t)
	stop := serve(t, c, conn)
	return func() {
		dead.Store(true)
		conn.Kill()
		go func() { _ = stop() }()
	}
}

// serve serves until the test ends, or the returned function is called.
func serve(t testing.TB, c *consume.Consumer, s driver.Source) (stop func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Serve(ctx, s) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	t.Cleanup(func() {
		if err := stop(); err != nil && !errors.Is(err, errDead) {
			t.Logf("Serve: %v", err)
		}
	})
	return stop
}

func until(t testing.TB, what string, within time.Duration, ready func() bool) {
	t.Helper()
	for end := time.Now().Add(within); !ready(); <-time.After(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after %v: not %s", within, what)
		}
	}
}

// backlog is how many messages wait in the queue: ElasticMQ takes longer to look for the
// next message of a FIFO queue, the longer the queue is.
const backlog = 2000

// publish sends messages, 30 % of them twice, as fast as they take effect. A repeat
// comes after its message.
func publish(ctx context.Context, b *broker, l *ledger, messages int) error {
	var batch []types.SendMessageBatchRequestEntry
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		out, err := b.client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &b.queue, Entries: batch})
		if err != nil {
			return err
		}
		if len(out.Failed) > 0 {
			return fmt.Errorf("SendMessageBatch: refused %d of %d messages", len(out.Failed), len(batch))
		}
		batch = nil
		return nil
	}
	send := func(i int) error {
		m := keyed(strconv.Itoa(i))
		m.OrderKey = fmt.Sprint("lane", i%37)
		in, id := b.sending(&m), strconv.Itoa(len(batch))
		batch = append(batch, types.SendMessageBatchRequestEntry{
			Id: &id, MessageBody: in.MessageBody, MessageAttributes: in.MessageAttributes, MessageGroupId: in.MessageGroupId, MessageDeduplicationId: in.MessageDeduplicationId,
		})
		if len(batch) < 10 {
			return nil
		}
		return flush()
	}
	for i := range messages {
		for i-l.done() > backlog && ctx.Err() == nil {
			<-time.After(5 * time.Millisecond)
		}
		err := send(i)
		if i%10 < 3 && err == nil {
			err = send(rand.N(i + 1))
		}
		if err != nil {
			return err
		}
	}
	return flush()
}

func keyed(key string) consume.Message {
	return consume.Message{Body: []byte(key), Headers: []store.Header{{Name: consume.KeyHeader, Value: key}}}
}

// load publishes messages and kills members meanwhile.
func load(t *testing.T, b *broker, keys consume.CallFunc, messages, kills int) (l *ledger, took time.Duration) {
	if !b.fifo {
		b.opt.OrderKey = nil
	}
	st := memstore.New(nil)
	l = &ledger{runs: map[string]int{}, derived: map[string]struct{}{}, last: map[string]int{}}
	published := make(chan error, 1)
	go func() { published <- publish(t.Context(), b, l, messages) }()
	began := time.Now()
	members := []func(){member(t, b, st, keys, l), member(t, b, st, keys, l)}
	for k := range kills {
		target := min(max(l.done()+1, messages*(k+1)/(kills+1)), messages)
		until(t, "some progress", patience, func() bool { return l.done() >= target })
		members[k%2]()
		members[k%2] = member(t, b, st, keys, l)
	}
	if err := <-published; err != nil {
		t.Fatal(err)
	}
	until(t, "all messages deleted", 20*patience, func() bool { return b.Unsettled(t) == 0 })
	took = time.Since(began)
	if n := len(b.Copies(t, driver.DeadLetter)) + len(b.Copies(t, driver.Quarantine)); n > 0 {
		t.Errorf("%d messages were dead-lettered or quarantined", n)
	}
	return l, took
}

func TestCampaign_MembersDie_EachKeyHasOneOutcome(t *testing.T) {
	for name, fifo := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			messages, kills := size()
			l, took := load(t, open(t, fifo), consume.Keyed("load", consume.FromHeader(consume.KeyHeader)), messages, kills)
			lost, again := l.counts(messages)
			if lost > 0 || len(l.derived) != messages || l.wrong > 0 {
				t.Errorf("of %d messages %d were lost, %d derived keys were passed on, and %d overtook one of their group", messages, lost, len(l.derived), l.wrong)
			}
			claim := "a message published up to twice, to members that die, is handled, and passes on one derived key"
			if fifo {
				claim += "; the order of each message group is kept"
			}
			report(t, figure{
				Claim: claim + " (" + name + " queue)", Trials: messages, Failures: lost + max(len(l.derived)-messages, messages-len(l.derived)) + l.wrong,
				Detail: fmt.Sprintf("%d kills, 30 %% duplicates, %d handlers ran again after a death, %.0f messages/s", kills, again, float64(messages)*1.3/took.Seconds()),
			})
		})
	}
}

func TestCampaign_ControlNoDeduplication_DuplicatesTakeEffect(t *testing.T) {
	t.Parallel()
	messages, _ := size()
	messages /= 10
	l, _ := load(t, open(t, false), consume.Keyed("load", consume.Unprotected()), messages, 0)
	lost, again := l.counts(messages)
	if again == 0 || lost > 0 {
		t.Errorf("%d duplicates took effect, %d messages were lost: the load proves nothing", again, lost)
	}
	report(t, figure{Claim: "without deduplication a duplicate takes effect again", Trials: messages, Failures: again, Control: true})
}

// Consumers come and go while handlers fail and are slow.
func TestCampaign_Restarts_LoseNothing(t *testing.T) {
	t.Parallel()
	rounds := 8
	if testing.Short() {
		rounds = 2
	}
	consumetest.ReportRestarts(t, "SQS (ElasticMQ), FIFO queue", harness(true), rounds, nil)
}
