package consumetest

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/store"
)

// Load is a campaign of many messages, of which three in ten are published twice, while
// the two members of a group are killed again and again: see [ReportLoad].
type Load struct {
	Messages, Kills int
	// Publish sends the messages in this order, as fast as it can. Required.
	Publish func(ctx context.Context, b Broker, messages iter.Seq[consume.Message]) error
	// Disturb, if not nil, is called before each kill: to restart a server of the
	// broker, for example. A member whose Serve ends by itself is then started again.
	// Without Disturb it fails the test.
	Disturb func()
	// Ordered: the order of each order key is checked. It must survive the death of a
	// member.
	Ordered bool
	// Unprotected: the consumers do not deduplicate. This is the control, and fails
	// unless duplicates take effect.
	Unprotected bool
}

// LoadSize is the size of a load. It is 100,000 messages and 100 kills with
// SEMEL_EVIDENCE=1, small with -short, and otherwise what the arguments say.
func LoadSize(messages, kills int) (int, int) {
	switch {
	case long():
		return 100_000, 100
	case testing.Short():
		return max(messages/20, 100), min(kills, 2)
	}
	return messages, kills
}

// ReportLoad runs a load. It logs the counts as a figure for the evidence, and fails t if a
// message is lost, passes on two downstream keys or is a dead letter.
func ReportLoad(t testing.TB, where string, h Harness, l Load) {
	t.Helper()
	h.Patience = cmp.Or(h.Patience, defaultPatience)
	r := &load{world: newWorld(t, h), Load: l, times: make([]int, l.Messages), passed: map[string]struct{}{}, last: map[string]int{}}
	took := r.run(t)
	lost, again := r.counts()
	f := &figure{Where: where, Trials: l.Messages, Control: l.Unprotected}
	if l.Unprotected {
		f.Claim, f.Failures = "without deduplication a duplicate takes effect again", again
		if again == 0 || lost > 0 {
			t.Errorf("%d duplicates took effect, and %d messages were lost: the load proves nothing", again, lost)
		}
		f.report(t)
		return
	}
	f.Claim = "a message published up to twice, to members that die, is handled, and passes on one downstream key"
	f.Failures = lost + max(len(r.passed)-l.Messages, l.Messages-len(r.passed))
	if l.Ordered {
		f.Claim += "; the order of each order key is kept"
		f.Failures += r.overtaken
	}
	if f.Failures > 0 {
		t.Errorf("of %d messages %d were lost; %d downstream keys were passed on; a later message of the same order key overtook %d",
			l.Messages, lost, len(r.passed), r.overtaken)
	}
	f.Detail = fmt.Sprintf("%d kills, 30 %% duplicates, %d handlers ran again after a death, %.0f messages/s", l.Kills, again, float64(l.Messages)*1.3/took.Seconds())
	f.report(t)
}

// backlog is how many messages may wait at the broker. ElasticMQ takes longer for the next
// message of a FIFO queue, the longer the queue is.
const backlog = 2000

// load is a Load that runs.
type load struct {
	*world
	Load
	mu        sync.Mutex
	times     []int // that a message took effect
	done      int   // messages that took effect
	passed    map[string]struct{}
	last      map[string]int // by the order key
	overtaken int            // messages that took effect after a later one of their order key
}

func (r *load) run(t testing.TB) time.Duration {
	t.Helper()
	published := make(chan error, 1)
	began := time.Now()
	go func() { published <- r.Publish(t.Context(), r.broker, r.messages(t.Context())) }()
	publishing := func() { // it ends the test when Publish has failed
		select {
		case err := <-published:
			if err != nil {
				t.Fatalf("publish: %v", err)
			}
			published <- nil // for the wait after the kills
		default:
		}
	}
	s := setup{lease: lease, handler: r.handler, silent: true, options: consume.Options{Drain: time.Second, Concurrency: 64}}
	if r.Unprotected {
		s.call = consume.Keyed(group, consume.Unprotected())
	}
	members := [2]*process{r.start(s), r.start(s)}
	isDone := false
	defer func() {
		if !isDone {
			r.tell()
		}
	}()
	supervise := func() {
		for i := range members {
			members[i] = r.supervise(members[i], s, r.Disturb != nil)
		}
	}
	for k := range r.Kills {
		target := min(max(r.effects()+1, r.Messages*(k+1)/(r.Kills+1)), r.Messages)
		r.until("some progress", func() bool { publishing(); supervise(); return r.effects() >= target })
		if r.Disturb != nil {
			r.Disturb()
		}
		members[k%2].kill()
		members[k%2] = r.start(s)
	}
	for isPublishing := true; isPublishing; {
		select {
		case err := <-published:
			if err != nil {
				t.Fatalf("publish: %v", err)
			}
			isPublishing = false
		case <-time.After(50 * time.Millisecond):
			supervise() // Publish waits for the members
		}
	}
	r.until("all messages handled", func() bool { supervise(); return r.effects() == r.Messages })
	r.until("all messages acked", func() bool { supervise(); return r.broker.Unsettled(r) == 0 })
	isDone = true
	took := time.Since(began)
	r.copies(driver.DeadLetter, 0)
	r.copies(driver.Quarantine, 0)
	return took
}

// messages are the messages and their duplicates. A duplicate comes after its message.
func (r *load) messages(ctx context.Context) iter.Seq[consume.Message] {
	return func(yield func(consume.Message) bool) {
		for n := range r.Messages {
			for n-r.effects() > backlog && ctx.Err() == nil {
				<-time.After(5 * time.Millisecond)
			}
			if !yield(numbered(n)) || n%10 < 3 && !yield(numbered(rand.N(n+1))) {
				return
			}
		}
	}
}

func numbered(n int) consume.Message {
	number := strconv.Itoa(n)
	return consume.Message{Body: []byte(number), OrderKey: fmt.Sprint("lane", n%37), Headers: []store.Header{{Name: consume.KeyHeader, Value: number}}}
}

func (r *load) handler(_ context.Context, x *semel.Execution, m *consume.Message) error {
	n, err := strconv.Atoi(string(m.Body))
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.times[n] == 0 {
		r.done++
		if last, ok := r.last[m.OrderKey]; ok && n < last {
			r.overtaken++
		}
		r.last[m.OrderKey] = n
	}
	r.times[n]++
	r.passed[x.DownstreamKey("effect")] = struct{}{}
	return nil
}

// effects is how many messages took effect.
func (r *load) effects() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.done
}

// counts are the messages that had no effect, and the effects beyond the first.
func (r *load) counts() (lost, again int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range r.times {
		if n == 0 {
			lost++
		} else {
			again += n - 1
		}
	}
	return lost, again
}
