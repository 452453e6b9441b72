package limit

import (
	"context"
	"net/http"
	"sync/atomic"

	"github.com/semel-go/semel"
)

// Visit is one request in flight. Begin makes it. A nil Visit has no limits.
type Visit struct {
	Request *http.Request // for people; the package does not use it
	// Event is the last event of the request's call that has an error, for people, too.
	Event atomic.Pointer[semel.Event]
	// Found is the size of the kept answer that the store has given for the request's call.
	Found atomic.Int64
	// Replayed is true after the request's call was replayed.
	Replayed atomic.Bool

	limiter *Limiter
	count   *atomic.Int64
	tenant  string
	account *account // nil: no tenant has admitted the request
	spooled int64
	held    int64
	ended   bool
}

type visitKey struct{}

// WithVisit returns a context in which FromContext finds v.
func WithVisit(ctx context.Context, v *Visit) context.Context {
	return context.WithValue(ctx, visitKey{}, v)
}

// FromContext returns the visit of a request, or nil.
func FromContext(ctx context.Context) *Visit {
	v, _ := ctx.Value(visitKey{}).(*Visit)
	return v
}

// Admit counts a request with a key for its tenant. The empty tenant
// stands for all callers: only the limits in all apply to it. Call it once.
func (v *Visit) Admit(tenant string) error {
	if v == nil {
		return nil
	}
	l, now := v.limiter, v.limiter.now()
	v.tenant = tenant
	if tenant != "" {
		if err := v.admitTenant(tenant); err != nil {
			return err
		}
	}
	if after, ok := allow(l.keys, now, 1); !ok {
		return l.refuse(Keys, &l.floods, after)
	}
	return nil
}

// Tenant is the tenant of Admit, also if it was refused. It is empty before Admit, and
// if the request stands for all callers.
func (v *Visit) Tenant() string {
	if v == nil {
		return ""
	}
	return v.tenant
}

func (v *Visit) admitTenant(tenant string) error {
	l, now := v.limiter, v.limiter.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.account(tenant, now)
	if most := l.limits.TenantRequests; most > 0 && a.requests >= most {
		return l.refuse(TenantRequests, &a.floods, 0)
	}
	if a.bytes != nil {
		if tokens := a.bytes.TokensAt(now); tokens < 0 {
			return l.refuse(TenantBytes, &a.floods, seconds(-tokens/float64(a.bytes.Limit())))
		}
	}
	if after, ok := allow(a.keys, now, 1); !ok {
		return l.refuse(TenantKeys, &a.floods, after)
	}
	a.requests++
	v.account = a
	return nil
}

// Spool counts n more bytes of the request's body. After End it counts nothing, because
// nobody would give the bytes back.
func (v *Visit) Spool(n int) error {
	if v == nil || v.ended || n == 0 {
		return nil
	}
	l, more := v.limiter, int64(n)
	if a := v.account; a != nil {
		l.mu.Lock()
		full := l.limits.TenantSpool > 0 && a.spooled+more > l.limits.TenantSpool
		if !full {
			a.spooled += more
		}
		l.mu.Unlock()
		if full {
			return l.refuse(TenantSpool, &a.floods, 0)
		}
	}
	v.spooled += more
	if all := l.spooled.Add(more); l.limits.Spool > 0 && all > l.limits.Spool {
		return l.refuse(Spool, &l.floods, 0)
	}
	return nil
}

// Replays over freeReplay bytes that are held at the same time may have one part in replayShare
// of the bytes that bodies may have. The part is small because replays are in memory, and large
// bodies are in files.
const (
	freeReplay  = 64 << 10
	replayShare = 4
)

// Hold counts a replay of n bytes, which is in memory until its client has taken it. End gives
// the bytes back. A second call counts nothing. A single replay is not refused, however large it
// is.
func (v *Visit) Hold(n int64) error {
	if v == nil || v.ended || v.held > 0 || n <= freeReplay {
		return nil
	}
	over := func(held, most int64) bool { return most > 0 && held > 0 && held+n > most/replayShare }
	l, a := v.limiter, v.account
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case a != nil && over(a.held, l.limits.TenantSpool):
		return l.refuse(TenantSpool, &a.floods, 0)
	case over(l.held, l.limits.Spool):
		return l.refuse(Spool, &l.floods, 0)
	}
	v.held += n
	l.held += n
	if a != nil {
		a.held += n
	}
	return nil
}

// CountsBytes reports whether Keep counts anything.
func (v *Visit) CountsBytes() bool { return v != nil && v.account != nil && v.account.bytes != nil }

// Keep counts n bytes of an answer, whether it is kept or not. It is never refused, but
// the tenant's next requests are until the excess is worked off. End does the same
// with the bytes of the body.
func (v *Visit) Keep(n int64) {
	if !v.CountsBytes() || n <= 0 {
		return
	}
	l := v.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	r := v.account.bytes
	for now := l.now(); n > 0; {
		part := min(n, int64(r.Burst()))
		r.ReserveN(now, int(part))
		n -= part
	}
}

// EndUnadmitted gives back the place of a request that its tenant has not admitted, and
// whose refusal waits. An admitted one keeps all until End: its body may be in a file.
func (v *Visit) EndUnadmitted() {
	if v != nil && v.account == nil {
		v.End()
	}
}

// End gives back the place and the bytes. A second call does nothing.
func (v *Visit) End() {
	if v == nil || v.ended {
		return
	}
	v.ended = true
	l := v.limiter
	v.Keep(v.spooled)
	v.count.Add(-1)
	l.spooled.Add(-v.spooled)
	if v.account == nil && v.held == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held -= v.held
	if a := v.account; a != nil {
		a.requests--
		a.spooled -= v.spooled
		a.held -= v.held
		a.used = l.now()
	}
}
