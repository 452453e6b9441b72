package consumetest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/store"
)

// addressStays checks that a message keeps its address when it comes again, because
// the address is a part of the key or of the fingerprint.
func addressStays(w *world) {
	ms := []consume.Message{msg("k", "")}
	w.broker.Publish(w, ms...)
	var mu sync.Mutex
	seen := map[string]bool{}
	fail := w.failing(2, plainError)
	w.start(setup{call: consume.Keyed(group, consume.FromHeader(consume.KeyHeader)), options: consume.Options{Backoff: goesBack},
		handler: func(ctx context.Context, x *semel.Execution, m *consume.Message) error {
			mu.Lock()
			seen[m.Origin.Published()] = true
			mu.Unlock()
			return fail(ctx, x, m)
		}})
	w.settled()
	w.once(ms)
	w.copies(driver.DeadLetter, 0)
	if mu.Lock(); len(seen) != 1 || seen[""] {
		w.Errorf("its addresses were %v, want one that is not empty", seen)
	}
	mu.Unlock()
}

// waitingIsNoTrying checks that messages which only wait, while consumers come and
// go, are not dead-lettered before their handler has begun.
func waitingIsNoTrying(w *world) {
	ms := many(12)
	w.broker.Publish(w, ms...)
	o := consume.Options{Concurrency: 1, InFlight: 12, MaxDeliveries: 3, Drain: time.Millisecond}
	for range 5 {
		begun := make(chan struct{}, 1)
		p := w.start(setup{options: o, handler: func(ctx context.Context, _ *semel.Execution, _ *consume.Message) error {
			select {
			case begun <- struct{}{}:
			default:
			}
			<-ctx.Done()
			return semel.NoEffect(ctx.Err())
		}})
		w.wait("a handler begun", begun)
		p.shutdown()
	}
	w.start(setup{options: o})
	w.settled()
	w.once(ms)
	w.copies(driver.DeadLetter, 0)
}

// stuckKeyLeavesRoom checks that messages of one order key, the first of which
// fails, do not delay the others.
func stuckKeyLeavesRoom(w *world) {
	stuck, others := make([]consume.Message, 300), make([]consume.Message, 50)
	for i := range stuck {
		stuck[i] = msg(fmt.Sprint("stuck", i), "stuck")
	}
	for i := range others {
		others[i] = msg(fmt.Sprint("other", i), fmt.Sprint("lane", i))
	}
	w.broker.Publish(w, stuck...)
	w.broker.Publish(w, others...)
	w.start(setup{options: consume.Options{Backoff: func(int) time.Duration { return time.Hour }},
		handler: func(ctx context.Context, x *semel.Execution, m *consume.Message) error {
			if m.OrderKey == "stuck" {
				return errHandler
			}
			return w.plain(ctx, x, m)
		}})
	w.until("all messages of other keys run", func() bool { return w.total() == len(others) })
}

// shardDown is a store that first fails and then hangs for the keys that begin with
// "down".
type shardDown struct {
	store.Store
	hangs    atomic.Bool
	released chan struct{}
}

func (s *shardDown) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
	if !strings.HasPrefix(p.Key.Value, "down") {
		return s.Store.Claim(ctx, p)
	}
	if s.hangs.Load() {
		<-s.released
	}
	return store.Found{}, store.WithExtent(errFault, store.ExtentPart)
}

// stuckShardLeavesHandlers checks that keys for which a part of the store gives no
// answer do not take all handlers.
func stuckShardLeavesHandlers(w *world) {
	st := &shardDown{Store: w.store, released: make(chan struct{})}
	w.store = st
	down := make([]consume.Message, 12)
	for i := range down {
		down[i] = msg(fmt.Sprint("down", i), "")
	}
	w.broker.Publish(w, down...)
	w.start(setup{options: consume.Options{Concurrency: 4}})
	w.Cleanup(func() { close(st.released) }) // before the consumer's end, which waits for its handlers
	w.until("the store gives no answer for the keys", func() bool { return w.saw(consume.EventDecided, driver.ReasonUnavailable) >= len(down) })
	st.hangs.Store(true)
	const healthy = 30
	for i := range healthy { // long enough that each of the others is tried again
		w.broker.Publish(w, msg(fmt.Sprint("healthy", i), ""))
		<-time.After(50 * time.Millisecond)
	}
	w.until("all messages of other keys run", func() bool { return w.total() == healthy })
}
