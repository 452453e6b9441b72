package semel

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel/internal/handlererr"
	"github.com/semel-go/semel/internal/retry"
	"github.com/semel-go/semel/store"
)

// Guard runs calls once, under one policy, over one store. Make one for each
// policy. There is nothing to close: no goroutine outlives the calls, except to
// give back the claim of a caller that has left, for at most SettleTimeout. The
// zero Guard fails every call. Safe for concurrent use.
type Guard struct {
	store     store.Store
	options   Options
	lister    store.Lister  // nil: the store cannot list records
	notifier  store.Waiter  // nil: waiting calls poll
	journal   store.Journal // nil: the store keeps no steps
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
	g := &Guard{options: o.withDefaults()}
	if err := g.options.validate(); err != nil {
		return nil, invalid("", err)
	}
	st = g.options.Encryption.Store(st)
	g.store = st
	g.lister, _ = store.As[store.Lister](st)
	g.notifier, _ = store.As[store.Waiter](st)
	g.journal, _ = store.As[store.Journal](st)
	g.heartbeat.init(st, g.options.Lease)
	return g, nil
}

// OnDoubt is the Guard's policy.
func (g *Guard) OnDoubt() Policy { return g.options.OnDoubt }

// Retention is how long the Guard keeps outcomes. It must exceed the time after
// which a duplicate can still arrive.
func (g *Guard) Retention() time.Duration { return g.options.Retention }

// StoreKey is the key under which the store has the record of a call: with hashes, with
// Options.HashKeys. Its Short is the Event.Key of the call.
func (g *Guard) StoreKey(call Call) store.Key { return call.storeKey(&g.options) }

// Get reads the record of a call, for operators. It ignores the call's Payload
// and Wait. With Options.HashKeys the call has the key itself, and the record its hash.
// Get also returns a record that has expired and so counts as absent:
// see store.Record.Expired. store.ErrNotFound: there is no record.
func (g *Guard) Get(ctx context.Context, call Call) (store.Record, error) {
	call.Payload = NoPayload()
	if err := g.check(&call); err != nil {
		return store.Record{}, err
	}
	if call.step != nil {
		return store.Record{}, invalid(call.Operation, errStepAlone)
	}
	f, err := g.read(ctx, call.storeKey(&g.options))
	return f.Record, err
}

var errStepAlone = errors.New("call: is a step, which has no record of its own; see store.Journal")

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

var errNilHandler = errors.New("handler: is nil; pass a function")

// checkHandler refuses a nil handler before the store has a claim, which would stay in doubt.
func checkHandler(c *Call, isNil bool) error {
	if isNil {
		return invalid(c.Operation, errNilHandler)
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

// unverifiable says why a payload cannot be compared with one that was hashed as by says,
// and what to do. what was hashed: the first call or a step.
func (g *Guard) unverifiable(what string, by store.Fingerprint) error {
	if _, ok := g.secret(by.KeyID); !ok {
		return fmt.Errorf("%s was hashed by %q with secret %q, which this process does not have: add it to Options.Secrets (in the commands: --secret-file) as in the processes that wrote the record, then repeat the call", what, by.Alg, by.KeyID)
	}
	return fmt.Errorf("%s was hashed by %q, and this payload by another algorithm: use the same one in all processes", what, by.Alg)
}

// fingerprint hashes a payload with the first secret.
func (g *Guard) fingerprint(p *Payload) store.Fingerprint {
	if len(g.options.Secrets) == 0 || g.options.Secrets[0].ID == "" {
		return p.fingerprint(nil)
	}
	return p.fingerprint(&g.options.Secrets[0])
}

// errorText is what a record keeps of an error.
func errorText(err error) string { return handlererr.Text(err) }

// The methods below bound how long the Guard waits for an answer of the store. Three
// kinds of calls have limits of their own: renewals (less than a fifth of the lease), the
// settlement of a run with all its repeats (SettleTimeout), and Wait and List, which are
// long on purpose: Wait ends with its caller, and List is limited in listParked.

// storeLimit is how long one question to the store may take, and the name of the limit.
func (g *Guard) storeLimit() (limit time.Duration, name string) {
	if third := g.options.Lease / 3; g.options.UnprotectedOnOutage && third < g.options.StoreTimeout {
		return third, "a third of Lease"
	}
	return g.options.StoreTimeout, "StoreTimeout"
}

// storeContext is the context of one question to the store.
func (g *Guard) storeContext(ctx context.Context) (context.Context, context.CancelFunc) {
	limit, _ := g.storeLimit()
	return context.WithTimeout(ctx, limit)
}

// ask sends a request until the store answers, for at most StoreTimeout. Without an
// answer a change may have been applied.
func (g *Guard) ask(ctx context.Context, send func(ctx context.Context) (store.Found, error)) (store.Found, error) {
	limited, cancel := g.storeContext(ctx)
	defer cancel()
	f, err := retry.Do(limited, func() (store.Found, error) { return send(limited) })
	return f, g.explainLimit(ctx, limited, err)
}

// request sends one request and waits at most StoreTimeout for the answer, so that a
// connection that hangs leaves a caller that repeats it time for another.
func (g *Guard) request(ctx context.Context, send func(ctx context.Context) error) error {
	limited, cancel := g.storeContext(ctx)
	defer cancel()
	return g.explainLimit(ctx, limited, send(limited))
}

// read asks for a record once.
func (g *Guard) read(ctx context.Context, k store.Key) (store.Found, error) {
	limited, cancel := g.storeContext(ctx)
	defer cancel()
	f, err := g.store.Get(limited, k)
	return f, g.explainLimit(ctx, limited, err)
}

// explainLimit names the limit if it, and not the caller, ended the wait.
func (g *Guard) explainLimit(ctx, limited context.Context, err error) error {
	if err == nil || retry.Answered(err) || limited.Err() == nil || ctx.Err() != nil {
		return err
	}
	limit, name := g.storeLimit()
	return fmt.Errorf("the store gave no answer within %s, %v: %w", name, limit, err)
}

// Ping returns nil if the store answers, whatever the state of a single key: see
// store.Ping. A consumer asks it after ErrUnavailable, to tell an outage of the
// store from the trouble of one key. It takes at most StoreTimeout.
func (g *Guard) Ping(ctx context.Context) error {
	if g == nil || g.store == nil {
		return invalid("", errZeroGuard)
	}
	return g.request(ctx, func(ctx context.Context) error { return store.Ping(ctx, g.store) })
}
