package proxy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
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
	if p.draining.Load() {
		return errors.New("stopping")
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
func (p *Proxy) Admin() http.Handler { return admin.Handler(p.Ready, &p.counts, p.Log) }

// gauges registers the metrics that are not counts of events.
func (p *Proxy) gauges() {
	p.counts.Gauge("semel_ready", "1 if the proxy can serve requests, else 0.", func() float64 {
		if p.Ready(context.Background()) != nil {
			return 0
		}
		return 1
	})
	p.counts.Gauge("semel_requests_in_flight", "Requests that are being served.", func() float64 { return float64(p.inFlight.Load()) })
	limits := p.router.limits
	for _, k := range limit.Kinds() {
		p.counts.Counter("semel_limit_"+k.String()+"_refused_total", "Requests that the limit "+k.String()+" refused.",
			func() float64 { return float64(limits.Refused(k)) })
	}
	p.counts.Gauge("semel_spooled_bytes", "Bytes of request bodies that are held.", func() float64 { return float64(limits.Spooled()) })
	p.counts.Gauge("semel_limited_tenants", "Tenants whose requests are counted for the limits.", func() float64 { return float64(limits.Tenants()) })
	p.sweeps.Register(&p.counts, p.Config.SweepEvery)
	p.counts.InDoubt(p.Store, p.Log)
	build := program.ThisBuild()
	p.counts.Build(build.Version, build.Revision, build.Go)
}
