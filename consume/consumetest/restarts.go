package consumetest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
)

// Campaign is a run of many restarts over one broker: see [Restarts].
type Campaign struct {
	// Rounds is how many consumers come and go.
	Rounds int
	// Group: two consumers share the broker, and every other one is killed instead
	// of shut down, so that each round moves messages from one member to another.
	// Otherwise one consumer follows the other, and the order of each order key is
	// checked.
	Group bool
	// Disturb, if not nil, is called in each round with the round's number while
	// handlers run: to restart a server of the broker, for example.
	Disturb func(round int)
}

// Counts is the result of a campaign. All counts but the first three are of faults.
type Counts struct {
	Messages, Effects, Letters int
	Lost                       int // messages with neither an effect nor a letter
	Unrun                      int // dead letters whose handler had begun less often than allowed
	Disordered                 int // order keys whose messages took effect in another order
	Doubled                    int // effects that a downstream that compares keys would see twice
}

// Faults is the sum of all faults.
func (c *Counts) Faults() int { return c.Lost + c.Unrun + c.Disordered + c.Doubled }

const (
	tries     = 4 // MaxAttempts and MaxDeliveries of the campaign's consumers
	perRound  = 16
	roundKeys = 4 // order keys
)

// restarts is one campaign.
type restarts struct {
	*world
	c      Campaign
	live   []*process
	mu     sync.Mutex
	begins map[string]int    // by key: how often its handler has begun
	fate   map[string]string // by key
	all    []consume.Message
}

// Restarts has consumers come and go while handlers fail, are slow, or are cut off,
// and counts what becomes of the messages. It reports each fault with t.Error.
func Restarts(t *testing.T, h Harness, c Campaign) Counts {
	t.Helper()
	if h.Patience == 0 {
		h.Patience = defaultPatience
	}
	r := &restarts{world: newWorld(t, h), c: c, begins: map[string]int{}, fate: map[string]string{}}
	s := setup{lease: lease, handler: r.handler, options: consume.Options{
		MaxAttempts: tries, MaxDeliveries: tries, Drain: 20 * time.Millisecond, InFlight: 32, Concurrency: 8,
		Backoff: func(n int) time.Duration { return time.Duration(n) * 60 * time.Millisecond }, // some are held, some go back
	}}
	t.Cleanup(r.explain)
	r.live = []*process{r.start(s)}
	if c.Group {
		r.live = append(r.live, r.start(s))
	}
	for round := range c.Rounds {
		r.publish(round)
		key := r.all[len(r.all)-perRound+round%perRound].Headers[0].Value
		r.until("a handler of the round has begun", func() bool { r.supervise(s); return r.begun(key) > 0 })
		if c.Disturb != nil {
			c.Disturb(round)
		}
		old := r.live[0]
		if !c.Group {
			old.shutdown()
			r.live = []*process{r.start(s)}
			continue
		}
		r.live = append(r.live[1:], r.start(s))
		if round%2 == 0 {
			old.kill()
		} else {
			r.leave(old)
		}
	}
	r.until("all messages acked", func() bool { r.supervise(s); return r.broker.Unsettled(r) == 0 })
	for _, p := range r.live {
		r.leave(p)
	}
	return r.count()
}

// supervise starts consumers again whose Serve could not start because of a disturbance.
func (r *restarts) supervise(s setup) {
	if r.c.Disturb == nil {
		return
	}
	for i, p := range r.live {
		r.live[i] = r.world.supervise(p, s, true)
	}
}

// leave ends a consumer in an orderly way. A disturbance may have broken its connection.
func (r *restarts) leave(p *process) {
	r.Helper()
	if r.c.Disturb == nil {
		p.shutdown()
		return
	}
	p.stop()
	r.wait("Serve returned", p.ended)
	_ = p.conn.Close()
	p.stopped = true
}

// roundFates are the fates of a round's messages, by their place in the round. All others are good.
var roundFates = map[int]string{1: "fails", 2: "slow", 6: "no effect", 7: "slower than the broker waits", 11: "hopeless", 13: "fails"}

func (r *restarts) publish(round int) {
	var ms []consume.Message
	r.mu.Lock()
	for i := range perRound {
		key, orderKey := fmt.Sprintf("r%03d-%02d", round, i), ""
		if i%3 != 0 {
			orderKey = fmt.Sprint("lane", i%roundKeys)
		}
		if r.fate[key] = roundFates[i]; i == 7 && round%8 != 0 {
			r.fate[key] = "" // the slowest ones are few
		}
		ms = append(ms, msg(key, orderKey))
	}
	r.mu.Unlock()
	r.all = append(r.all, ms...)
	r.broker.Publish(r, ms...)
}

func (r *restarts) begun(key string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.begins[key]
}

// handler obeys its context, so that a handler that is cut off has no effect.
func (r *restarts) handler(ctx context.Context, x *semel.Execution, m *consume.Message) error {
	r.mu.Lock()
	r.begins[m.Key]++
	first := r.begins[m.Key] == 1
	fate := r.fate[m.Key]
	r.mu.Unlock()
	work := time.Millisecond
	switch {
	case fate == "hopeless", fate == "fails" && first:
		return errHandler
	case fate == "no effect" && first:
		return semel.NoEffect(errHandler)
	case fate == "slow":
		work = 80 * time.Millisecond
	case fate == "slower than the broker waits" && first:
		work = lease
	}
	select {
	case <-time.After(work):
	case <-ctx.Done():
		return semel.NoEffect(context.Cause(ctx))
	}
	r.effect(x, m)
	return nil
}

// explain logs the last events of a campaign that has failed.
func (r *restarts) explain() {
	if !r.Failed() {
		return
	}
	r.world.mu.Lock()
	defer r.world.mu.Unlock()
	for _, e := range r.events[max(0, len(r.events)-40):] {
		key := ""
		if e.Message != nil {
			key = e.Message.Key
		}
		r.Logf("%v %s %v: %v %v", e.Kind, key, e.Disposition.Reason, e.Disposition.Err, e.Err)
	}
}

// count compares the effects and the letters with what was published.
func (r *restarts) count() (c Counts) {
	r.Helper()
	letters := map[string]bool{}
	for _, m := range slices.Concat(r.broker.Copies(r, driver.DeadLetter), r.broker.Copies(r, driver.Quarantine)) {
		key, _ := m.Header(consume.KeyHeader)
		reason, _ := m.Header(driver.LetterReason)
		if letters[key] {
			continue
		}
		letters[key] = true
		c.Letters++
		if n := r.begun(key); n < tries {
			c.Unrun++
			r.Errorf("%s (%s) is a letter, %q, after its handler has begun %d times", key, r.fate[key], reason, n)
		}
	}
	r.world.mu.Lock()
	defer r.world.mu.Unlock()
	c.Messages, c.Effects = len(r.all), len(r.effects)
	for i := range r.all {
		if key := r.all[i].Headers[0].Value; r.runs[key] == 0 && !letters[key] {
			c.Lost++
			r.Errorf("%s (%s) has no effect and no letter", key, r.fate[key])
		}
	}
	total := 0
	for _, n := range r.runs {
		total += n
	}
	if c.Doubled = len(r.effects) - len(r.runs); !r.c.Group {
		c.Doubled = total - len(r.runs) // no process was killed, so nothing may run again
	}
	if c.Doubled != 0 {
		r.Errorf("%d messages had %d effects in %d runs", len(r.runs), len(r.effects), total)
	}
	for orderKey, keys := range r.order {
		if orderKey != "" && !r.c.Group && !slices.IsSorted(keys) {
			c.Disordered++
			r.Errorf("%s ran in the order %v", orderKey, keys)
		}
	}
	return c
}
