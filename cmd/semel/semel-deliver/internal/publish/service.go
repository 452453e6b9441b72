// Package publish runs the publisher of an outbox as a program: it counts what happens,
// and reports its readiness.
package publish

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/metrics"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/store"
)

// Outbox is the outbox whose messages are published.
type Outbox interface {
	outbox.Store
	outbox.Inspector
}

// Service publishes the messages of an outbox. Make it with New.
type Service struct {
	publisher *outbox.Publisher
	store     store.Store // of the outbox, for Ready
	log       *slog.Logger
	counts    metrics.Registry
	numbers   counts
	sample    sample
	running   atomic.Bool
}

// New makes a service. Options.Observe is set by it. It does no I/O.
func New(st store.Store, box Outbox, sink outbox.Sink, o outbox.Options, log *slog.Logger) (*Service, error) {
	s := &Service{store: st, log: log, sample: sample{read: box.Stats, log: log}}
	logged := outbox.LogEvents(log)
	o.Observe = func(ctx context.Context, e outbox.Event) {
		s.numbers.add(&e)
		if e.Kind != outbox.EventClaimed && e.Kind != outbox.EventReleased { // 16 lines at each start and stop; the metrics have them
			logged(ctx, e)
		}
	}
	var err error
	if s.publisher, err = outbox.New(box, sink, &o); err != nil {
		return nil, err
	}
	s.register()
	return s, nil
}

// Counts are the metrics.
func (s *Service) Counts() *metrics.Registry { return &s.counts }

// Run publishes until ctx ends. Then it sends no more, and waits for the answers to the
// messages that are being sent.
func (s *Service) Run(ctx context.Context) error {
	s.running.Store(true)
	announced := make(chan struct{})
	cancel := context.AfterFunc(ctx, func() {
		defer close(announced)
		s.running.Store(false)
		s.log.Info("stopping")
	})
	err := s.publisher.Run(ctx)
	if !cancel() {
		<-announced
	}
	return err
}

// readyTimeout limits a readiness check.
const readyTimeout = 2 * time.Second

// Ready returns nil if messages can be published: Run is running, no stop has begun, and
// the store answers. It does not ask the destination, because a destination that is down
// is down for each replica.
func (s *Service) Ready(ctx context.Context) error {
	if !s.running.Load() {
		return errors.New("starting or stopping")
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	if err := store.Ping(ctx, s.store); err != nil {
		return errors.Join(errors.New("the store does not answer"), err)
	}
	return nil
}
