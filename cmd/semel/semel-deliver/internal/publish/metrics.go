package publish

import (
	"context"
	"log/slog"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/program"
	"github.com/semel-go/semel/outbox"
)

// counts count the events of a publisher.
type counts struct {
	events [outbox.EventStoreFailed + 1]atomic.Uint64
	took   atomic.Int64 // nanoseconds from the commit to the acknowledgement, of all sent messages
	lanes  atomic.Int64 // that the publisher has
}

func (c *counts) add(e *outbox.Event) {
	if int(e.Kind) < len(c.events) {
		c.events[e.Kind].Add(1)
	}
	switch e.Kind {
	case outbox.EventSent:
		c.took.Add(int64(e.Took))
	case outbox.EventClaimed:
		c.lanes.Add(1)
	case outbox.EventLost, outbox.EventReleased:
		c.lanes.Add(-1)
	}
}

// eachEvent is for metrics.Registry.Counters. Each kind is there from the start, so that
// an alert on its rate sees the first one.
func (c *counts) eachEvent(yield func(n uint64, values ...string)) {
	for kind := outbox.EventSent + 1; int(kind) < len(c.events); kind++ {
		yield(c.events[kind].Load(), strings.ReplaceAll(kind.String(), " ", "_"))
	}
}

const (
	sampleAge  = 5 * time.Second // how old the counts of the outbox may be
	sampleTime = 5 * time.Second // how long counting may take
)

// sample is the last count of the messages in the outbox. It counts when it is read, so
// that a program that nobody scrapes counts nothing.
type sample struct {
	read func(context.Context) (outbox.Stats, error)
	log  *slog.Logger

	mu    sync.Mutex
	stats outbox.Stats
	err   error
	taken time.Time
}

// get returns counts that are at most sampleAge old.
func (s *sample) get() (outbox.Stats, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken.IsZero() || time.Since(s.taken) > sampleAge {
		ctx, cancel := context.WithTimeout(context.Background(), sampleTime)
		defer cancel()
		if s.stats, s.err = s.read(ctx); s.err != nil {
			s.log.Warn("the messages of the outbox cannot be counted", "error", s.err)
		}
		s.taken = time.Now()
	}
	return s.stats, s.err
}

// gauge is a number of the outbox; NaN if it cannot be counted.
func (s *sample) gauge(number func(*outbox.Stats) float64) func() float64 {
	return func() float64 {
		stats, err := s.get()
		if err != nil {
			return math.NaN()
		}
		return number(&stats)
	}
}

// register adds the metrics of the service.
func (s *Service) register() {
	for _, g := range []struct {
		name, help string
		number     func(*outbox.Stats) float64
	}{
		{"waiting_messages", "Messages that wait to be sent, and those that are being sent.", func(s *outbox.Stats) float64 { return float64(s.Waiting) }},
		{"held_messages", "Messages that have failed, or wait for an earlier one of their order key that has.", func(s *outbox.Stats) float64 { return float64(s.Held) }},
		{"quarantined_messages", "Messages that are not sent until an operator decides.", func(s *outbox.Stats) float64 { return float64(s.Quarantined) }},
		{"stopped_keys", "Order keys that wait for an operator.", func(s *outbox.Stats) float64 { return float64(s.StoppedKeys) }},
		{"oldest_seconds", "Age of the oldest message that waits or is held; 0 if there is none.", func(s *outbox.Stats) float64 { return s.OldestAge.Seconds() }},
	} {
		s.counts.Gauge("semel_outbox_"+g.name, g.help+" NaN if the store does not answer.", s.sample.gauge(g.number))
	}
	build := program.ThisBuild()
	s.counts.Build(build.Version, build.Revision, build.Go)
	s.counts.Gauge("semel_outbox_lanes", "Lanes that this publisher has; all publishers together have 16.", func() float64 { return float64(s.numbers.lanes.Load()) })
	s.counts.Gauge("semel_ready", "1 if messages can be published, else 0.", func() float64 {
		if s.Ready(context.Background()) == nil {
			return 1
		}
		return 0
	})
	s.counts.Counter("semel_outbox_sent_total", "Messages that the destination has acknowledged.", func() float64 { return float64(s.numbers.events[outbox.EventSent].Load()) })
	s.counts.Counter("semel_outbox_sent_seconds_total", "Time from the commit of these messages to the acknowledgement; divide its rate by the rate of sent messages.", func() float64 {
		return time.Duration(s.numbers.took.Load()).Seconds()
	})
	s.counts.Counters("semel_outbox_events_total", "Other events of messages and of the publisher; see outbox.Kind.", []string{"event"}, s.numbers.eachEvent)
}
