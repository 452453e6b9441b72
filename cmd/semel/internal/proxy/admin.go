package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/semel-go/semel/store"
)

// readyTimeout bounds what a readiness check asks.
const readyTimeout = 2 * time.Second

// probe is a key that nobody has.
var probe = store.Key{Operation: "#ready", Value: "probe"}

// Ready is nil when requests can be served: the store answers, tokens can be
// verified, and no stop has begun.
func (p *Proxy) Ready(ctx context.Context) error {
	if p.draining.Load() {
		return errors.New("stopping")
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	if _, err := p.Store.Get(ctx, probe); err != nil && !errors.Is(err, store.ErrNotFound) {
		return errors.Join(errors.New("the store does not answer"), err)
	}
	return p.Finder.Ready(ctx)
}

// Admin serves /healthz (the process is alive), /readyz (it can serve) and
// /metrics.
func (p *Proxy) Admin() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) { reply(w, http.StatusOK, "alive") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if err := p.Ready(r.Context()); err != nil {
			p.Log.Warn("not ready", "error", err)
			reply(w, http.StatusServiceUnavailable, err.Error())
			return
		}
		reply(w, http.StatusOK, "ready")
	})
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = p.counts.WriteTo(w) // to a scraper that may be gone
	})
	return mux
}

func reply(w http.ResponseWriter, status int, what string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"status": what}) // to a prober that may be gone
}

// gauges adds what is not counted by events.
func (p *Proxy) gauges() {
	p.counts.Gauge("semel_ready", "Whether requests can be served.", func() float64 {
		if p.Ready(context.Background()) != nil {
			return 0
		}
		return 1
	})
	p.counts.Gauge("semel_in_flight", "Requests that are being served.", func() float64 { return float64(p.inFlight.Load()) })
	for _, c := range []struct {
		name, help string
		n          interface{ Load() uint64 }
	}{
		{"semel_swept_deleted_total", "Expired records that sweeps removed.", &p.sweeps.deleted},
		{"semel_swept_released_total", "Lapsed claims that may run again.", &p.sweeps.released},
		{"semel_swept_parked_total", "Lapsed claims whose effect is not known.", &p.sweeps.parked},
		{"semel_swept_failed_total", "Lapsed claims that were the last attempt.", &p.sweeps.failed},
		{"semel_sweep_failures_total", "Sweeps that failed.", &p.sweeps.broken},
	} {
		p.counts.Counter(c.name, c.help, func() float64 { return float64(c.n.Load()) })
	}
}
