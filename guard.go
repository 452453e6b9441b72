package semel

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel/store"
)

// Guard runs calls once, under one policy, over one store. Safe for concurrent
// use. There is nothing to close: no goroutine outlives the calls, but for a
// claim whose caller has left, which is given back within SettleTimeout. Make
// one for each policy. The zero Guard fails every call.
type Guard struct {
	st     store.Store
	opt    Options
	lister store.Lister // nil: the store cannot be searched
	waiter store.Waiter // nil: waiting calls poll
	keep   keeper
	watch  watchers

	abandoned atomic.Int32
}

// New makes a Guard over a store. It does no I/O, and reports all that is
// wrong with o.
func New(st store.Store, o *Options) (*Guard, error) {
	if st == nil {
		return nil, invalid("", errors.New("store: is nil"))
	}
	g := &Guard{st: st, opt: o.withDefaults()}
	if err := g.opt.validate(); err != nil {
		return nil, invalid("", err)
	}
	g.lister, _ = store.As[store.Lister](st)
	g.waiter, _ = store.As[store.Waiter](st)
	g.keep.init(st, g.opt.Lease)
	return g, nil
}

// OnDoubt is the Guard's policy.
func (g *Guard) OnDoubt() Policy { return g.opt.OnDoubt }

// Retention is how long the Guard keeps outcomes: a door compares it with how
// late a duplicate can come.
func (g *Guard) Retention() time.Duration { return g.opt.Retention }

// Get reads a record, for operators, also one that has expired and counts as
// absent (store.Record.Expired). store.ErrNotFound: there is none.
func (g *Guard) Get(ctx context.Context, s Scope, key string) (store.Record, error) {
	call := NewCall(s, key, NoPayload())
	if err := g.check(&call); err != nil {
		return store.Record{}, err
	}
	f, err := g.st.Get(ctx, call.key)
	return f.Record, err
}

func (g *Guard) check(c *Call) error {
	if g == nil || g.st == nil {
		return invalid(c.Operation(), errors.New("guard: is the zero Guard; make one with New"))
	}
	if err := c.check(); err != nil {
		return invalid(c.Operation(), err)
	}
	return nil
}

// secret finds a secret by id; nil is the way to hash without one, which only
// a Guard without secrets writes.
func (g *Guard) secret(id string) (*Secret, bool) {
	if id == "" {
		return nil, true
	}
	for i := range g.opt.Secrets {
		if g.opt.Secrets[i].ID == id {
			return &g.opt.Secrets[i], true
		}
	}
	return nil, false
}

// fingerprint hashes a payload with the first secret.
func (g *Guard) fingerprint(p *Payload) store.Fingerprint {
	if len(g.opt.Secrets) == 0 {
		return p.fingerprint(nil)
	}
	return p.fingerprint(&g.opt.Secrets[0])
}

func (g *Guard) observe(ctx context.Context, e Event, k store.Key) {
	if g.opt.Observe == nil {
		return
	}
	e.Operation, e.Tenant, e.Key = Operation(k.Operation), k.Tenant, k.Short()
	g.opt.Observe(ctx, e)
}

// pauses between the sendings of one claim whose answer did not come.
var pauses = [...]time.Duration{5 * time.Millisecond, 25 * time.Millisecond, 100 * time.Millisecond}

// send repeats f, which is harmless to repeat (the same owner wins its own
// claim), until it answers or there is no use.
func send(ctx context.Context, f func() (store.Found, error)) (store.Found, error) {
	for i := 0; ; i++ {
		found, err := f()
		if err == nil || answered(err) || i == len(pauses) || !pause(ctx, pauses[i]) {
			return found, err
		}
	}
}

// answered reports whether an error is the store's answer, not its absence.
func answered(err error) bool {
	return errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrCorrupt) || errors.Is(err, store.ErrLeaseLost)
}

// pause sleeps for d, more or less, and reports whether ctx let it.
func pause(ctx context.Context, d time.Duration) bool {
	d = min(d, maxDuration) // half as much again must not be more than a time can hold
	t := time.NewTimer(d/2 + rand.N(d))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// detached is for what must end although the caller has left.
func (g *Guard) detached(ctx context.Context) *grace { return newGrace(ctx, g.opt.SettleTimeout) }

// errText is what a record keeps of an error.
func errText(err error) string {
	const limit = 500 // bytes
	s := err.Error()
	if len(s) > limit {
		s = s[:limit] + "…"
	}
	// Databases refuse text with a NUL or half a character in it, and the
	// whole settlement with it.
	return strings.ReplaceAll(strings.ToValidUTF8(s, ""), "\x00", "")
}
