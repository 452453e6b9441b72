package outboxtest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/semel-go/semel/outbox"
)

// history plays a random history on a store, and compares each Take with a model.
type history struct {
	*bed
	random *rand.Rand
	keys   map[string]*modelKey
	flying map[string][]outbox.Taken
	owner  int
	total  int
}

// modelKey is what the model knows of an order key.
type modelKey struct {
	live      []string // IDs that are neither delivered nor dropped, in order
	positions map[string]int64
	isAlone   bool // it has failed: the first message comes alone
	isBlocked bool // until somebody retries
	written   int
}

// histories plays a few random histories.
func (b *bed) histories() {
	owner, seeds := 0, uint64(2)
	if os.Getenv("SEMEL_EVIDENCE") != "" {
		seeds = 100
	}
	for seed := range seeds {
		h := &history{bed: b, owner: owner, random: rand.New(rand.NewPCG(seed, 7)), keys: map[string]*modelKey{}, flying: map[string][]outbox.Taken{}} //nolint:gosec // it repeats
		for _, key := range []string{"a", "b", "c", "d"} {
			h.keys[fmt.Sprint(key, seed)] = &modelKey{positions: map[string]int64{}}
		}
		h.handOver()
		for range 100 {
			h.step()
		}
		h.drain()
		owner = h.owner
		if b.t.Failed() {
			b.t.Fatalf("seed %d failed", seed)
		}
	}
}

// key is a random key.
func (h *history) key() (string, *modelKey) {
	names := make([]string, 0, len(h.keys))
	for name := range h.keys {
		names = append(names, name)
	}
	slices.Sort(names)
	name := names[h.random.IntN(len(names))]
	return name, h.keys[name]
}

func (h *history) step() {
	switch n := h.random.IntN(20); {
	case n < 6:
		h.write()
	case n < 11:
		h.takeSome()
	case n < 16:
		h.end()
	case n < 17:
		h.retryOne()
	case n < 19:
		h.dropOne()
	default:
		h.handOver()
	}
}

// write writes up to 4 messages of a key.
func (h *history) write() {
	name, k := h.key()
	var ms []outbox.Message
	for range 1 + h.random.IntN(4) {
		m := message(name, k.written)
		k.written++
		k.live = append(k.live, m.ID)
		ms = append(ms, m)
	}
	h.put(ms...)
}

// takeSome takes messages, and compares the messages of each key with the model.
func (h *history) takeSome() {
	var busy []int64
	for name := range h.flying {
		busy = append(busy, (&outbox.Message{Topic: "orders", OrderKey: name}).Order())
	}
	found := map[string][]outbox.Taken{}
	for _, t := range h.take(1+h.random.IntN(60), busy...) {
		found[t.OrderKey] = append(found[t.OrderKey], t)
	}
	for name, taken := range found {
		k := h.keys[name]
		got := ids(taken)
		for i := range taken {
			k.positions[taken[i].ID] = taken[i].Position
		}
		switch {
		case k == nil || k.isBlocked || h.flying[name] != nil || k.isAlone && len(got) > 1:
			h.t.Fatalf("taken %q of key %q, which is %+v and in flight: %v", got, name, k, h.flying[name] != nil)
		case len(got) > len(k.live) || !slices.Equal(got, k.live[:len(got)]):
			h.t.Fatalf("taken %q of key %q; want the beginning of %q", got, name, k.live)
		}
		h.flying[name] = taken
	}
}

// end settles the messages of a key in flight: some are delivered, and the next one may
// fail. The others were not sent.
func (h *history) end() {
	name, k := h.key()
	taken := h.flying[name]
	if taken == nil {
		return
	}
	delete(h.flying, name)
	var results []outbox.Result
	n := h.random.IntN(len(taken) + 1)
	for i := range n {
		results = append(results, outbox.Result{Taken: &taken[i], Kind: outbox.Delivered, Keep: h.random.IntN(2) == 0})
	}
	if n > 0 {
		k.live = k.live[n:]
		k.isAlone, k.isBlocked = false, false
	}
	if n < len(taken) {
		r := outbox.Result{Taken: &taken[n], Kind: outbox.Failed, Error: "it failed"}
		switch h.random.IntN(4) {
		case 0:
			r.Kind = outbox.Refused
			k.isBlocked = true
		case 1:
			r.Delay = time.Hour
			k.isBlocked = true
		case 2: // not sent, and not failed
			r.Kind = 0
		}
		if r.Kind != 0 {
			k.isAlone = true
			results = append(results, r)
		}
	}
	h.must(h.Settle(h.ctx, results))
}

// retryOne makes a blocked key due.
func (h *history) retryOne() {
	name, k := h.key()
	if !k.isBlocked || h.flying[name] != nil {
		return
	}
	h.must(h.Retry(h.ctx, k.positions[k.live[0]]))
	k.isBlocked = false
}

// dropOne drops a message that was taken once, and is not in flight.
func (h *history) dropOne() {
	name, k := h.key()
	if len(k.live) == 0 || h.flying[name] != nil {
		return
	}
	i := h.random.IntN(len(k.live))
	position, ok := k.positions[k.live[i]]
	if !ok {
		return
	}
	h.must(h.Drop(h.ctx, position))
	k.live = slices.Delete(k.live, i, i+1)
	if i == 0 {
		k.isAlone, k.isBlocked = false, false
	}
}

// handOver gives all lanes to another publisher. What was in flight is taken again, and
// failures that the old publisher settles too late change nothing.
func (h *history) handOver() {
	old := h.owner
	h.owner++
	h.must(h.Release(h.ctx, fmt.Sprint("publisher", old), h.lanes))
	lanes, _, err := h.Lease(h.ctx, fmt.Sprint("publisher", h.owner), long)
	h.must(err)
	if h.lanes = lanes; len(lanes) != outbox.Lanes {
		h.t.Fatalf("publisher %d has %d lanes", h.owner, len(lanes))
	}
	for name, taken := range h.flying {
		h.settle(&taken[0], outbox.Refused, 0)
		delete(h.flying, name)
	}
}

// drain delivers all that is left. Each key ends in order.
func (h *history) drain() {
	h.handOver()
	for _, k := range h.keys {
		if k.isBlocked {
			h.must(h.Retry(h.ctx, k.positions[k.live[0]]))
			k.isBlocked = false
		}
	}
	for {
		h.takeSome()
		left := 0
		for name, taken := range h.flying {
			results := make([]outbox.Result, len(taken))
			for i := range taken {
				results[i] = outbox.Result{Taken: &taken[i], Kind: outbox.Delivered}
			}
			h.must(h.Settle(h.ctx, results))
			k := h.keys[name]
			k.live, k.isAlone = k.live[len(taken):], false
			delete(h.flying, name)
		}
		for _, k := range h.keys {
			left += len(k.live)
		}
		if left == 0 {
			break
		}
		if h.total++; h.total > 10_000 {
			h.t.Fatalf("%d messages are never taken", left)
		}
	}
	if s := h.stats(); s.Waiting+s.Held+s.Quarantined+s.StoppedKeys != 0 {
		h.t.Errorf("left: %+v", s)
	}
}
