package nearcache_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/store/nearcache"
	"github.com/semel-go/semel/store/storetest"
)

// shared is a front that a test can empty.
type shared struct {
	mu    sync.Mutex
	clock *clock
	mem   *memstore.Store
}

func newShared() *shared {
	s := &shared{clock: newClock()}
	s.clock.Advance(3 * time.Hour) // it need not agree with anybody
	s.lose()
	return s
}

func (s *shared) lose() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mem = memstore.New(&memstore.Options{Now: s.clock.Now})
}

func (s *shared) now() store.Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mem
}

func (s *shared) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
	return s.now().Claim(ctx, p)
}
func (s *shared) Swap(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
	return s.now().Swap(ctx, seen, p)
}
func (s *shared) Renew(context.Context, []store.Lease, time.Duration) ([]error, error) {
	panic("nobody renews in the front")
}
func (s *shared) Settle(ctx context.Context, l store.Lease, t store.Settlement) error {
	return s.now().Settle(ctx, l, t)
}
func (s *shared) Get(ctx context.Context, k store.Key) (store.Found, error) {
	return s.now().Get(ctx, k)
}
func (s *shared) Sweep(ctx context.Context, from store.Cursor, limit int) (store.SweepResult, error) {
	return s.now().Sweep(ctx, from, limit)
}

// pair is two processes on one store and one front.
type pair struct {
	*world         // the first
	other  *world  // the second; it shares the clocks
	front  *shared // as it is
	faults *storetest.Fault
}

func newPair(t testing.TB, o nearcache.Options, inject func(storetest.Op, int) storetest.Mode) *pair {
	t.Helper()
	p := &pair{front: newShared()}
	p.faults = storetest.NewFault(p.front, inject)
	o.Front = p.faults
	if o.FrontTimeout == 0 { // the default is short, and no pause of the machine may pass for a front that fails
		o.FrontTimeout = time.Minute
	}
	p.world = newWorld(t, &o)
	o.Now = p.here.Now
	other := *p.world
	other.calls = storetest.NewFault(p.mem, nil)
	other.Store = newCache(t, other.calls, &o)
	p.other = &other
	return p
}

func (p *pair) pass(d time.Duration) {
	p.world.pass(d)
	p.front.clock.Advance(d)
}

func advancePair(_ testing.TB, s store.Store, d time.Duration) {
	p, _ := store.As[*pair](s)
	p.there.Advance(d)
	if d > 0 {
		p.here.Advance(d)
		p.front.clock.Advance(d)
		return
	}
	p.Purge()
	p.front.lose()
}

func TestConformance_Front(t *testing.T) {
	chance := storetest.Chance(11, 0.4, storetest.Before, storetest.LostReply, storetest.Twice, storetest.Late)
	// The suite swaps records that have not expired, as operators do. A record that
	// a swap cannot replace in the front stays for MaxAge, so reads and swaps of
	// the front do not fail here; in the histories of Guards they fail, too.
	bad := func(op storetest.Op, n int) storetest.Mode {
		if op == storetest.OpGet || op == storetest.OpSwap {
			return storetest.None
		}
		return chance(op, n)
	}
	for name, c := range map[string]struct {
		inject func(storetest.Op, int) storetest.Mode
		memory int64
	}{
		"that is well":           {nil, 0},
		"that is well, no cache": {nil, 1},
		"that fails":             {bad, 1},
		"that is down":           {func(storetest.Op, int) storetest.Mode { return storetest.Before }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, storetest.Harness{
				Open: func(t testing.TB) store.Store {
					return newPair(t, nearcache.Options{Skew: 1, MaxBytes: c.memory, FrontCooldown: 1}, c.inject)
				},
				Advance: advancePair,
			})
		})
	}
}

func TestFront_OtherProcessCompleted_AnswersWithoutTrip(t *testing.T) {
	p := newPair(t, nearcache.Options{}, nil)
	complete(t, p, "k", time.Hour)
	for range 2 { // from the front, then from memory
		p.other.trip(t, 0, "a duplicate", func() {
			if f := claim(t, p.other, "k"); f.Won || !f.Record.Outcome.Equal(outcome("kept")) {
				t.Errorf("%+v", f)
			}
		})
	}
	if n := p.faults.Calls(storetest.OpGet); n != 2 { // of the first claim, and of the duplicate
		t.Errorf("the front was read %d times, want twice", n)
	}
	p.other.trip(t, 1, "a read of what was reckoned", func() { get(t, p.other, "k") })
	q := newPair(t, nearcache.Options{MaxBytes: 1}, nil)
	complete(t, q.mem, "k", time.Hour)
	get(t, q, "k") // exact
	q.other.trip(t, 0, "a read", func() {
		if f, want := get(t, q.other, "k"), get(t, q.mem, "k"); f.Record.Seen() != want.Record.Seen() || f.Now != want.Now {
			t.Errorf("%+v, want %+v", f, want)
		}
	})
}

func TestFront_StoreRecord_ReplacesEstimatedOne(t *testing.T) {
	p := newPair(t, nearcache.Options{MaxBytes: 1 << 20}, nil)
	complete(t, p, "k", time.Hour)
	get(t, p, "k")
	p.other.trip(t, 0, "a read by another process", func() { get(t, p.other, "k") })
}

func TestFront_Fails_IsMiss(t *testing.T) {
	for _, mode := range []storetest.Mode{storetest.Before, storetest.LostReply, storetest.Late, storetest.Stall, storetest.Twice} {
		p := newPair(t, nearcache.Options{MaxBytes: 1, FrontTimeout: time.Millisecond, FrontCooldown: 1}, func(storetest.Op, int) storetest.Mode { return mode })
		for i := range 3 {
			k := fmt.Sprint(i)
			complete(t, p, k, time.Hour)
			if f := claim(t, p.other, k); f.Won || f.Record.State != store.Completed {
				t.Errorf("%v: won %v, %v", mode, f.Won, f.Record.State)
			}
			if _, err := p.Get(t.Context(), proposal("absent").Key); err != store.ErrNotFound {
				t.Errorf("%v: %v", mode, err)
			}
			p.pass(time.Second)
			p.faults.Deliver(t.Context())
		}
	}
}

func TestFront_Failed_IsNotUsedForFrontCooldown(t *testing.T) {
	isDown := true
	p := newPair(t, nearcache.Options{MaxBytes: 1, FrontCooldown: 5 * time.Second}, func(storetest.Op, int) storetest.Mode {
		if isDown {
			return storetest.Before
		}
		return storetest.None
	})
	for i := range 20 {
		complete(t, p, fmt.Sprint(i), time.Hour)
	}
	if n := p.faults.Calls(storetest.OpGet) + p.faults.Calls(storetest.OpClaim); n != 1 {
		t.Errorf("the front was asked %d times within its rest, want once", n)
	}
	isDown = false
	p.pass(5 * time.Second)
	complete(t, p.mem, "k", time.Hour)
	get(t, p, "k")
	p.other.trip(t, 0, "a duplicate after the rest", func() { claim(t, p.other, "k") })
}

// A front that is to be left alone for ever, once it has failed, is.
func TestFront_FailedWithLongestCooldown_IsNotAskedAgain(t *testing.T) {
	p := newPair(t, nearcache.Options{MaxBytes: 1, FrontCooldown: math.MaxInt64}, func(storetest.Op, int) storetest.Mode { return storetest.Before })
	for i := range 3 {
		p.pass(time.Hour)
		complete(t, p, fmt.Sprint(i), time.Hour)
	}
	if n := p.faults.Calls(storetest.OpGet) + p.faults.Calls(storetest.OpClaim); n != 1 {
		t.Errorf("the front was asked %d times, want once", n)
	}
}

func TestFront_CallerLeaves_DoesNotRest(t *testing.T) {
	p := newPair(t, nearcache.Options{MaxBytes: 1, FrontTimeout: time.Minute}, func(_ storetest.Op, n int) storetest.Mode {
		if n == 1 {
			return storetest.Stall
		}
		return storetest.None
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := p.Claim(ctx, proposal("k")); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("%v", err)
	}
	before := p.faults.Calls(storetest.OpGet)
	claim(t, p, "k")
	if p.faults.Calls(storetest.OpGet) != before+1 {
		t.Error("the front is left alone because a caller left")
	}
}

type spoiltFront struct {
	*shared
	spoil func(f *store.Found)
}

func (s spoiltFront) Get(ctx context.Context, k store.Key) (store.Found, error) {
	f, err := s.shared.Get(ctx, k)
	s.spoil(&f)
	return f, err
}

type crossedFront struct{ *shared }

func (c crossedFront) Get(ctx context.Context, k store.Key) (store.Found, error) {
	asked := k
	k.Value = "other"
	f, err := c.shared.Get(ctx, k)
	f.Record.Key = asked
	return f, err
}
