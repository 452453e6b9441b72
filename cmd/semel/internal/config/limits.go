package config

import (
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/limit"
)

// Limits are the options that bound what one tenant, and all tenants together, can
// take. Nil: not set.
type Limits struct {
	MaxRequests    *int  `yaml:"max-requests" name:"max-requests" placeholder:"N" group:"Limits" help:"Requests in flight with a key, and as many without one (default 1024; 0: no limit). Beyond it: 503."`
	MaxKeys        *int  `yaml:"max-keys" name:"max-keys" placeholder:"N" group:"Limits" help:"Requests with a key in a minute, duplicates too: up to so many at once, refilled evenly over the minute (default 0: no limit). Beyond it: 503."`
	MaxSpool       *Size `yaml:"max-spool" name:"max-spool" placeholder:"SIZE" group:"Limits" help:"Bytes of request bodies that are held until their requests end, in memory and in temporary files (default 256MiB, at least 4 times max-body; 0: no limit). A quarter of it is for replays over 64 KiB that their clients have not taken. Beyond it: 503."`
	TenantRequests *int  `yaml:"tenant-requests" name:"tenant-requests" placeholder:"N" group:"Limits" help:"Requests with a key in flight for each tenant (default 128; 0: no limit). Beyond it: 429. With scope single only the limits in all apply."`
	TenantKeys     *int  `yaml:"tenant-keys" name:"tenant-keys" placeholder:"N" group:"Limits" help:"Requests with a key in a minute for each tenant: up to so many at once, refilled evenly, 60000 by 1000 a second (default 60000; 0: no limit). Beyond it: 429."`
	TenantSpool    *Size `yaml:"tenant-spool" name:"tenant-spool" placeholder:"SIZE" group:"Limits" help:"Bytes of request bodies for each tenant (default 64MiB, at least max-body; 0: no limit). Beyond it: 429. A quarter of it is for replays over 64 KiB that their clients have not taken; beyond it: 503."`
	TenantBytes    *Size `yaml:"tenant-bytes" name:"tenant-bytes" placeholder:"SIZE" group:"Limits" help:"Bytes of bodies and answers of requests with a key in a minute for each tenant, up to an eighth of them at once, refilled evenly (default 512MiB; 0: no limit). The next request after it: 429."`
}

// limits resolves the limits. The largest body must fit into them.
func (r *resolver) limits(o *Limits, maxBody int64) limit.Limits {
	l := limit.Limits{
		Requests: or(o.MaxRequests, 1024), Keys: or(o.MaxKeys, 0), Spool: int64(or(o.MaxSpool, Size(max(256<<20, 4*maxBody)))),
		TenantRequests: or(o.TenantRequests, 128), TenantKeys: or(o.TenantKeys, 60_000),
		TenantSpool: int64(or(o.TenantSpool, Size(max(64<<20, maxBody)))), TenantBytes: int64(or(o.TenantBytes, 512<<20)),
	}
	for field, n := range map[string]int{
		"max-requests": l.Requests, "max-keys": l.Keys, "tenant-requests": l.TenantRequests, "tenant-keys": l.TenantKeys,
	} {
		r.count(field, int64(n), 0, 1_000_000_000)
	}
	for field, n := range map[string]int64{"max-spool": l.Spool, "tenant-spool": l.TenantSpool} {
		if n != 0 && n < maxBody {
			r.bad(field, Size(n).String(), "must be at least max-body, which is %v, or 0 for no limit", Size(maxBody))
		}
	}
	return l
}

// writeTimeout resolves write-timeout.
func (r *resolver) writeTimeout(o *Options) time.Duration {
	return r.span("write-timeout", o.WriteTimeout, time.Minute, 0, 24*time.Hour)
}
