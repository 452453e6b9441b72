package metrics

import (
	"context"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/timed"
)

// Store measures the requests to a store. Call it once. Not safe for concurrent use.
func (r *Registry) Store(st store.Store) store.Store {
	r.init().MustRegister(r.requests)
	answered, silent := map[string]prometheus.Observer{}, map[string]prometheus.Observer{}
	for _, request := range timed.Requests() {
		answered[request], silent[request] = r.requests.WithLabelValues(request, "true"), r.requests.WithLabelValues(request, "false")
	}
	return timed.New(st, func(_ context.Context, request string, took time.Duration, err error) {
		if timed.Answered(err) {
			answered[request].Observe(took.Seconds())
		} else {
			silent[request].Observe(took.Seconds())
		}
	})
}

const (
	doubtAge  = 10 * time.Second // how old the count of the records in doubt may be
	doubtTime = 5 * time.Second  // how long counting may take
)

// doubt is the last count of the records in doubt. It counts when it is read, so that a
// program that nobody scrapes counts nothing.
type doubt struct {
	store store.Store
	log   *slog.Logger

	mu    sync.Mutex
	count store.Doubt
	err   error
	taken time.Time
}

// get returns a count that is at most doubtAge old.
func (d *doubt) get() (store.Doubt, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.taken.IsZero() || time.Since(d.taken) > doubtAge {
		ctx, cancel := context.WithTimeout(context.Background(), doubtTime)
		defer cancel()
		if d.count, d.err = store.CountInDoubt(ctx, d.store); d.err != nil {
			d.log.Warn("the records in doubt cannot be counted", "error", d.err)
		}
		d.taken = time.Now()
	}
	return d.count, d.err
}

// InDoubt adds the number of the records in doubt, and the age of the oldest. The store
// finds them by an index. A store that cannot list its records adds nothing. Not safe
// for concurrent use.
func (r *Registry) InDoubt(st store.Store, log *slog.Logger) {
	if _, ok := store.As[store.Lister](st); !ok {
		return
	}
	d := &doubt{store: st, log: log}
	gauge := func(number func(store.Doubt) float64) func() float64 {
		return func() float64 {
			count, err := d.get()
			if err != nil {
				return math.NaN()
			}
			return number(count)
		}
	}
	r.Gauge("semel_in_doubt_records", "Records in doubt in the store, of all processes that share it; at most 10000. NaN if the store does not answer.",
		gauge(func(d store.Doubt) float64 { return float64(d.Records) }))
	r.Gauge("semel_in_doubt_oldest_seconds", "Time since the first call of the oldest of these records; 0 if there is none. NaN if the store does not answer.",
		gauge(func(d store.Doubt) float64 { return d.Oldest.Seconds() }))
}
