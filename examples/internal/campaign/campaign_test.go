package campaign

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/internal/proctest"
	"github.com/semel-go/semel/store"
)

// patience is how long a test waits for an event, on a busy machine.
const patience = 5 * time.Minute

// broker is the queue or topic of a campaign.
type broker interface {
	// spec is what a member of the consumers' group needs to know.
	spec() memberSpec
	// subscribed reports whether the broker keeps messages for the group.
	subscribed(t *testing.T) bool
	// publish sends messages in this order.
	publish(ctx context.Context, messages iter.Seq[consume.Message]) error
	// unsettled counts the messages that are not acked, and copies those in the dead
	// letters and the quarantine.
	unsettled(t *testing.T) int
	copies(t *testing.T) int
}

// load is many messages, of which three in ten are published twice, while the two members
// of a group are killed again and again.
type load struct {
	messages, kills int
	backlog         int  // how many messages may wait at the broker
	ordered         bool // the order of each order key must survive the death of a member
	unprotected     bool // without deduplication: the control
}

// figure is what this repository's evidence collects from a test's log.
type figure struct {
	Claim    string `json:"claim"`
	Where    string `json:"where"`
	Trials   int    `json:"trials"`
	Failures int    `json:"failures"`
	Control  bool   `json:"control"`
	Detail   string `json:"detail"`
}

func (f *figure) report(t *testing.T) {
	t.Helper()
	text, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("evidence: %s", text)
}

// report runs a load, logs its counts, and fails t if a message has no effect or more than
// one. For the control it fails t if no message has more than one.
func (l load) report(t *testing.T, where string, b broker) {
	t.Helper()
	led := openLedger(t, l.messages)
	took := l.run(t, b, led)
	lost, double := led.counts()
	f := &figure{Where: where, Trials: l.messages, Control: l.unprotected}
	if l.unprotected {
		f.Claim, f.Failures = "without deduplication a duplicate is in the database twice", double
		if double == 0 || lost > 0 {
			t.Errorf("%d rows are double, and %d messages are lost: the load proves nothing", double, lost)
		}
		f.report(t)
		return
	}
	f.Claim = "a message published up to twice, to processes that are killed, is in the database exactly once"
	f.Failures = lost + double
	if l.ordered {
		f.Claim += "; the order of each order key is kept"
		f.Failures += led.overtaken
	}
	if f.Failures > 0 {
		t.Errorf("of %d messages %d are lost, %d rows are double, and a later message of the same order key overtook %d", l.messages, lost, double, led.overtaken)
	}
	f.Detail = fmt.Sprintf("%d kills -9, 30 %% duplicates, %.0f messages/s", l.kills, float64(l.messages)*1.3/took.Seconds())
	if !l.ordered {
		f.Detail += fmt.Sprintf("; no order is promised, and %d messages were overtaken", led.overtaken)
	}
	f.report(t)
}

func (l load) run(t *testing.T, b broker, led *ledger) time.Duration {
	t.Helper()
	s := b.spec()
	s.File, s.Unprotected = led.file, l.unprotected
	members := [2]*proctest.Process{s.start(t), s.start(t)}
	until(t, "subscribed", func() bool { return b.subscribed(t) })
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("of %d messages %d took effect", l.messages, led.done)
		}
	})
	began := time.Now()
	var done atomic.Int64
	published := make(chan error, 1)
	go func() { published <- b.publish(t.Context(), l.sequence(t.Context(), &done)) }()
	publishing := true
	advance := func(target int) {
		t.Helper()
		until(t, fmt.Sprintf("%d messages in the database", target), func() bool {
			led.read(t)
			done.Store(int64(led.done))
			for _, p := range members {
				if !p.Alive() {
					t.Fatal("a member has ended by itself; its error is on standard error")
				}
			}
			select {
			case err := <-published:
				if publishing = false; err != nil {
					t.Fatalf("publish: %v", err)
				}
			default:
			}
			return led.done >= target
		})
	}
	for k := range l.kills {
		advance(min(max(led.done+1, l.messages*(k+1)/(l.kills+1)), l.messages))
		victim := 0
		if members[1].Pid() == led.writer { // the other may be a stand-by
			victim = 1
		}
		members[victim].Kill()
		members[victim] = s.start(t)
	}
	advance(l.messages)
	if publishing {
		if err := <-published; err != nil {
			t.Fatalf("publish: %v", err)
		}
	}
	until(t, "all acked", func() bool { return b.unsettled(t) == 0 })
	took := time.Since(began)
	led.read(t)
	if n := b.copies(t); n > 0 {
		t.Errorf("%d messages were dead-lettered or quarantined", n)
	}
	return took
}

// sequence is the messages and their duplicates. A duplicate comes after its message.
func (l load) sequence(ctx context.Context, done *atomic.Int64) iter.Seq[consume.Message] {
	return func(yield func(consume.Message) bool) {
		for n := range l.messages {
			for n-int(done.Load()) > l.backlog && ctx.Err() == nil {
				<-time.After(5 * time.Millisecond)
			}
			if ctx.Err() != nil || !yield(numbered(n)) || n%10 < 3 && !yield(numbered(rand.N(n+1))) {
				return
			}
		}
	}
}

func numbered(n int) consume.Message {
	number := strconv.Itoa(n)
	return consume.Message{Body: []byte(number), OrderKey: fmt.Sprint("lane", n%lanes), Headers: []store.Header{{Name: consume.KeyHeader, Value: number}}}
}

func until(t *testing.T, what string, ready func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ready(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after %v: not %s", patience, what)
		}
	}
}

// long reports whether the long form was asked for.
func long() bool { return os.Getenv("SEMEL_EVIDENCE") == "1" }
