// Package limit bounds how much of the proxy one tenant can take, and all tenants
// together: requests in flight, requests with a key in a minute, bytes of request
// bodies that are held, and bytes of bodies and answers in a minute.
package limit

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// Limits are the bounds. Zero: no limit.
type Limits struct {
	// Requests bounds the requests in flight whose keys the proxy handles, and
	// separately the requests in flight that pass without one.
	Requests int
	Keys     int   // requests with a key in a minute: up to Keys at once, refilled evenly
	Spool    int64 // bytes of request bodies that the proxy has read and still holds

	// The same for each tenant.
	TenantRequests int
	TenantKeys     int
	TenantSpool    int64
	TenantBytes    int64 // bytes of bodies and of their answers in a minute, an eighth of them at once
}

// Kind names one of the limits.
type Kind uint8

// The kinds of limits.
const (
	Requests Kind = iota
	Keys
	Spool
	TenantRequests
	TenantKeys
	TenantSpool
	TenantBytes
	kinds
)

var kindNames = [kinds]string{"requests", "keys", "spool", "tenant_requests", "tenant_keys", "tenant_spool", "tenant_bytes"}

// String is the name of the limit in metrics and logs.
func (k Kind) String() string { return kindNames[k] }

// Option is the name of the option that sets the limit.
func (k Kind) Option() string {
	name := strings.ReplaceAll(k.String(), "_", "-")
	if k.Tenant() {
		return name
	}
	return "max-" + name
}

// Tenant reports whether the limit is for one tenant.
func (k Kind) Tenant() bool { return k >= TenantRequests }

// Kinds returns all kinds.
func Kinds() []Kind {
	return []Kind{Requests, Keys, Spool, TenantRequests, TenantKeys, TenantSpool, TenantBytes}
}

// Value is the bound of a kind.
func (l *Limits) Value(k Kind) int64 {
	return [kinds]int64{int64(l.Requests), int64(l.Keys), l.Spool, int64(l.TenantRequests), int64(l.TenantKeys), l.TenantSpool, l.TenantBytes}[k]
}

// Error reports that a limit is reached.
type Error struct {
	Kind  Kind
	After time.Duration // the client may try again after this time
	// First says that this limit has refused the tenant, or for a limit of all tenants
	// anybody, for the first time in a minute.
	First bool
}

// Error names the limit.
func (e *Error) Error() string {
	return fmt.Sprintf("the limit %s is reached; try again in %v", e.Kind, e.After)
}

// soon is how long a client waits for a limit whose end is not known.
const soon = time.Second

// Limiter holds the counts. Safe for concurrent use.
type Limiter struct {
	limits  Limits
	now     func() time.Time
	keys    *rate.Limiter // nil: no limit
	refused [kinds]atomic.Uint64

	handled, passing atomic.Int64 // requests in flight
	spooled          atomic.Int64
	floods           [kinds]flood // of refusals by the limits of all tenants

	mu      sync.Mutex
	held    int64 // see Hold
	tenants map[string]*account
	cleanAt int // the number of accounts at which idle ones are removed
}

// maxTenants is the largest number of accounts. Beyond it an idle account is
// forgotten before its minute is over.
const maxTenants = 1 << 16

// firstClean is the first value of Limiter.cleanAt.
const firstClean = 1024

// flood is a series of refusals by one limit without a pause of a minute. Safe for concurrent use.
type flood struct{ last atomic.Int64 } // the time of the last refusal, in nanoseconds since 1970; 0: none

// refusal counts a refusal, and reports whether it begins a flood.
func (f *flood) refusal(now time.Time) (first bool) {
	n := now.UnixNano()
	return n-f.last.Swap(n) > int64(time.Minute)
}

// account holds the counts of a tenant. Limiter.mu guards it, but for the floods.
type account struct {
	name        string
	requests    int
	spooled     int64
	held        int64         // see Hold
	keys, bytes *rate.Limiter // nil: no limit
	used        time.Time
	floods      [kinds]flood // of refusals by the limits of a tenant
}

// New makes a Limiter. A nil now means time.Now.
func New(l Limits, now func() time.Time) *Limiter {
	if now == nil {
		now = time.Now
	}
	return &Limiter{limits: l, now: now, keys: perMinute(int64(l.Keys)), tenants: map[string]*account{}, cleanAt: firstClean}
}

// perMinute allows n events in a minute, all of them at once.
func perMinute(n int64) *rate.Limiter { return atOnce(n, n) }

// atOnce allows n events in a minute, and up to burst at once.
func atOnce(n, burst int64) *rate.Limiter {
	if n <= 0 {
		return nil
	}
	return rate.NewLimiter(rate.Limit(float64(n)/60), int(min(max(burst, 1), math.MaxInt32)))
}

// Refused is how often a limit refused a request.
func (l *Limiter) Refused(k Kind) uint64 { return l.refused[k].Load() }

// Spooled is how many bytes of request bodies the proxy holds.
func (l *Limiter) Spooled() int64 { return l.spooled.Load() }

// Tenants is the number of tenants that have an account.
func (l *Limiter) Tenants() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.tenants)
}

// refuse counts a refusal. The floods are those of the tenant, or of all tenants.
func (l *Limiter) refuse(k Kind, floods *[kinds]flood, after time.Duration) error {
	l.refused[k].Add(1)
	return &Error{Kind: k, After: max(after, soon), First: floods[k].refusal(l.now())}
}

// Begin gives a request a place among those in flight. Handled says that the proxy
// handles its key. The caller has to end the visit.
func (l *Limiter) Begin(handled bool) (*Visit, error) {
	count := &l.passing
	if handled {
		count = &l.handled
	}
	if n := count.Add(1); l.limits.Requests > 0 && n > int64(l.limits.Requests) {
		count.Add(-1)
		return nil, l.refuse(Requests, &l.floods, 0)
	}
	return &Visit{limiter: l, count: count}, nil
}

// allow takes n events of a rate, or returns the time after which there are some.
func allow(r *rate.Limiter, now time.Time, n int) (after time.Duration, ok bool) {
	if r == nil {
		return 0, true
	}
	v := r.ReserveN(now, n)
	if d := v.DelayFrom(now); !v.OK() || d > 0 {
		v.CancelAt(now)
		return d, false
	}
	return 0, true
}

// account finds or makes the account of a tenant. The caller holds mu.
func (l *Limiter) account(tenant string, now time.Time) *account {
	a := l.tenants[tenant]
	if a == nil {
		l.clean(now)
		a = &account{name: tenant, keys: perMinute(int64(l.limits.TenantKeys)), bytes: atOnce(l.limits.TenantBytes, l.limits.TenantBytes/8)}
		l.tenants[tenant] = a
	}
	a.used = now
	return a
}

// clean removes the accounts whose minute is over, if there are many, and if that
// does not help an eighth of all. The caller holds mu.
func (l *Limiter) clean(now time.Time) {
	if len(l.tenants) < l.cleanAt {
		return
	}
	for name, a := range l.tenants {
		if a.requests == 0 && now.Sub(a.used) > time.Minute {
			delete(l.tenants, name)
		}
	}
	for name, a := range l.tenants {
		if len(l.tenants) <= maxTenants-maxTenants/8 {
			break
		}
		if a.requests == 0 {
			delete(l.tenants, name)
		}
	}
	l.cleanAt = max(firstClean, min(2*len(l.tenants), maxTenants))
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
