package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/semel-go/semel/store"
)

// readyTimeout limits a readiness check.
const readyTimeout = 2 * time.Second

// probe is a key that no request can have, because no operation contains a #.
var probe = store.Key{Operation: "#ready", Value: "probe"}

// Ready returns nil if the proxy can serve requests: the store answers, tokens
// can be verified, and no stop has begun.
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
		_, _ = p.counts.WriteTo(w) // the scraper may be gone
	})
	return mux
}

func reply(w http.ResponseWriter, code int, status string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]string{"status": status}) // the caller may be gone
}

// gauges registers the metrics that are not counts of events.
func (p *Proxy) gauges() {
	p.counts.Gauge("semel_ready", "1 if the proxy can serve requests, else 0.", func() float64 {
		if p.Ready(context.Background()) != nil {
			return 0
		}
		return 1
	})
	p.counts.Gauge("semel_requests_in_flight", "Requests that are being served.", func() float64 { return float64(p.inFlight.Load()) })
	for _, c := range []struct {
		name, help string
		n          interface{ Load() uint64 }
	}{
		{"semel_sweep_deleted_records_total", "Expired records that sweeps deleted.", &p.sweeps.deleted},
		{"semel_sweep_released_claims_total", "Lapsed claims that sweeps released, so that the request may run again.", &p.sweeps.released},
		{"semel_sweep_parked_claims_total", "Lapsed claims that sweeps parked, because the effect is unknown.", &p.sweeps.parked},
		{"semel_sweep_failed_claims_total", "Lapsed claims that sweeps failed, because no attempt was left.", &p.sweeps.failed},
		{"semel_sweep_errors_total", "Sweeps that ended with an error.", &p.sweeps.errors},
	} {
		p.counts.Counter(c.name, c.help, func() float64 { return float64(c.n.Load()) })
	}
}
