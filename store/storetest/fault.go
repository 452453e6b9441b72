package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/semel-go/semel/store"
)

// Op is a method of a store.
type Op uint8

// The six methods.
const (
	OpClaim Op = iota
	OpSwap
	OpRenew
	OpSettle
	OpGet
	OpSweep
	ops // how many
)

var opNames = [...]string{OpClaim: "Claim", OpSwap: "Swap", OpRenew: "Renew", OpSettle: "Settle", OpGet: "Get", OpSweep: "Sweep"}

// String is the method's name.
func (o Op) String() string {
	if o >= ops {
		return fmt.Sprintf("Op(%d)", uint8(o))
	}
	return opNames[o]
}

// Mode is the fault that one call meets.
type Mode uint8

const (
	// None lets the call through.
	None Mode = iota
	// Before fails the call; nothing was applied.
	Before
	// LostReply applies the call and fails it: its reply was lost.
	LostReply
	// Twice applies the call two times and returns the second reply, like a
	// network or a driver that sends again.
	Twice
	// Late fails the call and keeps it. Deliver applies it later, like a network
	// that delays a request.
	Late
	// Stall holds the call until its context ends; nothing was applied.
	Stall
	modes // how many
)

var modeNames = [...]string{None: "none", Before: "before", LostReply: "lost reply", Twice: "twice", Late: "late", Stall: "stall"}

// String is the mode in words.
func (m Mode) String() string {
	if m >= modes {
		return fmt.Sprintf("Mode(%d)", uint8(m))
	}
	return modeNames[m]
}

// ErrInjected is wrapped in each error that a Fault injects.
var ErrInjected = errors.New("storetest: injected fault")

// Fault wraps a store and makes its calls fail. Safe for concurrent use. It has
// the six methods of store.Store only. store.As finds the optional interfaces of
// the wrapped store; their calls do not fail.
type Fault struct {
	st     store.Store
	inject func(op Op, n int) Mode

	mu    sync.Mutex
	calls [ops]int
	modes [ops][modes]int
	late  []func(ctx context.Context)
}

var _ store.Store = (*Fault)(nil)

// NewFault wraps st. It calls inject before each call to choose the call's mode;
// n counts the calls of op from 1. Several goroutines may call inject at the same
// time. If inject is nil, all calls succeed and are counted.
func NewFault(st store.Store, inject func(op Op, n int) Mode) *Fault {
	return &Fault{st: st, inject: inject}
}

// Unwrap is the wrapped store.
func (f *Fault) Unwrap() store.Store { return f.st }

// Calls is how often op was called.
func (f *Fault) Calls(op Op) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[op]
}

// Count is how many calls of op had mode m.
func (f *Fault) Count(op Op, m Mode) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.modes[op][m]
}

// Deliver applies the Late calls in the order in which they were made, drops
// their replies, and returns their number.
func (f *Fault) Deliver(ctx context.Context) int {
	f.mu.Lock()
	late := f.late
	f.late = nil
	f.mu.Unlock()
	for _, apply := range late {
		apply(ctx)
	}
	return len(late)
}

// Chance makes an inject function for [NewFault]: with probability p a call has
// one of the given modes, each equally often. The same seed makes the same
// choices.
func Chance(seed uint64, p float64, among ...Mode) func(op Op, n int) Mode {
	return func(op Op, n int) Mode {
		h := mix(seed ^ uint64(op)<<56 ^ uint64(n))
		if len(among) == 0 || float64(h>>11)/(1<<53) >= p {
			return None
		}
		return among[mix(h)%uint64(len(among))]
	}
}

// mix spreads the bits of x over all 64.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// next counts a call and chooses its mode.
func (f *Fault) next(op Op) Mode {
	f.mu.Lock()
	f.calls[op]++
	n := f.calls[op]
	f.mu.Unlock()
	m := None
	if f.inject != nil {
		m = f.inject(op, n)
	}
	if m >= modes {
		panic(fmt.Sprintf("storetest: inject returned %v for call %d of %v; return one of the package's modes", m, n, op))
	}
	f.mu.Lock()
	f.modes[op][m]++
	f.mu.Unlock()
	return m
}

// through makes one call in the mode that next chooses.
func through[T any](ctx context.Context, f *Fault, op Op, call func(ctx context.Context) (T, error)) (T, error) {
	var none T
	m := f.next(op)
	fail := func(why string) (T, error) { return none, fmt.Errorf("%w: %v %s", ErrInjected, op, why) }
	switch m {
	default: // None
	case Twice:
		_, _ = call(ctx)
	case Before:
		return fail("was not sent")
	case LostReply:
		_, _ = call(ctx)
		return fail("was sent, and its reply was lost")
	case Late:
		f.mu.Lock()
		f.late = append(f.late, func(ctx context.Context) { _, _ = call(ctx) })
		f.mu.Unlock()
		return fail("was sent, and is delayed")
	case Stall:
		<-ctx.Done()
		return none, fmt.Errorf("%w: %v stalled: %w", ErrInjected, op, context.Cause(ctx))
	}
	return call(ctx)
}

// Claim implements store.Store.
func (f *Fault) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
	return through(ctx, f, OpClaim, func(ctx context.Context) (store.Found, error) { return f.st.Claim(ctx, p) })
}

// Swap implements store.Store.
func (f *Fault) Swap(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
	return through(ctx, f, OpSwap, func(ctx context.Context) (store.Found, error) { return f.st.Swap(ctx, seen, p) })
}

// Renew implements store.Store. It copies the leases, because a Late call uses
// them after it has returned.
func (f *Fault) Renew(ctx context.Context, held []store.Lease, d time.Duration) ([]error, error) {
	held = append([]store.Lease(nil), held...)
	return through(ctx, f, OpRenew, func(ctx context.Context) ([]error, error) { return f.st.Renew(ctx, held, d) })
}

// Settle implements store.Store.
func (f *Fault) Settle(ctx context.Context, l store.Lease, s store.Settlement) error {
	_, err := through(ctx, f, OpSettle, func(ctx context.Context) (struct{}, error) { return struct{}{}, f.st.Settle(ctx, l, s) })
	return err
}

// Get implements store.Store.
func (f *Fault) Get(ctx context.Context, k store.Key) (store.Found, error) {
	return through(ctx, f, OpGet, func(ctx context.Context) (store.Found, error) { return f.st.Get(ctx, k) })
}

// Sweep implements store.Store.
func (f *Fault) Sweep(ctx context.Context, from store.Cursor, limit int) (store.SweepResult, error) {
	return through(ctx, f, OpSweep, func(ctx context.Context) (store.SweepResult, error) { return f.st.Sweep(ctx, from, limit) })
}
