package consumetest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
)

// Latency is how long healthy messages take from their publication to the end of
// their handlers.
type Latency struct {
	Idle  time.Duration // the median while nothing is stuck
	Stuck time.Duration // the median while one order key, or one shard of the store, is stuck
}

// Ratio is how much longer they take while something is stuck.
func (l Latency) Ratio() float64 { return float64(l.Stuck) / float64(l.Idle) }

// StuckKey measures the latency of healthy messages beside 300 messages of one order
// key, whose first one fails again and again. It fails t only if a healthy message does
// not run.
func StuckKey(t *testing.T, h Harness, probes int) Latency {
	t.Helper()
	w := newPatient(t, h)
	return w.latency(probes, func() {
		ms := make([]consume.Message, 300)
		for i := range ms {
			ms[i] = msg(fmt.Sprint("stuck", i), "stuck")
		}
		w.broker.Publish(w, ms...)
		w.until("the stuck key fails", func() bool { return w.ran("stuck") > 2 })
	})
}

// StuckShard measures the latency of messages on healthy shards beside 100 messages of a
// shard that gives no answer but errors.
func StuckShard(t *testing.T, h Harness, probes int) Latency {
	t.Helper()
	w := newPatient(t, h)
	w.store = &shardDown{Store: w.store}
	return w.latency(probes, func() {
		ms := make([]consume.Message, 100)
		for i := range ms {
			ms[i] = msg(fmt.Sprint("down", i), "")
		}
		w.broker.Publish(w, ms...)
		w.until("messages of the shard wait", func() bool { return w.saw(consume.EventDecided, driver.ReasonUnavailable) >= len(ms) })
	})
}

func newPatient(t *testing.T, h Harness) *world {
	if h.Patience == 0 {
		h.Patience = defaultPatience
	}
	return newWorld(t, h)
}

// latency measures before and after stick.
func (w *world) latency(probes int, stick func()) (l Latency) {
	w.Helper()
	ended := make(chan string, 1)
	w.start(setup{options: consume.Options{MaxAttempts: -1, Backoff: func(int) time.Duration { return 50 * time.Millisecond }},
		handler: func(_ context.Context, x *semel.Execution, m *consume.Message) error {
			if m.OrderKey == "stuck" {
				w.journal.mu.Lock()
				defer w.journal.mu.Unlock()
				w.runs["stuck"]++
				return semel.NoEffect(errHandler)
			}
			w.effect(x, m)
			ended <- m.Key
			return nil
		}})
	n := 0
	median := func() time.Duration {
		var took []time.Duration
		for len(took) < probes {
			n++
			key := fmt.Sprint("probe", n)
			began := time.Now()
			w.broker.Publish(w, msg(key, fmt.Sprint("lane", n%7)))
			select {
			case got := <-ended:
				if got != key {
					w.Fatalf("%s has run instead of %s", got, key)
				}
			case <-time.After(w.h.Patience):
				w.Fatalf("after %v the healthy message %s has not run", w.h.Patience, key)
			}
			took = append(took, time.Since(began))
		}
		slices.Sort(took)
		return took[len(took)/2]
	}
	median() // connections are made, and the group is formed
	l.Idle = median()
	stick()
	l.Stuck = median()
	return l
}
