package semelpulsar

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/semel-go/semel/consume/driver"
)

// Source is a subscription as a driver.Source. It is safe for concurrent use. There is
// nothing to close; the caller closes the client.
type Source struct {
	client       pulsar.Client
	topic        string // full, without the number of a partition
	subscribed   string // full, as given to New
	subscription string
	opt          Options
	link         atomic.Pointer[link] // nil before the first Info
	begun        atomic.Bool          // it has subscribed since Info, so that each partition of that time has a position
	places       driver.CopyChecks    // the topics of copies
}

// New makes a Source of a subscription of a topic, which may have partitions. It does no
// I/O, and its error names every mistake in its arguments.
func New(client pulsar.Client, topic, subscription string, o *Options) (*Source, error) {
	var errs []error
	if client == nil {
		errs = append(errs, errors.New("client: must not be nil"))
	}
	if subscription == "" {
		errs = append(errs, errors.New(`subscription: must not be empty; give the name of the group, such as "billing"`))
	}
	s := &Source{client: client, topic: baseName(fullName(topic)), subscribed: fullName(topic), subscription: subscription}
	if err := checkTopic(s.topic); err != nil {
		return nil, fmt.Errorf("semelpulsar: %w", errors.Join(append(errs, fmt.Errorf("topic: %w", err))...))
	}
	s.opt = o.withDefaults(s.topic, subscription)
	if err := errors.Join(append(errs, s.opt.check(s.topic))...); err != nil {
		return nil, fmt.Errorf("semelpulsar: %w", err)
	}
	return s, nil
}

// inOrder reports whether the broker sends the messages of a partition to one member at
// a time. It then cannot send one message again without all later ones.
func (s *Source) inOrder() bool {
	return s.opt.Type == pulsar.Exclusive || s.opt.Type == pulsar.Failover
}

// Info implements driver.Source. It subscribes, and opens the topics of the copies.
func (s *Source) Info(ctx context.Context) (driver.Info, error) {
	if last := s.link.Swap(nil); last != nil {
		last.abandon()
		if err := last.makeWay(ctx); err != nil {
			return driver.Info{}, fmt.Errorf("semelpulsar: topic %q: %w", s.topic, err)
		}
	}
	s.begun.Store(false)
	l, err := s.open(ctx)
	if err != nil {
		return driver.Info{}, fmt.Errorf("semelpulsar: %w", err)
	}
	s.link.Store(l)
	return driver.Info{Horizon: s.opt.Horizon, HoldsOnly: s.inOrder()}, nil
}

// pollWait is how long Next waits for a message.
const pollWait = time.Second

// Next implements driver.Source. It takes the messages that the client has, or waits for
// one.
func (s *Source) Next(ctx context.Context, limit int) ([]driver.Delivery, error) {
	l := s.link.Load()
	switch {
	case l == nil:
		return nil, errors.New("semelpulsar: Next is called before Info")
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	if l.isAbandoned() { // an earlier reopen has failed
		return nil, s.reopen(ctx, l)
	}
	broken, isNew, late := l.health(time.Now())
	switch {
	case broken:
		return nil, s.reopen(ctx, l)
	case isNew: // also while other partitions have messages; once, because Serve pauses after it
		return nil, late
	}
	return l.next(ctx, limit, pollWait)
}

// reopen subscribes again: the client does not connect a partition again after the broker
// has said that it does not exist, and does not tell. Next waits for that, at most for the
// client's OperationTimeout.
func (s *Source) reopen(ctx context.Context, l *link) error {
	if s.opt.Type == pulsar.Exclusive {
		l.abandon()
	}
	if err := l.makeWay(ctx); err != nil {
		return err
	}
	fresh, err := s.open(ctx)
	switch {
	case err != nil && isUnknownTopic(err):
		return fmt.Errorf("%w: %w", driver.ErrClosed, err)
	case err != nil:
		return fmt.Errorf("semelpulsar: %w", err)
	}
	s.link.Store(fresh)
	l.abandon()
	return nil
}

// Stop implements driver.Source. The subscription's consumer is closed after the last
// delivery is settled, because the broker gives what is not acked to other members then.
func (s *Source) Stop(ctx context.Context) error {
	if l := s.link.Load(); l != nil {
		l.stop()
		l.closeIfDone(ctx)
	}
	return nil
}
