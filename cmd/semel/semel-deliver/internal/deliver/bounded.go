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
type bounded struct {
	driver.Source
	most  int64
	check func(driver.Info) error // of the answer to Info

	held  atomic.Int64 // bytes of bodies of messages that are not settled
	taken atomic.Int64 // messages
	ready atomic.Bool  // Info has succeeded

	mu    sync.Mutex
	freed chan struct{}
	// size estimates the largest body of the next messages. It begins high, so that
	// the first messages of a queue with large ones do not fill the memory.
	size int64
}

func newBounded(src driver.Source, most, largest int64, check func(driver.Info) error) *bounded {
	return &bounded{Source: src, most: most, check: check, size: max(largest, 1), freed: make(chan struct{}, 1)}
}

// Info implements driver.Source.
func (b *bounded) Info(ctx context.Context) (driver.Info, error) {
	info, err := b.Source.Info(ctx)
	if err == nil {
		err = b.check(info)
	}
	b.ready.Store(err == nil)
	return info, err
}

// fullPause is how long Next waits for room before it returns nothing.
const fullPause = time.Second

// Next implements driver.Source.
func (b *bounded) Next(ctx context.Context, limit int) ([]driver.Delivery, error) {
	if b.held.Load() >= b.most {
		timer := time.NewTimer(fullPause)
		defer timer.Stop()
		select {
		case <-b.freed:
		case <-timer.C:
		case <-ctx.Done():
		}
		if b.held.Load() >= b.most || ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	b.mu.Lock()
	size := b.size
	b.mu.Unlock()
	ds, err := b.Source.Next(ctx, int(min(int64(limit), max(1, (b.most-b.held.Load())/size))))
	largest := size / 2
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
	once   sync.Once
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
	if w, ok := c.Delivery.(driver.Waiter); ok {
		w.Waits(waits)
	}
}

func (c *counted) free() {
	c.once.Do(func() {
		c.source.held.Add(-c.size)
		c.source.taken.Add(-1)
		select {
		case c.source.freed <- struct{}{}:
		default:
		}
	})
}
