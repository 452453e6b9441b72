package pipeline

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/semel-go/semel/consume"
)

// Placed is the body of a message.
type Placed struct {
	Order  string `json:"order"`
	Amount int64  `json:"amount"` // in cents
}

// CalmHeader marks the messages whose way is measured.
const CalmHeader = "demo-calm"

// Producers carry out a plan.
type Producers struct {
	plan   *Plan
	broker *Broker
	orders []sent
	next   atomic.Int64
	warm   int64 // how many messages are settled before the way of one counts
	last   atomic.Uint64
	floor  atomic.Uint64
	limit  atomic.Int64

	// The counters may be read meanwhile.
	Sent      atomic.Int64
	Settled   atomic.Int64 // of those, as the server sees it
	Disturbed atomic.Bool  // from now on, nothing is measured, and more messages are under way
}

// sent is an order's first message.
type sent struct {
	done chan struct{} // closed when it is sent
	seq  uint64
}

// NewProducers makes them for a plan.
func NewProducers(plan *Plan, b *Broker) *Producers {
	p := &Producers{plan: plan, broker: b, orders: make([]sent, len(plan.Orders)), warm: int64(plan.Messages / 50)}
	for i := range p.orders {
		p.orders[i].done = make(chan struct{})
	}
	p.limit.Store(int64(plan.Messages))
	return p
}

// Hold keeps the producers from sending more messages than so many, but for the
// one that each is about to send, until it is called with more.
func (p *Producers) Hold(messages int64) { p.limit.Store(messages) }

const (
	// look is how often the server is asked what is left to do.
	look = 4 * time.Millisecond
	// Before the first kill few messages are under way, so that the latency of a
	// message does not include the wait for earlier ones.
	fewUnderWay, manyUnderWay = 3, 96
)

// Run sends all messages with n producers, and returns when consumers have
// settled them all. The error comes from ctx or from the server.
func (p *Producers) Run(ctx context.Context, n int) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	var producers, watch sync.WaitGroup
	sending := make(chan struct{})
	watch.Go(func() {
		if err := p.watch(ctx, sending); err != nil {
			end(err)
		}
	})
	for range n {
		producers.Go(func() {
			if err := p.produce(ctx); err != nil {
				end(err)
			}
		})
	}
	producers.Wait()
	close(sending)
	watch.Wait()
	return context.Cause(ctx)
}

// watch notes what is settled, until everything is that was sent.
func (p *Producers) watch(ctx context.Context, sending <-chan struct{}) error {
	for {
		over := false
		select {
		case <-sending:
			over = true
		default:
		}
		before := p.Sent.Load()
		b, err := p.broker.Backlog(ctx)
		if err != nil {
			return err
		}
		p.floor.Store(b.Floor)
		p.Settled.Store(max(p.Settled.Load(), before-int64(b.Unsettled)))
		if over && b.Unsettled == 0 && b.Floor >= p.last.Load() {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(look):
		}
	}
}

func (p *Producers) produce(ctx context.Context) error {
	for {
		n := int(p.next.Add(1)) - 1
		if n >= len(p.plan.Steps) {
			return nil
		}
		if err := p.step(ctx, &p.plan.Steps[n]); err != nil {
			return err
		}
	}
}

func (p *Producers) step(ctx context.Context, s *Step) error {
	o := &p.orders[s.Order]
	if s.Kind == Changed { // it must not be the first that is handled
		select {
		case <-o.done:
		case <-ctx.Done():
		}
		if err := p.until(ctx, func() bool { return p.floor.Load() >= o.seq }); err != nil {
			return err
		}
	}
	for range s.Copies {
		seq, err := p.send(ctx, s)
		if err != nil {
			return err
		}
		if s.Kind == First {
			o.seq = seq
		}
	}
	if s.Kind == First {
		close(o.done)
	}
	return nil
}

func (p *Producers) send(ctx context.Context, s *Step) (seq uint64, err error) {
	err = p.until(ctx, func() bool {
		sent := p.Sent.Load()
		underWay := sent - p.Settled.Load()
		return sent < p.limit.Load() && (underWay < fewUnderWay || p.Disturbed.Load() && underWay < manyUnderWay)
	})
	if err != nil {
		return 0, err
	}
	o := &p.plan.Orders[s.Order]
	body := Placed{o.ID, o.Amount}
	if s.Kind == Changed {
		body.Amount++
	}
	m := nats.NewMsg(subject)
	if m.Data, err = json.Marshal(body); err != nil {
		return 0, err
	}
	m.Header.Set(consume.KeyHeader, o.ID)
	if s.Kind == First && s.Copies == 1 && !p.Disturbed.Load() && p.Settled.Load() >= p.warm {
		m.Header.Set(CalmHeader, "1")
	}
	if seq, err = p.broker.publish(ctx, m); err != nil {
		return 0, err
	}
	p.Sent.Add(1)
	for last := p.last.Load(); seq > last && !p.last.CompareAndSwap(last, seq); last = p.last.Load() {
	}
	return seq, nil
}

// until waits for something that watch sees.
func (p *Producers) until(ctx context.Context, is func() bool) error {
	for !is() {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(look / 4):
		}
	}
	return nil
}
