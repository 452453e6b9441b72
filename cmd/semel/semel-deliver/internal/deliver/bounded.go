package deliver

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/store"
)

// bounded is a source that takes no more messages while those that are here have
// MaxBytes of bodies. The consumer counts messages only, and messages may be large.
//
// From a broker that counts deliveries it takes no more messages than can be sent at once: a
// message that was only taken is given back at a stop, and its delivery counts. The consumer
// itself also takes messages that wait for a place here. Those that wait for another of their
// order key have no place.
type bounded struct {
	driver.Source
	most   int64
	places int64                   // Concurrency
	check  func(driver.Info) error // of the answer to Info
	counts atomic.Bool             // the broker counts deliveries

	held  atomic.Int64 // bytes of bodies of messages that are not settled
	taken atomic.Int64 // messages
	idle  atomic.Int64 // those of them that wait for another message, a retry or a call elsewhere
	ready atomic.Bool  // Info has succeeded

	mu    sync.Mutex
	freed chan struct{}
	// size estimates the largest body of the next messages. It begins high, so that
	// the first messages of a queue with large ones do not fill the memory.
	size int64
}

func newBounded(src driver.Source, o *Options, check func(driver.Info) error) *bounded {
	largest := o.Sending.MaxBody
	return &bounded{Source: src, most: o.MaxBytes, places: int64(o.Concurrency), check: check, size: max(largest, 1), freed: make(chan struct{}, 1)}
}

// Info implements driver.Source.
func (b *bounded) Info(ctx context.Context) (driver.Info, error) {
	info, err := b.Source.Info(ctx)
	if err == nil {
		err = b.check(info)
	}
	b.counts.Store(info.DeliveryLimit > 0)
	b.ready.Store(err == nil)
	return info, err
}

// room is how many messages may be taken now.
func (b *bounded) room(limit int) int {
	held := b.held.Load()
	if held >= b.most {
		return 0
	}
	b.mu.Lock()
	room := min(int64(limit), max(1, (b.most-held)/b.size))
	b.mu.Unlock()
	if b.counts.Load() {
		room = min(room, b.places-(b.taken.Load()-b.idle.Load()))
	}
	return int(max(0, room))
}

// fullPause is how long Next waits for room before it returns nothing.
const fullPause = time.Second

// Next implements driver.Source.
func (b *bounded) Next(ctx context.Context, limit int) ([]driver.Delivery, error) {
	room := b.room(limit)
	if room == 0 {
		timer := time.NewTimer(fullPause)
		defer timer.Stop()
		select {
		case <-b.freed:
		case <-timer.C:
		case <-ctx.Done():
		}
		if room = b.room(limit); room == 0 || ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	ds, err := b.Source.Next(ctx, room)
	b.mu.Lock()
	largest := b.size / 2
	b.mu.Unlock()
	for i, d := range ds {
		n := int64(len(d.Message().Body))
		largest = max(largest, n)
		b.held.Add(n)
		b.taken.Add(1)
		ds[i] = &counted{Delivery: d, source: b, size: n}
	}
	if len(ds) > 0 {
		b.mu.Lock()
		b.size = max(largest, 1)
		b.mu.Unlock()
	}
	return ds, err
}

// counted is a delivery whose body counts until it is settled.
type counted struct {
	driver.Delivery
	source *bounded
	size   int64

	mu    sync.Mutex
	waits bool
	freed bool
}

// Ack implements driver.Delivery.
func (c *counted) Ack(ctx context.Context) error {
	err := c.Delivery.Ack(ctx)
	if err == nil || errors.Is(err, driver.ErrGone) {
		c.free()
	}
	return err
}

// Nak implements driver.Delivery. After an error the consumer may drop the delivery, so
// it does not count any more.
func (c *counted) Nak(ctx context.Context, delay time.Duration) error {
	defer c.free()
	return c.Delivery.Nak(ctx, delay)
}

// Forward implements driver.Delivery.
func (c *counted) Forward(ctx context.Context, to driver.Action, headers []store.Header) error {
	err := c.Delivery.Forward(ctx, to, headers)
	if errors.Is(err, driver.ErrGone) {
		c.free()
	}
	return err
}

// Waits implements driver.Waiter.
func (c *counted) Waits(waits bool) {
	c.mu.Lock()
	if !c.freed {
		c.setWaits(waits)
	}
	c.mu.Unlock()
	if w, ok := c.Delivery.(driver.Waiter); ok {
		w.Waits(waits)
	}
}

// setWaits counts a change. c is locked.
func (c *counted) setWaits(waits bool) {
	switch {
	case waits && !c.waits:
		c.source.idle.Add(1)
		c.source.tellFreed()
	case !waits && c.waits:
		c.source.idle.Add(-1)
	}
	c.waits = waits
}

func (c *counted) free() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.freed {
		return
	}
	c.setWaits(false)
	c.freed = true
	c.source.held.Add(-c.size)
	c.source.taken.Add(-1)
	c.source.tellFreed()
}

// tellFreed wakes a Next that waits for room.
func (b *bounded) tellFreed() {
	select {
	case b.freed <- struct{}{}:
	default:
	}
}
