package kafkatest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/internal/proctest"
	"github.com/semel-go/semel/store"
	"github.com/twmb/franz-go/pkg/kgo"
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
	text, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("evidence: %s", text)
}

func evidence() bool { return os.Getenv("SEMEL_EVIDENCE") == "1" }

// size returns the number of messages and kills of a soak, and how long it may take.
// SEMEL_EVIDENCE=1 selects the long form, and -short the small one.
func size() (messages, kills int, limit time.Duration) {
	switch {
	case evidence():
		return 100_000, 100, 20 * time.Minute
	case testing.Short():
		return 1_200, 3, 8 * time.Minute
	}
	return 6_000, 6, 8 * time.Minute
}

// soakKeys are the order keys of a soak.
const soakKeys = 60

// soak is a topic with messages, of which 30 % are there twice, and the
// members that share it, of which one after the other dies.
type soak struct {
	b        *broker
	task     task
	messages int
}

func newSoak(t *testing.T, seed string, messages int, dedup bool) *soak {
	t.Helper()
	dir := t.TempDir()
	s := &soak{b: open(t, seed), messages: messages}
	s.task = task{Seed: seed, Name: s.b.name, Store: filepath.Join(dir, "store.db"), Ledger: filepath.Join(dir, "ledger"), Dedup: dedup}
	if err := os.WriteFile(s.task.Ledger, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	send := func(i int) {
		m := consume.Message{
			OrderKey: fmt.Sprintf("lane%d", i%soakKeys), Body: fmt.Appendf(nil, "%d", i),
			Headers: []store.Header{{Name: consume.KeyHeader, Value: fmt.Sprintf("m%d", i)}},
		}
		s.b.cl.Produce(context.Background(), s.b.record(&m), func(_ *kgo.Record, err error) {
			if err != nil {
				select {
				case failed <- err:
				default:
				}
			}
		})
	}
	for i := range messages {
		send(i)
		if i%10 < 3 { // again, later than the original, in the same order key
			send(rand.N(i + 1))
		}
	}
	if err := s.b.cl.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-failed:
		t.Fatal(err)
	default:
	}
	return s
}

// runs are the effects in their order.
type runs struct {
	total   int
	changes int            // generations of the group
	first   []int          // the messages, each when it ran first
	times   map[int]int    // by message
	derived map[string]int // by the key that was passed on
}

func (s *soak) runs(t testing.TB) *runs {
	t.Helper()
	f, err := os.Open(s.task.Ledger)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := &runs{times: map[int]int{}, derived: map[string]int{}}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		body, key, ok := strings.Cut(lines.Text(), " ")
		if n, err := strconv.Atoi(key); body == "generation" && err == nil {
			r.changes = max(r.changes, n)
			continue
		}
		i, err := strconv.Atoi(body)
		if !ok || err != nil {
			t.Fatalf("the ledger has a line %q", lines.Text())
		}
		if r.times[i]++; r.times[i] == 1 {
			r.first = append(r.first, i)
		}
		r.derived[key]++
		r.total++
	}
	return r
}

// run has members share the work, and kills one after the other.
func (s *soak) run(t *testing.T, kills int, limit time.Duration) (took time.Duration) {
	t.Helper()
	began := time.Now()
	end := began.Add(limit)
	wait := func(what string, is func() bool) {
		for !is() {
			if time.Now().After(end) {
				t.Fatalf("after %v: not %s", limit, what)
			}
			<-time.After(50 * time.Millisecond)
		}
	}
	members := make([]*proctest.Process, 3)
	for i := range members {
		members[i] = s.task.spawn(t)
	}
	for k := range kills {
		wait("some progress", func() bool {
			if s.b.Unsettled(t) == 0 {
				return true
			}
			info, err := os.Stat(s.task.Ledger)
			return err == nil && info.Size() > 0 && len(s.runs(t).times) >= s.messages*(k+1)/(kills+2)
		})
		members[k%len(members)].Kill()
		members[k%len(members)] = s.task.spawn(t)
	}
	wait("all messages acked", func() bool { return s.b.Unsettled(t) == 0 })
	return time.Since(began)
}

// outOfOrder counts the messages that ran first after a later one of their order key.
func (r *runs) outOfOrder() (n int) {
	last := map[int]int{}
	for _, i := range r.first {
		if at, ok := last[i%soakKeys]; ok && i < at {
			n++
		}
		last[i%soakKeys] = max(last[i%soakKeys], i)
	}
	return n
}

func TestServe_MembersDie_LosesNoMessageAndKeepsOrder(t *testing.T) {
	t.Parallel()
	_, seed := fake(t)
	soakOn(t, seed, "kfake")
}

func TestServe_MembersDieOnARealKafka_LosesNoMessageAndKeepsOrder(t *testing.T) {
	t.Parallel()
	soakOn(t, real(t), "Apache Kafka")
}

func soakOn(t *testing.T, seed, where string) {
	messages, kills, limit := size()
	s := newSoak(t, seed, messages, true)
	took := s.run(t, kills, limit)
	r := s.runs(t)
	lost := messages - len(r.times)
	twice := len(r.derived) - len(r.times)
	disorder := r.outOfOrder()
	if lost > 0 || twice > 0 || disorder > 0 {
		t.Errorf("of %d messages %d were lost, %d have two outcomes, %d ran out of order", messages, lost, twice, disorder)
	}
	if r.changes < kills/2 {
		t.Errorf("the group was in generation %d after %d kills", r.changes, kills)
	}
	if n := len(s.b.records(t, s.b.opt.DeadLetters)) + len(s.b.records(t, s.b.opt.Quarantine)); n > 0 {
		t.Errorf("%d messages were dead-lettered or quarantined", n)
	}
	report(t, figure{
		Claim: "a message published up to twice, to members that are killed, is handled, in the order of its key, and passes on one derived key",
		Where: where, Trials: messages, Failures: lost + twice + disorder,
		Detail: fmt.Sprintf("%d kills -9, %d rebalances, 30 %% duplicates, %d handlers ran again after a death, %.0f messages/s",
			kills, r.changes, r.total-len(r.times), float64(messages)*1.3/took.Seconds()),
	})
}

func TestControl_NoDeduplication_DuplicatesTakeEffect(t *testing.T) {
	t.Parallel()
	_, seed := fake(t)
	messages, _, limit := size()
	s := newSoak(t, seed, messages/6, false)
	s.run(t, 0, limit)
	r := s.runs(t)
	again := r.total - len(r.times)
	if again == 0 || len(r.times) != s.messages {
		t.Errorf("%d duplicates took effect, %d messages were lost: the soak proves nothing", again, s.messages-len(r.times))
	}
	report(t, figure{Claim: "without deduplication a duplicate takes effect again", Where: "kfake", Trials: s.messages, Failures: again, Control: true})
}
