package consumetest

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/store"
)

// partitions is a broker in memory that keeps a log and one offset for each
// partition, as Kafka does: it cannot redeliver one message, and shares the
// partitions out among the members.
type partitions struct {
	mu      sync.Mutex
	changed chan struct{} // closed at each change
	parts   [3]partition
	next    int // the partition of the next message without an order key
	members []*member
	copies  map[driver.Action][]consume.Message
	highest bool // a defect: commits the highest offset that is acked
}

type partition struct {
	log       []consume.Message
	committed int
	owner     *ownership // nil: nobody's
}

// ownership is a member's time with a partition.
type ownership struct {
	member   *member
	next     int          // the offset to deliver next
	acked    map[int]bool // above committed
	inWork   int
	revoked  chan struct{}
	revoking time.Time // since when; zero: it is not being taken away
}

// rebalanceTimeout is how long a member has to let go of a partition.
const rebalanceTimeout = 500 * time.Millisecond

func newPartitions() *partitions {
	return &partitions{changed: make(chan struct{}), copies: map[driver.Action][]consume.Message{}}
}

// share moves partitions to where they belong, as far as they are free. The
// caller holds mu.
func (b *partitions) share() {
	for i := range b.parts {
		p := &b.parts[i]
		var to *member
		if len(b.members) > 0 {
			to = b.members[i%len(b.members)]
		}
		if o := p.owner; o != nil && (o.member != to || !o.revoking.IsZero()) { // a revoked partition begins again, also with the same member
			if o.revoking.IsZero() {
				o.revoking = time.Now()
				close(o.revoked)
				time.AfterFunc(rebalanceTimeout, b.reshare)
			}
			if o.inWork == 0 || o.member.dead || time.Since(o.revoking) >= rebalanceTimeout {
				p.owner = nil
			}
		}
		if p.owner == nil && to != nil {
			p.owner = &ownership{member: to, next: p.committed, acked: map[int]bool{}, revoked: make(chan struct{})}
		}
	}
	close(b.changed)
	b.changed = make(chan struct{})
}

func (b *partitions) reshare() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.share()
}

func (b *partitions) Publish(_ testing.TB, ms ...consume.Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range ms {
		n := b.next
		if b.next++; m.OrderKey != "" {
			h := fnv.New32()
			_, _ = h.Write([]byte(m.OrderKey))
			n = int(h.Sum32())
		}
		p := &b.parts[n%len(b.parts)]
		at := consume.Origin{Topic: "log", Partition: int32(n % len(b.parts)), Offset: int64(len(p.log))}
		at.ID = fmt.Sprintf("log/%d/%d", at.Partition, at.Offset)
		m.Origin, m.Published = at, time.Now()
		p.log = append(p.log, m)
	}
	b.share()
}

func (b *partitions) Connect(testing.TB) Conn {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := &member{b: b}
	b.members = append(b.members, m)
	b.share()
	return m
}

func (b *partitions) Copies(_ testing.TB, to driver.Action) []consume.Message {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.copies[to])
}

func (b *partitions) Unsettled(testing.TB) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.parts {
		p := &b.parts[i]
		n += len(p.log) - p.committed
		if p.owner != nil {
			n -= len(p.owner.acked)
		}
	}
	return n
}

type member struct {
	b    *partitions
	dead bool // guarded by b.mu
}

func (m *member) Info(context.Context) (driver.Info, error) {
	return driver.Info{Horizon: driver.Forever, HoldsOnly: true}, nil
}

func (m *member) Stop(context.Context) error { return nil }

func (m *member) Next(ctx context.Context, limit int) ([]driver.Delivery, error) {
	for {
		m.b.mu.Lock()
		changed, dead, ds := m.b.changed, m.dead, m.ready(limit)
		m.b.mu.Unlock()
		switch {
		case dead:
			return nil, errDead
		case len(ds) > 0:
			return ds, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-changed:
		}
	}
}

// ready takes what can be delivered. The caller holds mu.
func (m *member) ready(limit int) (ds []driver.Delivery) {
	for i := range m.b.parts {
		p := &m.b.parts[i]
		o := p.owner
		for o != nil && o.member == m && o.revoking.IsZero() && o.next < len(p.log) && len(ds) < limit {
			own := p.log[o.next]
			ds = append(ds, &logDelivery{p: p, o: o, offset: o.next, own: &own})
			o.next++
			o.inWork++
		}
	}
	return ds
}

func (m *member) Kill() {
	m.b.mu.Lock()
	defer m.b.mu.Unlock()
	m.dead = true
	m.b.members = slices.DeleteFunc(m.b.members, func(other *member) bool { return other == m })
	m.b.share()
}

func (m *member) Close() error {
	m.Kill()
	return nil
}

type logDelivery struct {
	p      *partition
	o      *ownership
	offset int
	own    *consume.Message
	ended  bool
}

func (d *logDelivery) Message() *consume.Message    { return d.own }
func (d *logDelivery) Revoked() <-chan struct{}     { return d.o.revoked }
func (d *logDelivery) Extend(context.Context) error { return nil }

// end ends the delivery, if it still counts.
func (d *logDelivery) end(f func()) error {
	b := d.o.member.b
	b.mu.Lock()
	defer b.mu.Unlock()
	if d.o.member.dead || d.p.owner != d.o {
		return fmt.Errorf("log: the partition is another's: %w", driver.ErrGone)
	}
	if !d.ended {
		d.ended = true
		d.o.inWork--
	}
	f()
	b.share()
	return nil
}

func (d *logDelivery) Ack(context.Context) error {
	return d.end(func() {
		if d.offset < d.p.committed {
			return // said before, and the answer was lost
		}
		d.o.acked[d.offset] = true
		if d.o.member.b.highest && d.offset >= d.p.committed {
			d.p.committed = d.offset + 1
			clear(d.o.acked)
		}
		for d.o.acked[d.p.committed] { // never past what is not done
			delete(d.o.acked, d.p.committed)
			d.p.committed++
		}
	})
}

func (d *logDelivery) Nak(context.Context, time.Duration) error { return d.end(func() {}) }

func (d *logDelivery) Forward(_ context.Context, to driver.Action, headers []store.Header) error {
	b := d.o.member.b
	b.mu.Lock()
	defer b.mu.Unlock()
	if d.o.member.dead {
		return errDead
	}
	m := *d.own
	m.Headers = headers
	b.copies[to] = append(b.copies[to], m)
	return nil
}
