//go:build unix

package chaos

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/test/internal/stores"
)

// campaign has workers run keys, each delivered several times at once, and
// again until there is an answer.
type campaign struct {
	t       testing.TB
	b       stores.Backend
	in      stores.Instance
	spec    spec
	workers int
	copies  int // deliveries of each key at the beginning
	keys    int // stop making keys after so many; 0: until finish is called
	ledger  *ledger
	desk    *desk

	mu      sync.Mutex
	rng     *rand.Rand
	due     []delivery
	made    int
	open    int // deliveries that were handed out, or wait in due
	ending  bool
	tally   map[class]int
	retries int
	started int
	lanes   map[int]*process // the workers that live
	acks    int
	// The next kill: at which point, and who is told.
	wanted point
	victim chan *process
}

type delivery struct {
	key   string
	after time.Time
}

// newCampaign fills in what all campaigns share.
func newCampaign(t testing.TB, b stores.Backend, in stores.Instance, policy semel.Policy) *campaign {
	return &campaign{
		t: t, b: b, in: in, workers: 3, copies: 2, ledger: newLedger(),
		spec: spec{Backend: b.Name, URL: in.URL, Lanes: 4, Policy: policy, Lease: 400 * time.Millisecond},
		rng:  rand.New(rand.NewPCG(1, uint64(policy))), tally: map[class]int{}, lanes: map[int]*process{}, victim: make(chan *process),
	}
}

// start opens the desk and starts the workers.
func (c *campaign) start() {
	c.t.Helper()
	c.desk = openDesk(c.t, c.ledger, c)
	c.spec.Desk = c.desk.addr()
	for range c.workers {
		c.replace(nil)
	}
}

// replace kills a worker, if there is one to kill, and starts another.
func (c *campaign) replace(old *process) {
	c.t.Helper()
	if old != nil {
		old.kill()
		c.ledger.died(old.id)
	}
	c.mu.Lock()
	if old != nil {
		delete(c.lanes, old.id)
	}
	s := c.spec
	c.started++
	s.ID, s.Seed = c.started, c.rng.Uint64()
	c.mu.Unlock()
	w := startWorker(c.t, s)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lanes[w.id] = w
}

// finish ends the workers after c.keys keys, when each delivery has its answer.
func (c *campaign) finish(limit time.Duration) {
	c.t.Helper()
	c.mu.Lock()
	c.ending = c.keys == 0
	c.mu.Unlock()
	eventually(c.t, limit, "each delivery is answered", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.over()
	})
	for _, w := range c.alive() {
		if err := w.Wait(); err != nil {
			c.t.Errorf("a worker that was not killed: %v", err)
		}
	}
	c.desk.close()
}

// over is true when nothing is left to do. The caller holds mu.
func (c *campaign) over() bool {
	return c.open == 0 && (c.ending || c.keys > 0 && c.made >= c.keys)
}

func (c *campaign) alive() []*process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Values(c.lanes))
}

// next gives the delivery that is due and has waited longest, or a new key.
func (c *campaign) next(*visitor) reply {
	for {
		if r, ok := c.pick(); ok {
			return r
		}
		select {
		case <-time.After(2 * time.Millisecond): // until a delivery is due
		case <-c.t.Context().Done():
			return reply{}
		}
	}
}

func (c *campaign) pick() (reply, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if i := slices.IndexFunc(c.due, func(d delivery) bool { return now.After(d.after) }); i >= 0 {
		d := c.due[i]
		c.due = slices.Delete(c.due, i, i+1)
		return reply{Key: d.key}, true
	}
	if !c.ending && (c.keys == 0 || c.made < c.keys) {
		c.made++
		key := fmt.Sprint("k", c.made)
		for range c.copies - 1 {
			c.due = append(c.due, delivery{key, now})
		}
		c.open += c.copies
		return reply{Key: key}, true
	}
	return reply{}, c.over()
}

// again brings a delivery back that got no answer. The caller holds mu.
func (c *campaign) again(key string) {
	c.retries++
	c.due = append(c.due, delivery{key, time.Now().Add(c.spec.Lease / 8)})
}

func (c *campaign) answered(_ *visitor, q question) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tally[q.Class]++
	if q.Class != done {
		c.again(q.Key)
		return
	}
	c.open--
	c.acks++
}

func (c *campaign) left(v *visitor) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v.key != "" {
		c.again(v.key)
	}
}

// reached kills a worker at the wanted point, by not answering it.
func (c *campaign) reached(v *visitor, p point, _ string, _ uint64) bool {
	c.mu.Lock()
	w := c.lanes[v.worker]
	chosen := c.wanted == p && w != nil
	if chosen {
		c.wanted = ""
	}
	c.mu.Unlock()
	if chosen {
		select {
		case c.victim <- w:
			<-w.dead
		case <-c.t.Context().Done():
		}
	}
	return false
}

// replays calls each key once more. The answer must be the one that earlier
// callers got.
func (c *campaign) replays() (wrong []string) {
	c.t.Helper()
	g, err := guard(opened(c.t, c.b, c.in), c.spec, c.ledger.ask)
	if err != nil {
		c.t.Fatal(err)
	}
	for n := range c.made {
		key := fmt.Sprint("k", n+1)
		res, err := g.Run(c.t.Context(), call(key, 0), func(_ context.Context, x *semel.Execution) (store.Outcome, error) {
			return store.Outcome{}, semel.Final(fmt.Errorf("it ran again, as attempt %d", x.Attempt()))
		})
		if err != nil || !res.Replayed {
			wrong = append(wrong, fmt.Sprintf("%s: after it was answered a duplicate got replayed %v, error %v", key, res.Replayed, err))
			continue
		}
		c.ledger.answered(key, string(res.Body))
	}
	return wrong
}

// verdict is the audit together with the record of each key at the end.
func (c *campaign) verdict() findings {
	c.t.Helper()
	again := c.replays()
	f := c.ledger.audit(c.spec.Policy)
	f.wrong = append(f.wrong, again...)
	return f
}

// report fails the test for each thing that is wrong, but not for ever.
func report(t testing.TB, wrong []string) {
	t.Helper()
	if len(wrong) > 20 {
		wrong = append(wrong[:20:20], fmt.Sprintf("and %d more", len(wrong)-20))
	}
	if len(wrong) > 0 {
		t.Errorf("%s", strings.Join(wrong, "\n"))
	}
}

// counts are a tally in words, in a fixed order.
func counts[K ~string](m map[K]int) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, fmt.Sprintf("%d %s", m[k], k))
	}
	return strings.Join(parts, ", ")
}
