package semel

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel/store"
)

// Guard runs calls once, under one policy, over one store. Make one for each
// policy. There is nothing to close: no goroutine outlives the calls, except to
// give back the claim of a caller that has left, for at most SettleTimeout. The
// zero Guard fails every call. Safe for concurrent use.
type Guard struct {
	store     store.Store
	options   Options
	lister    store.Lister // nil: the store cannot list records
	notifier  store.Waiter // nil: waiting calls poll
	heartbeat heartbeat
	waiters   waiters

	unanswered atomic.Int32 // claims being sent again in the background
}

// New makes a Guard over a store. It does no I/O. The error reports everything
// that is wrong with o.
func New(st store.Store, o *Options) (*Guard, error) {
	if st == nil {
		return nil, invalid("", errors.New("store: is nil"))
	}
	g := &Guard{store: st, options: o.withDefaults()}
	if err := g.options.validate(); err != nil {
		return nil, invalid("", err)
	}
	g.lister, _ = store.As[store.Lister](st)
	g.notifier, _ = store.As[store.Waiter](st)
	g.heartbeat.init(st, g.options.Lease)
	return g, nil
}

// OnDoubt is the Guard's policy.
func (g *Guard) OnDoubt() Policy { return g.options.OnDoubt }

// Retention is how long the Guard keeps outcomes. It must exceed the time after
// which a duplicate can still arrive.
func (g *Guard) Retention() time.Duration { return g.options.Retention }

// Get reads the record of a call, for operators. It ignores the call's Payload
// and Wait. It also returns a record that has expired and so counts as absent:
// see store.Record.Expired. store.ErrNotFound: there is no record.
func (g *Guard) Get(ctx context.Context, call Call) (store.Record, error) {
	call.Payload = NoPayload()
	if err := g.check(&call); err != nil {
		return store.Record{}, err
	}
	f, err := g.store.Get(ctx, call.storeKey())
	return f.Record, err
}

var errZeroGuard = errors.New("guard: is the zero Guard; make one with New")

func (g *Guard) check(c *Call) error {
	if g == nil || g.store == nil {
		return invalid(c.Operation, errZeroGuard)
	}
	if err := c.check(); err != nil {
		return invalid(c.Operation, err)
	}
	return nil
}

// secret finds a secret by its ID. Without an ID the result is nil, which is how
// a Guard without secrets hashes.
func (g *Guard) secret(id string) (*Secret, bool) {
	if id == "" {
		return nil, true
	}
	for i := range g.options.Secrets {
		if g.options.Secrets[i].ID == id {
			return &g.options.Secrets[i], true
		}
	}
	return nil, false
}

// fingerprint hashes a payload with the first secret.
func (g *Guard) fingerprint(p *Payload) store.Fingerprint {
	if len(g.options.Secrets) == 0 {
		return p.fingerprint(nil)
	}
	return p.fingerprint(&g.options.Secrets[0])
}

// errorText is what a record keeps of an error.
func errorText(err error) string {
	const limit = 500 // bytes
	s := err.Error()
	if len(s) > limit {
		s = s[:limit] + "…"
	}
	// A database refuses a text with a NUL or half a character, and then the
	// whole settlement would fail.
	return strings.ReplaceAll(strings.ToValidUTF8(s, ""), "\x00", "")
}
