package metrics

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel/sweep"
)

// Sweeps are the totals of all sweeps of a process.
type Sweeps struct {
	deleted, released, parked, steps, errors atomic.Uint64
	last                                     atomic.Int64 // the end of the last pass without an error, in ns since 1970
}

// AfterStep is a sweep.Options.AfterStep. A pass over a large store takes hours, in which only
// its steps show that it goes on.
func (s *Sweeps) AfterStep(sweep.Stats) { s.steps.Add(1) }

// After returns a sweep.Options.AfterPass that counts, and that logs the errors.
func (s *Sweeps) After(log *slog.Logger) func(sweep.Stats, error) {
	return func(n sweep.Stats, err error) {
		s.deleted.Add(uint64(n.Deleted))
		s.released.Add(uint64(n.Released))
		s.parked.Add(uint64(n.Parked))
		if err != nil {
			s.errors.Add(1)
			log.Warn("a sweep failed; the next one tries again", "error", err)
			return
		}
		s.last.Store(time.Now().UnixNano())
	}
}

// Register adds the totals to a registry, and the lag of the sweeps that are to run
// every so often; zero: never. Not safe for concurrent use.
func (s *Sweeps) Register(r *Registry, every time.Duration) {
	for _, c := range []struct {
		name, help string
		n          *atomic.Uint64
	}{
		{"semel_sweep_deleted_records_total", "Expired records that sweeps deleted.", &s.deleted},
		{"semel_sweep_released_claims_total", "Lapsed claims that sweeps released, so that the request may run again.", &s.released},
		{"semel_sweep_parked_claims_total", "Lapsed claims that sweeps parked, because the effect is unknown.", &s.parked},
		{"semel_sweep_steps_total", "Steps of sweeps. Each looks at some records, and a sweep looks at all.", &s.steps},
		{"semel_sweep_errors_total", "Sweeps that ended with an error.", &s.errors},
	} {
		r.Counter(c.name, c.help, func() float64 { return float64(c.n.Load()) })
	}
	if every <= 0 {
		return
	}
	s.last.Store(time.Now().UnixNano())
	r.Gauge("semel_sweep_interval_seconds", "Pause between two sweeps of this process.", every.Seconds)
	r.Gauge("semel_sweep_lag_seconds", "Time since the last complete sweep of this process without an error, or since its start.",
		func() float64 { return time.Since(time.Unix(0, s.last.Load())).Seconds() })
}
