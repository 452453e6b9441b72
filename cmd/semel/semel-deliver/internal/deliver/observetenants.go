package deliver

import (
	"sync"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/limit"
)

// registerTenants adds the metrics of the limits of tenants.
func (s *Service) registerTenants() {
	gauge := func(name, help string, read func(c tenantCounts) float64) {
		s.counts.Gauge(name, help, func() float64 {
			if s.tenants == nil {
				return 0
			}
			return read(s.tenants.counts())
		})
	}
	name := "semel_limit_" + limit.TenantRequests.String()
	gauge(name+"_waiting", "Messages that wait, because their tenant has as many requests in flight as tenant-requests allows.",
		func(c tenantCounts) float64 { return float64(c.waiting) })
	s.counts.Counter(name+"_waited_total", "Messages that have begun to wait, because their tenant had as many requests in flight as tenant-requests allows.", func() float64 {
		if s.tenants == nil {
			return 0
		}
		return float64(s.tenants.counts().waited)
	})
	gauge("semel_paused_tenants", "Tenants whose messages wait, because the service has answered one of them with 429.",
		func(c tenantCounts) float64 { return float64(c.paused) })
	gauge("semel_paused_tenants_waiting", "Messages that wait, because the service has answered one of their tenant with 429.", func(c tenantCounts) float64 { return float64(c.pausedQueued) })
}

// tenantWaits logs that messages of a tenant begin to wait. Reason says why the service asks
// for a pause; empty: they wait for the limit.
func (s *Service) tenantWaits(tenant, reason string) {
	if !s.told.first(notice{tenant, reason == ""}, time.Now()) {
		return
	}
	shown := s.guard.StoreKey(semel.Call{Operation: s.opt.Calls.Operation, Tenant: tenant, Key: "-"}).Tenant
	if reason != "" {
		s.opt.Log.Warn("the messages of a tenant wait, because the service asks for it; those of others go on", "tenant", shown, "reason", reason)
		return
	}
	s.opt.Log.Info("messages of a tenant wait for a limit; those of others go on", "tenant", shown,
		"limit", limit.TenantRequests.String(), "option", "--"+limit.TenantRequests.Option(), "value", s.opt.TenantRequests)
}

// notices are the lines of the log about tenants that wait. The zero value is ready.
type notices struct {
	mu   sync.Mutex
	last map[notice]time.Time
}

type notice struct {
	tenant string
	limit  bool // the messages wait for the limit, and not for the end of a pause
}

// maxNotices is how many notices are remembered. Beyond it all are forgotten.
const maxNotices = 1024

// first reports whether a notice is the first one for a minute.
func (n *notices) first(key notice, now time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if last, ok := n.last[key]; ok && now.Sub(last) < time.Minute {
		return false
	}
	if n.last == nil || len(n.last) >= maxNotices {
		n.last = map[notice]time.Time{}
	}
	n.last[key] = now
	return true
}
