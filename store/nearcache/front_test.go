package nearcache_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
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
					return newPair(t, nearcache.Options{Skew: 1, MaxBytes: c.memory, FrontRest: 1}, c.inject)
				},
				Advance:   advancePair,
				Histories: histories(1000),
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
		p := newPair(t, nearcache.Options{MaxBytes: 1, FrontTimeout: time.Millisecond, FrontRest: 1}, func(storetest.Op, int) storetest.Mode { return mode })
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

func TestFront_Failed_RestsForFrontRest(t *testing.T) {
	isDown := true
	p := newPair(t, nearcache.Options{MaxBytes: 1, FrontRest: 5 * time.Second}, func(storetest.Op, int) storetest.Mode {
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
func TestFront_FailedWithLongestRest_IsNotAskedAgain(t *testing.T) {
	p := newPair(t, nearcache.Options{MaxBytes: 1, FrontRest: math.MaxInt64}, func(storetest.Op, int) storetest.Mode { return storetest.Before })
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

func TestFront_RecordExpired_IsMiss(t *testing.T) {
	const keep, skew = 100 * time.Second, 10 * time.Second
	for name, c := range map[string]struct {
		change func(p *pair)
		trips  int
	}{
		"in time":                       {func(p *pair) { p.pass(89 * time.Second) }, 0},
		"too late":                      {func(p *pair) { p.pass(90 * time.Second) }, 1},
		"the front's clock is ahead":    {func(p *pair) { p.front.clock.Advance(90 * time.Second) }, 1},
		"the front's clock went back":   {func(p *pair) { p.front.clock.Advance(-time.Second) }, 1},
		"the process's wall clock says": {func(p *pair) { p.here.Advance(90 * time.Second) }, 1},
	} {
		p := newPair(t, nearcache.Options{Skew: skew, MaxAge: time.Hour, MaxBytes: 1}, nil)
		complete(t, p.mem, "k", keep)
		get(t, p, "k")
		c.change(p)
		p.other.trip(t, c.trips, name, func() { get(t, p.other, "k") })
	}
	p := newPair(t, nearcache.Options{MaxAge: time.Minute, MaxBytes: 1}, nil)
	complete(t, p.mem, "k", time.Hour)
	get(t, p, "k")
	p.pass(59 * time.Second)
	p.other.trip(t, 0, "within the age", func() { claim(t, p.other, "k") })
	p.pass(time.Second)
	p.other.trip(t, 1, "after the age", func() { claim(t, p.other, "k") })
}

// A record from the front keeps the rest of its lifetime in memory.
func TestFront_RecordCachedInMemory_KeepsItsLife(t *testing.T) {
	p := newPair(t, nearcache.Options{MaxAge: time.Minute}, nil)
	complete(t, p, "k", time.Hour)
	p.pass(50 * time.Second)
	p.other.trip(t, 0, "within the age", func() { claim(t, p.other, "k") })
	p.pass(10 * time.Second)
	p.other.trip(t, 1, "after the age", func() { claim(t, p.other, "k") })
}

// A front that is slow to claim and to settle: the time that this takes counts,
// also for a process whose wall clock is behind and would let it pass.
func TestFront_SlowWrite_DoesNotExtendLife(t *testing.T) {
	for op := range map[storetest.Op]bool{storetest.OpClaim: true, storetest.OpSettle: true} {
		var p *pair
		p = newPair(t, nearcache.Options{Skew: 1, MaxAge: time.Hour, MaxBytes: 1}, func(o storetest.Op, _ int) storetest.Mode {
			if o == op {
				p.pass(50 * time.Second)
			}
			return storetest.None
		})
		behind := *p.other
		behind.Store = newCache(t, behind.calls, &nearcache.Options{
			Skew: 1, MaxAge: time.Hour, MaxBytes: 1, Front: p.faults, FrontTimeout: time.Minute, Now: func() time.Time { return p.here.Now().Add(-time.Hour) },
		})
		complete(t, p.mem, "k", 100*time.Second)
		get(t, p, "k")
		p.pass(49 * time.Second)
		behind.trip(t, 0, fmt.Sprint("in time, after a slow ", op), func() { get(t, behind, "k") })
		p.pass(time.Second)
		behind.trip(t, 1, fmt.Sprint("too late, after a slow ", op), func() { get(t, behind, "k") })
	}
}

func TestSwap_KeyInFront_RemovesIt(t *testing.T) {
	p := newPair(t, nearcache.Options{}, nil)
	complete(t, p, "k", time.Hour)
	f := get(t, p, "k")
	if _, err := p.Swap(t.Context(), f.Record.Seen(), proposal("k")); err != nil {
		t.Fatal(err)
	}
	for _, st := range []store.Store{p, p.other} {
		if f := claim(t, st, "k"); f.Record.State != store.Processing {
			t.Errorf("a claim finds it %v", f.Record.State)
		}
	}
}

// A process that read the key before the swap, and writes to the front only
// after it, does not put the earlier record back.
func TestSwap_LateWriteOfEarlierRecord_FrontKeepsItOut(t *testing.T) {
	for name, op := range map[string]storetest.Op{
		"the swap comes before the write":    storetest.OpClaim,
		"the swap comes while it is written": storetest.OpSettle,
	} {
		for _, isOwn := range []bool{false, true} {
			var p *pair
			var swapped store.Found
			armed := false
			p = newPair(t, nearcache.Options{MaxBytes: 1 << 20}, func(o storetest.Op, _ int) storetest.Mode {
				if armed && o == op { // the first process is about to write to the front
					armed = false
					now := get(t, p.mem, "k")
					var err error
					if swapped, err = p.other.Swap(t.Context(), now.Record.Seen(), proposal("k")); err != nil || !swapped.Won {
						t.Fatalf("%s: won %v, error %v", name, swapped.Won, err)
					}
				}
				return storetest.None
			})
			if isOwn {
				armed = true
				complete(t, p, "k", time.Hour)
			} else {
				complete(t, p.mem, "k", time.Hour)
				armed = true
				claim(t, p, "k")
			}
			if armed || !swapped.Won {
				t.Fatalf("%s: nobody wrote to the front", name)
			}
			third := newCache(t, p.mem, &nearcache.Options{Now: p.here.Now, Front: p.front, FrontTimeout: time.Minute})
			for i, st := range []store.Store{p.other, third} {
				if f := claim(t, st, "k"); f.Record.State != store.Processing || f.Record.Fence != swapped.Record.Fence {
					t.Errorf("%s, own outcome %v, process %d: a claim finds it %v", name, isOwn, i+2, f.Record.State)
				}
			}
			if err := p.other.Settle(t.Context(), swapped.Record.Lease(), settlement(time.Hour)); err != nil {
				t.Fatal(err)
			}
			last := *p.other
			last.Store = newCache(t, last.calls, &nearcache.Options{Now: p.here.Now, Front: p.front, FrontTimeout: time.Minute})
			last.trip(t, 0, name+": a duplicate of the new outcome", func() { claim(t, last, "k") })
		}
	}
}

// Whatever else is in the front is no answer.
func TestFront_ForeignRecord_IsMiss(t *testing.T) {
	for name, spoil := range map[string]func(f *store.Found){
		"another header":     func(f *store.Found) { lastLine(f).Name = "A" },
		"no header":          func(f *store.Found) { f.Record.Outcome.Header = nil },
		"no meta":            func(f *store.Found) { lastLine(f).Value = "{}" },
		"half a meta":        func(f *store.Found) { l := lastLine(f); l.Value = l.Value[:len(l.Value)/2] },
		"another key":        func(f *store.Found) { f.Record.Key.Value = "other" },
		"a record in flight": func(f *store.Found) { f.Record.State = store.Processing },
		"an expired record":  func(f *store.Found) { f.Record.Expires = f.Now },
		"no sense":           func(f *store.Found) { f.Record.Policy = 9 },
	} {
		p := newPair(t, nearcache.Options{}, nil)
		complete(t, p, "k", time.Hour)
		calls := storetest.NewFault(p.mem, nil)
		c := newCache(t, calls, &nearcache.Options{Now: p.here.Now, Front: spoiltFront{p.front, spoil}, FrontTimeout: time.Minute})
		if f := claim(t, c, "k"); f.Record.State != store.Completed || calls.Calls(storetest.OpClaim) != 1 {
			t.Errorf("%s: %v after %d trips", name, f.Record.State, calls.Calls(storetest.OpClaim))
		}
	}
	// The record of one key at the place of another.
	p := newPair(t, nearcache.Options{}, nil)
	complete(t, p, "other", time.Hour)
	c := newCache(t, p.mem, &nearcache.Options{Now: p.here.Now, Front: crossedFront{p.front}, FrontTimeout: time.Minute})
	if f := claim(t, c, "k"); !f.Won {
		t.Error("another key's outcome is an answer")
	}
}

// lastLine is a copy of the last header line in f, which the test may change.
func lastLine(f *store.Found) *store.Header {
	f.Record.Outcome.Header = slices.Clone(f.Record.Outcome.Header)
	if len(f.Record.Outcome.Header) == 0 {
		return &store.Header{Value: strings.Repeat("x", 40)} // a miss anyway
	}
	return &f.Record.Outcome.Header[len(f.Record.Outcome.Header)-1]
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

func TestSweep_Front_DeletesExpiredRecords(t *testing.T) {
	p := newPair(t, nearcache.Options{MaxBytes: 1}, nil)
	for i := range 30 {
		complete(t, p, fmt.Sprint(i), time.Minute)
	}
	settleAs(t, p.world, "unknown", store.Unknown)
	mine := proposal("not the cache's") // of somebody who uses the front as a store
	mine.Lease = time.Second
	if _, err := p.front.Claim(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	dead := mine // of a process that died over its shelf
	dead.Key.Operation += "##front"
	if _, err := p.front.Claim(t.Context(), dead); err != nil {
		t.Fatal(err)
	}
	p.pass(time.Hour)
	for range 2 { // the second deletes what the first has cleared
		from, deleted := store.Cursor(""), 0
		for range 1000 {
			res, err := p.Sweep(t.Context(), from, 7)
			if now := get(t, p.mem, "unknown").Now; err != nil || len(res.Lapsed) > 0 || !res.Now.Equal(now) {
				t.Fatalf("%+v, %v; the store's clock is %v", res, err, now)
			}
			deleted += res.Deleted
			if from = res.Next; from == "" {
				break
			}
		}
		if from != "" || deleted != 0 && deleted != 30 {
			t.Errorf("%d deleted, cursor %q", deleted, from)
		}
		p.pass(time.Second)
	}
	left := 0
	for f, err := range p.front.mem.List(t.Context(), store.Filter{}) {
		if left++; err != nil || f.Record.Key != mine.Key {
			t.Errorf("the front still holds %v of %q, %v", f.Record.State, f.Record.Key.Operation, err)
		}
	}
	if left != 1 {
		t.Error("another's record in the front is gone")
	}
	if res, err := p.Sweep(t.Context(), "\x00front x", 7); err == nil {
		t.Errorf("a cursor of nobody's: %+v", res)
	}
	down := newCache(t, p.mem, &nearcache.Options{Front: storetest.NewFault(p.front, func(storetest.Op, int) storetest.Mode { return storetest.Before })})
	if res, err := down.Sweep(t.Context(), "", 10); err != nil || res.Next != "" || res.Now.IsZero() {
		t.Errorf("with a front that is down: %+v, %v", res, err)
	}
}
