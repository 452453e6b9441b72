package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/admin"
	"github.com/semel-go/semel/cmd/semel/internal/limit"
	"github.com/semel-go/semel/cmd/semel/internal/program"
	"github.com/semel-go/semel/store"
)

// readyTimeout limits a readiness check.
const readyTimeout = 2 * time.Second

// Ready returns nil if the proxy can serve requests: the store answers, tokens
// can be verified, temporary files can be made, and no stop has begun.
func (p *Proxy) Ready(ctx context.Context) error {
	select {
	case <-p.draining:
		return errors.New("stopping")
	default:
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	if err := store.Ping(ctx, p.Store); err != nil {
		return errors.Join(errors.New("the store does not answer"), err)
	}
	return errors.Join(p.Finder.Ready(ctx), CheckTempDir(p.TempDir))
}

// CheckTempDir returns an error if the folder for temporary files takes none. Bodies
// over 64 KiB are kept there while their requests run. Empty: os.TempDir.
func CheckTempDir(dir string) error {
	f, err := os.CreateTemp(dir, "semel-ready-*")
	if err != nil {
		return fmt.Errorf("no temporary file can be made, which large request bodies need; make the folder or set TMPDIR: %w", err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// Admin serves /healthz (the process is alive), /readyz (it can serve) and
// /metrics.
//
// An observing proxy also serves /observed, its report: as text, or as JSON if the query
// is "json" or the client accepts application/json.
func (p *Proxy) Admin() http.Handler {
	if p.observer == nil {
		return admin.Handler(p.Ready, &p.counts, p.Log)
	}
	mux := http.NewServeMux()
	mux.Handle("/", admin.Handler(p.Ready, &p.observer.registry, p.Log))
	mux.HandleFunc("GET /observed", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		if r.URL.RawQuery == "json" || strings.Contains(r.Header.Get("Accept"), "application/json") {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(p.Observed()) // the caller may be gone
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_ = p.Observed().WriteText(w)
	})
	return mux
}

// gauges registers the metrics that are not counts of events.
func (p *Proxy) gauges() {
	counts := &p.counts
	if p.observer != nil {
		counts = &p.observer.registry
	}
	counts.Gauge("semel_ready", "1 if the proxy can serve requests, else 0.", func() float64 {
		if p.Ready(context.Background()) != nil {
			return 0
		}
		return 1
	})
	counts.Gauge("semel_requests_in_flight", "Requests that are being served.", func() float64 { return float64(p.inFlight.Load()) })
	build := program.ThisBuild()
	counts.Build(build.Version, build.Revision, build.Go)
	if p.observer != nil {
		return
	}
	limits := p.router.limits
	for _, k := range limit.Kinds() {
		p.counts.Counter("semel_limit_"+k.String()+"_refused_total", "Requests that the limit "+k.String()+" refused.",
			func() float64 { return float64(limits.Refused(k)) })
	}
	p.counts.Gauge("semel_spooled_bytes", "Bytes of request bodies that are held.", func() float64 { return float64(limits.Spooled()) })
	p.counts.Gauge("semel_limited_tenants", "Tenants whose requests are counted for the limits.", func() float64 { return float64(limits.Tenants()) })
	p.sweeps.Register(&p.counts, p.Config.SweepEvery)
	p.counts.InDoubt(p.Store, p.Log)
}
