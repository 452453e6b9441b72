package deliver

import (
	"context"
	"log/slog"
	"strings"
	"sync"

	"github.com/semel-go/semel/cmd/semel/internal/program"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
)

// decisions count what was decided about messages, and the other events. The zero value
// is ready.
type decisions struct {
	mu      sync.Mutex
	decided map[decision]uint64
	events  map[consume.Kind]uint64
}

type decision struct {
	action driver.Action
	reason driver.Reason
}

// alerted are the decisions that are counted from the start, at zero, so that an alert
// on their rate sees the first one.
var alerted = map[driver.Action][]driver.Reason{
	driver.DeadLetter: {driver.ReasonFailed, driver.ReasonExhausted, driver.ReasonDeliveries, driver.ReasonMismatch, driver.ReasonInvalid, driver.ReasonNoKey},
	driver.Quarantine: {driver.ReasonUnknown, driver.ReasonUnverifiable, driver.ReasonCorrupt, driver.ReasonLate},
	driver.Ack:        {driver.ReasonDone, driver.ReasonDuplicate},
	driver.Hold:       {driver.ReasonUnavailable, driver.ReasonRejected, driver.ReasonTurn},
	driver.Retry:      {driver.ReasonError},
}

// init makes the maps. The caller holds mu.
func (d *decisions) init() {
	if d.decided != nil {
		return
	}
	d.decided, d.events = map[decision]uint64{}, map[consume.Kind]uint64{}
	for action, reasons := range alerted {
		for _, reason := range reasons {
			d.decided[decision{action, reason}] = 0
		}
	}
	for k := consume.EventSettled; k <= consume.EventReceiveFailed; k++ {
		d.events[k] = 0
	}
}

func (d *decisions) add(e *consume.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.init()
	if e.Kind == consume.EventDecided {
		d.decided[decision{e.Disposition.Action, e.Disposition.Reason}]++
	} else {
		d.events[e.Kind]++
	}
}

// eachDecision is for metrics.Registry.Counters.
func (d *decisions) eachDecision(yield func(n uint64, values ...string)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.init()
	for k, n := range d.decided {
		yield(n, k.action.String(), string(k.reason))
	}
}

// eachEvent is for metrics.Registry.Counters.
func (d *decisions) eachEvent(yield func(n uint64, values ...string)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.init()
	for k, n := range d.events {
		yield(n, strings.ReplaceAll(k.String(), " ", "_"))
	}
}

// register adds the metrics of the service.
func (s *Service) register() {
	s.counts.Counters("semel_message_decisions_total", "Decisions about messages; one message may have several.", []string{"action", "reason"}, s.decided.eachDecision)
	s.counts.Counters("semel_message_events_total", "Other events of messages and of the broker; see consume.Kind.", []string{"event"}, s.decided.eachEvent)
	s.counts.Gauge("semel_ready", "1 if messages can be delivered, else 0.", func() float64 { return truth(s.Ready(context.Background()) == nil) })
	s.counts.Gauge("semel_service_paused", "1 while all messages wait, because the service takes none, else 0.", func() float64 { return truth(s.gate.paused()) })
	s.registerTenants()
	s.counts.Gauge("semel_messages_in_flight", "Messages that were taken from the broker and are not settled.", func() float64 {
		if b := s.source.Load(); b != nil {
			return float64(b.taken.Load())
		}
		return 0
	})
	s.counts.Gauge("semel_message_bytes", "Bytes of the bodies of these messages.", func() float64 {
		if b := s.source.Load(); b != nil {
			return float64(b.held.Load())
		}
		return 0
	})
	s.sweeps.Register(&s.counts, s.opt.SweepEvery)
	s.counts.InDoubt(s.store, s.opt.Log)
	build := program.ThisBuild()
	s.counts.Build(build.Version, build.Revision, build.Go)
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// gateChanged logs that all messages wait, and that they go on.
func (s *Service) gateChanged(open bool, reason string) {
	if open {
		s.opt.Log.Info("the service takes messages again")
		return
	}
	s.opt.Log.Warn("all messages wait, because the service takes none; it is asked again and again", "reason", reason)
}

// observe counts and logs an event of the consumer. The log names a message by its
// place in the broker and by the hash of its key, because the key may be personal data.
func (s *Service) observe(ctx context.Context, e consume.Event) {
	s.decided.add(&e)
	level, text := slog.LevelDebug, "a message "+e.Kind.String()
	switch e.Kind {
	case consume.EventDecided:
		level, text = decidedLevel(e.Disposition.Action)
	case consume.EventSettleFailed, consume.EventExtendFailed, consume.EventGivenUp:
		level, text = slog.LevelWarn, "the broker does not know yet what became of a message"
	case consume.EventReceiveFailed:
		level, text = slog.LevelWarn, "the broker gives no messages; it is asked again"
	case consume.EventOutage:
		level, text = slog.LevelWarn, "the store does not answer; no message is taken until it does"
	case consume.EventResumed:
		level, text = slog.LevelInfo, "the store answers again"
	case consume.EventSettled, consume.EventReturned:
	}
	if !s.opt.Log.Enabled(ctx, level) {
		return
	}
	args := []any{"event", e.Kind.String()}
	if m := e.Message; m != nil {
		args = append(args, nameOf(m)...)
		if e.Disposition.Reason != "" {
			args = append(args, "action", e.Disposition.Action.String(), "reason", string(e.Disposition.Reason), "attempt", e.Disposition.Attempt)
		}
	}
	for _, err := range []error{e.Err, e.Disposition.Err} {
		if err != nil {
			args = append(args, "error", err)
			break
		}
	}
	s.opt.Log.Log(ctx, level, text, args...)
}

// nameOf is what a line of the log says about a message: its place in the broker, as far as
// the broker has one, and its record.
func nameOf(m *consume.Message) []any {
	args := []any{"topic", m.Origin.Topic}
	if m.Origin.Partition != 0 || m.Origin.Offset != 0 {
		args = append(args, "partition", m.Origin.Partition, "offset", m.Origin.Offset)
	}
	if m.Origin.ID != "" {
		args = append(args, "id", m.Origin.ID)
	}
	if k := m.Record; k.Value != "" {
		args = append(args, "operation", k.Operation, "tenant", k.Tenant, "key", k.Short())
	}
	return args
}

func decidedLevel(a driver.Action) (slog.Level, string) {
	switch a {
	case driver.DeadLetter:
		return slog.LevelWarn, "a message goes to the dead letters"
	case driver.Quarantine:
		return slog.LevelWarn, "a message goes to the quarantine"
	case driver.Retry:
		return slog.LevelInfo, "a message is sent again later"
	case driver.Ack, driver.Hold:
	}
	return slog.LevelDebug, "a message was decided"
}
