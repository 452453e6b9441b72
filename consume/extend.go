package consume

import (
	"context"
	"maps"
	"sync"
	"time"
)

// extender is the deliveries to be kept from others.
type extender struct {
	mu   sync.Mutex
	held map[Delivery]*Message
}

func (e *extender) add(d Delivery, m *Message) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.held[d] = m
}

func (e *extender) remove(d Delivery) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.held, d)
}

func (e *extender) all() map[Delivery]*Message {
	e.mu.Lock()
	defer e.mu.Unlock()
	return maps.Clone(e.held)
}

// extend keeps what is taken from being delivered to others, until ctx ends:
// what runs, and what waits, too.
func (s *session) extend(ctx context.Context) {
	if s.info.AckWait <= 0 {
		return
	}
	every := max(s.info.AckWait/3, time.Millisecond)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		var all sync.WaitGroup // at once, so that one that hangs holds up no other
		for d, m := range s.extends.all() {
			all.Go(func() {
				if err := s.extendOne(ctx, d, every/2); err != nil && ctx.Err() == nil {
					s.c.observe(ctx, Event{Kind: EventExtendFailed, Message: m, Err: err})
				}
			})
		}
		all.Wait()
	}
}

func (s *session) extendOne(ctx context.Context, d Delivery, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return d.Extend(ctx)
}
