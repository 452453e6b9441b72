package verify

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel/store"
)

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
