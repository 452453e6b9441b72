package consume

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/semel-go/semel/consume/driver"
)

// extender holds the deliveries that must be extended.
type extender struct {
	mu   sync.Mutex
	held map[driver.Delivery]*extension
}

type extension struct {
	m      *Message
	paused bool          // a Nak runs, or has succeeded
	ended  chan struct{} // closed when the Extend that runs has ended; nil: none runs
}

func (e *extender) add(d driver.Delivery, m *Message) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.held[d] = &extension{m: m}
}

func (e *extender) remove(d driver.Delivery) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.held, d)
}

// each calls f for all deliveries at once, so that one that hangs does not
// delay the others. It leaves out those whose earlier call still hangs.
func (e *extender) each(all *sync.WaitGroup, f func(driver.Delivery, *Message)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for d, x := range e.held {
		if x.paused || x.ended != nil {
			continue
		}
		x.ended = make(chan struct{})
		all.Go(func() {
			f(d, x.m)
			e.mu.Lock()
			defer e.mu.Unlock()
			close(x.ended)
			x.ended = nil
		})
	}
}

// pause extends a delivery no more until resume, and waits for an Extend that runs.
func (e *extender) pause(ctx context.Context, d driver.Delivery) error {
	ended := e.setPaused(d, true)
	if ended == nil {
		return nil
	}
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("consume: the message cannot be given back, because an Extend of it has not returned: %w", ctx.Err())
	}
}

func (e *extender) resume(d driver.Delivery) { e.setPaused(d, false) }

// setPaused returns the end of the Extend that runs, or nil.
func (e *extender) setPaused(d driver.Delivery, paused bool) (ended <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	x := e.held[d]
	if x == nil {
		return nil
	}
	x.paused = paused
	return x.ended
}

// extend extends all deliveries, running and waiting ones, until ctx ends.
func (s *session) extend(ctx context.Context) {
	if s.info.AckWait <= 0 {
		return
	}
	every := max(s.info.AckWait/3, time.Millisecond)
	tick := time.NewTicker(every)
	defer tick.Stop()
	var all sync.WaitGroup
	for {
		select {
		case <-ctx.Done():
			await(&all, every/2)
			return
		case <-tick.C:
		}
		s.extends.each(&all, func(d driver.Delivery, m *Message) {
			if err := s.extendOne(ctx, d, every/2); err != nil && ctx.Err() == nil {
				s.c.observe(ctx, Event{Kind: EventExtendFailed, Message: m, Err: err})
			}
		})
	}
}

// await waits for the group, but no longer than most, because an Extend may
// ignore its context.
func await(all *sync.WaitGroup, most time.Duration) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		all.Wait()
	}()
	select {
	case <-ended:
	case <-time.After(most):
	}
}

func (s *session) extendOne(ctx context.Context, d driver.Delivery, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return d.Extend(ctx)
}
