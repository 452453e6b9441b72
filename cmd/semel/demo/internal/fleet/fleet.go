package fleet

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Fleet carries out a plan against one address.
type Fleet struct {
	plan   *Plan
	url    string
	client *http.Client
	orders []record
	next   atomic.Int64
	// warm is how many steps are done before latencies count: the first ones
	// find cold caches, and no connections.
	warm int64

	// Counters may be read while the fleet is under way.
	Counters
}

// Counters are of requests, but for Steps.
type Counters struct {
	Steps     atomic.Int64 // of the plan that are done
	Sent      atomic.Int64
	InFlight  atomic.Int64 // sent, and neither answered nor given up
	Replays   atomic.Int64 // answers that say that they are a replay
	Conflicts atomic.Int64 // 409: in progress, or not known
	Unknown   atomic.Int64 // of those, not known whether it happened
	Failed    atomic.Int64 // no answer, hung up, 5xx
	Disturbed atomic.Bool  // from now on, latencies are not measured
}

// record is what the clients of an order have seen.
type record struct {
	mu   sync.Mutex
	done chan struct{} // closed when its first step is over
	Outcome
}

// Outcome is what became of an order, as its clients see it.
type Outcome struct {
	Acks []Answer // the final answers of unchanged deliveries
	// Refused and Accepted count the changed payloads that were answered 422,
	// as they should be, and those that were taken.
	Refused, Accepted int
	// Open counts the deliveries that have no final answer.
	Open int
	// Odd is a final answer that is none of those which a client can expect.
	Odd []Answer
	// Latency is the latency of the first request if it was answered at once,
	// needed the usual work, and no kill came before its end. Otherwise it is 0.
	// The first requests, which find no connections, do not count.
	Latency time.Duration
}

// New makes a fleet for the payments at url.
func New(plan *Plan, url string) *Fleet {
	f := &Fleet{plan: plan, url: url, orders: make([]record, len(plan.Orders))}
	for i := range f.orders {
		f.orders[i].done = make(chan struct{})
	}
	f.client = &http.Client{Transport: &http.Transport{
		DialContext:         (&net.Dialer{Timeout: 2 * time.Second}).DialContext,
		MaxIdleConnsPerHost: 256,
		DisableCompression:  true,
	}}
	return f
}

// Run carries out the plan with so many clients, and more where a step has
// copies. It returns when each delivery has a final answer, or ctx has ended.
// Call it once.
func (f *Fleet) Run(ctx context.Context, workers int) {
	var g sync.WaitGroup
	f.warm = int64(workers)
	for range workers {
		g.Go(func() {
			for {
				n := int(f.next.Add(1)) - 1
				if n >= len(f.plan.Steps) {
					return
				}
				f.step(ctx, &f.plan.Steps[n])
				f.Steps.Add(1)
			}
		})
	}
	g.Wait()
	f.client.CloseIdleConnections()
}

// Outcomes are in the order of the plan's orders. Call it after Run.
func (f *Fleet) Outcomes() []Outcome {
	out := make([]Outcome, len(f.orders))
	for i := range f.orders {
		out[i] = f.orders[i].Outcome
	}
	return out
}

func (f *Fleet) step(ctx context.Context, s *Step) {
	rec := &f.orders[s.Order]
	if s.Kind == First {
		defer close(rec.done)
	}
	if s.Kind == Changed { // it must not be the first to use the key
		select {
		case <-rec.done:
		case <-ctx.Done():
		}
	}
	var copies sync.WaitGroup
	for range s.Copies {
		copies.Go(func() {
			d := f.deliver(ctx, s)
			rec.mu.Lock()
			defer rec.mu.Unlock()
			rec.add(s, d)
		})
	}
	copies.Wait()
}

// add notes how a delivery ended.
func (o *Outcome) add(s *Step, d delivery) {
	switch {
	case !d.final:
		o.Open++
	case s.Kind == Changed && d.Status == http.StatusUnprocessableEntity:
		o.Refused++
	case s.Kind == Changed && d.ok():
		o.Accepted++
	case s.Kind != Changed && d.ok():
		o.Acks = append(o.Acks, d.Answer)
	default:
		o.Odd = append(o.Odd, d.Answer)
	}
	if s.Kind == First && s.Copies == 1 && d.calm {
		o.Latency = d.took
	}
}
