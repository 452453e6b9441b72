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

// Mode is what becomes of one call.
type Mode uint8

const (
	// None lets the call through.
	None Mode = iota
	// Before fails the call; nothing was applied.
	Before
	// LostReply applies the call and fails it: its reply was lost.
	LostReply
	// Twice applies the call two times, as a network or a driver does that
	// sends again, and gives the second reply.
	Twice
	// Late fails the call and keeps it; Deliver applies it later, as a
	// network does that lost sight of a request.
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

// ErrInjected is, or is wrapped in, each error that a Fault makes up.
var ErrInjected = errors.New("storetest: injected fault")

// Fault is a store between a caller and another store that fails as it is told
// to. Safe for concurrent use. It has the six methods only; store.As finds
// what else the wrapped store can do, and that does not fail.
type Fault struct {
	st     store.Store
	inject func(op Op, n int) Mode

	mu    sync.Mutex
	calls [ops]int
	modes [ops][modes]int
	late  []func(ctx context.Context)
}

var _ store.Store = (*Fault)(nil)

// NewFault wraps st. Inject is asked before each call what is to become of it:
// n counts the calls of op from 1. It may be called from several goroutines at
// once. Nil: all calls go through, and are counted.
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

// Count is how many calls of op went as m says.
func (f *Fault) Count(op Op, m Mode) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.modes[op][m]
}

// Deliver applies the Late calls, in the order that they were made, and says
// how many there were. Nobody gets their replies.
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

// Chance injects the modes given with probability p, each as often as the
// others, in an order that seed determines for each method.
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

// next counts a call and asks what is to become of it.
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
		panic(fmt.Sprintf("storetest: the injector gave %v for call %d of %v; use one of the package's modes", m, n, op))
	}
	f.mu.Lock()
	f.modes[op][m]++
	f.mu.Unlock()
	return m
}

// through makes one call as told. Call must not keep what it is given.
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
		return fail("was sent, and is under way")
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

// Renew implements store.Store. The leases are copied, for a late call.
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
