package verify

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

var guardCheck = check{
	name:  "guard",
	claim: "Calls of one key through Guards on several connections run the handler once, and all get the same answer; another payload is refused, and a parked call is not run again.",
	run: func(ctx context.Context, p *probe) error {
		gates := make([]*gate, len(p.target.Stores))
		for i, st := range p.target.Stores {
			gates[i] = &gate{st: st}
			defer gates[i].shut()
		}
		retry, err := guards(gates, semel.Retry, p.tenant)
		if err != nil {
			return err
		}
		park, err := guards(gates, semel.Park, p.tenant)
		if err != nil {
			return err
		}
		for i := range max(1, p.o.Keys/4) {
			if err := p.callOnce(ctx, retry, p.key("once", i)); err != nil {
				return err
			}
			if err := p.parkOnce(ctx, park, p.key("park", i)); err != nil {
				return err
			}
		}
		return nil
	},
}

// guards are one Guard for each connection.
func guards(stores []*gate, policy semel.Policy, tenant string) ([]*semel.Guard, error) {
	gs := make([]*semel.Guard, len(stores))
	for i, st := range stores {
		g, err := semel.New(st, &semel.Options{OnDoubt: policy, Lease: lease, Retention: long, SettleTimeout: 5 * time.Second, Holder: "semel verify " + tenant,
			Observe: func(context.Context, semel.Event) {}}) // the doubt is made on purpose
		if err != nil {
			return nil, err
		}
		gs[i] = g
	}
	return gs, nil
}

// lease is the lease of the Guards: the default.
const lease = 30 * time.Second

// wrong reports whether a call got an error that a correct store never causes
// within a lease, even if some of its answers are lost.
func wrong(err error) bool {
	for _, e := range []error{store.ErrCorrupt, semel.ErrLeaseLost, semel.ErrMismatch, semel.ErrUnverifiable, semel.ErrParked, semel.ErrNotKept} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// answer is what the handlers give.
type answer struct {
	Number int64
	Text   string
}

func (p *probe) call(k store.Key, payload string) semel.Call {
	c := semel.Call{Operation: k.Operation, Tenant: k.Tenant, Key: k.Value, Payload: semel.Bytes([]byte(payload))}
	c.Wait = 10 * time.Second
	return c
}

// callOnce makes many calls of one key at once, and some later.
func (p *probe) callOnce(ctx context.Context, gs []*semel.Guard, k store.Key) error {
	var runs atomic.Int64
	handler := func(context.Context, *semel.Execution) (answer, error) {
		return answer{runs.Add(1), "the answer of " + k.Value + " \x00\u2028é"}, nil
	}
	do := func(i int) (answer, error) {
		begun := time.Now().Round(0) // with the time that a machine slept
		got, err := semel.Do(ctx, gs[i%len(gs)], p.call(k, "payload"), handler)
		if wrong(err) && time.Now().Round(0).Sub(begun) < lease/2 {
			p.broken("%q: a call fails: %v", k.Value, err)
			err = nil
		}
		return got, err
	}
	n := p.o.Parallel
	got := make([]answer, n+1)
	err := pack(n, func(i int) (err error) {
		got[i], err = do(i)
		return err
	})
	if err != nil {
		return err
	}
	if got[n], err = do(1); err != nil {
		return err
	}
	p.tried(n + 1)
	if runs.Load() != 1 {
		p.broken("%q: the handler of %d calls ran %d times", k.Value, n+1, runs.Load())
	}
	for i := range got {
		if got[i] != got[0] {
			p.broken("%q: one call got %+v, and another %+v", k.Value, got[0], got[i])
			break
		}
	}
	p.tried(1)
	if _, err := semel.Do(ctx, gs[0], p.call(k, "another payload"), handler); !errors.Is(err, semel.ErrMismatch) {
		if err != nil && !wrong(err) {
			return err
		}
		p.broken("%q: a call with another payload got %v, want it refused", k.Value, err)
	}
	return nil
}

// parkOnce makes a call that ends in doubt, and makes it again.
func (p *probe) parkOnce(ctx context.Context, gs []*semel.Guard, k store.Key) error {
	var runs atomic.Int64
	doubt := errors.New("tried by semel verify: the answer of the service was lost")
	for i := range 3 {
		err := semel.Once(ctx, gs[i%len(gs)], p.call(k, "payload"), func(context.Context, *semel.Execution) error {
			runs.Add(1)
			return doubt
		})
		p.tried(1)
		switch {
		case errors.Is(err, semel.ErrUnavailable) && !errors.Is(err, store.ErrCorrupt):
			return fmt.Errorf("%q: %w", k.Value, err)
		case !errors.Is(err, semel.ErrParked):
			p.broken("%q: call %d of one that is parked got %v, want %v", k.Value, i+1, err, semel.ErrParked)
		}
	}
	if runs.Load() != 1 {
		p.broken("%q: the handler of a call in doubt, with on-doubt park, ran %d times", k.Value, runs.Load())
	}
	return nil
}

// patient repeats a call that got no answer, as a Guard does. Each call of a store
// may be repeated, so that a lost packet does not end a check.
type patient struct {
	st     store.Store
	resent *atomic.Int64
}

// Unwrap is the store itself.
func (s patient) Unwrap() store.Store { return s.st }

// pauses are the pauses between the attempts of one call.
var pauses = [...]time.Duration{10 * time.Millisecond, 50 * time.Millisecond, 250 * time.Millisecond, time.Second}

func again[T any](ctx context.Context, s patient, call func() (T, error)) (T, error) {
	for i := 0; ; i++ {
		got, err := call()
		if err == nil || answered(err) || i == len(pauses) || !pause(ctx, pauses[i]) {
			return got, err
		}
		s.resent.Add(1)
	}
}

// answered reports whether an error is the store's answer, not its absence.
func answered(err error) bool {
	for _, e := range []error{store.ErrNotFound, store.ErrLeaseLost, store.ErrTooLarge, store.ErrCorrupt} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// pause reports whether ctx let it sleep for d.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// Claim implements store.Store.
func (s patient) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
	return again(ctx, s, func() (store.Found, error) { return s.st.Claim(ctx, p) })
}

// Swap implements store.Store.
func (s patient) Swap(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
	return again(ctx, s, func() (store.Found, error) { return s.st.Swap(ctx, seen, p) })
}

// renew renews one lease.
func (s patient) renew(ctx context.Context, l store.Lease, d time.Duration) error {
	_, err := again(ctx, s, func() (struct{}, error) {
		errs, err := s.st.Renew(ctx, []store.Lease{l}, d)
		if err == nil && len(errs) != 1 {
			err = errors.New("the store's Renew of one lease did not give one result")
		}
		if err == nil {
			err = errs[0]
		}
		return struct{}{}, err
	})
	return err
}

// Renew implements store.Store.
func (s patient) Renew(ctx context.Context, held []store.Lease, d time.Duration) ([]error, error) {
	return again(ctx, s, func() ([]error, error) { return s.st.Renew(ctx, held, d) })
}

// Settle implements store.Store.
func (s patient) Settle(ctx context.Context, l store.Lease, t store.Settlement) error {
	_, err := again(ctx, s, func() (struct{}, error) { return struct{}{}, s.st.Settle(ctx, l, t) })
	return err
}

// Get implements store.Store.
func (s patient) Get(ctx context.Context, k store.Key) (store.Found, error) {
	return again(ctx, s, func() (store.Found, error) { return s.st.Get(ctx, k) })
}

// Sweep implements store.Store.
func (s patient) Sweep(ctx context.Context, from store.Cursor, limit int) (store.SweepResult, error) {
	return again(ctx, s, func() (store.SweepResult, error) { return s.st.Sweep(ctx, from, limit) })
}
