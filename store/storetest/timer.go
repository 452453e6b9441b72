package storetest

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel/store"
)

var timerChecks = []check{
	{"a timer is due after its wait, and not before", timerDue},
	{"a timer of another version is neither changed nor dropped", timerVersion},
	{"a change that is sent again is one change", timerAgain},
	{"without a version any timer is changed", timerAny},
	{"a dropped timer is gone", timerDrop},
	{"the earliest come first, and no more than the limit", timerOrder},
	{"operations, tenants and keys do not share timers", timerKeys},
	{"a timer does not change with its record", timerRecord},
	{"of changes that race for one version, one wins", timerRace},
	{"a context that ended before the call: an error, and no change", timerContext},
}

// timers skips the check if the store keeps no timers.
func (b *bed) timers() store.Timers {
	t, ok := store.As[store.Timers](b.st)
	if !ok {
		b.Skip("the store is no store.Timers")
	}
	return t
}

// setTimer must set the timer.
func (b *bed) setTimer(k store.Key, seen store.Owner, wait time.Duration) store.Owner {
	b.Helper()
	next := newOwner()
	if set, err := b.timers().SetTimer(b.Context(), k, seen, next, wait); err != nil || !set {
		b.Fatalf("SetTimer(%q): set %v, error %v; want it set", k.Value, set, err)
	}
	return next
}

// due are the timers of an operation that are due within a time.
func (b *bed) due(operation string, within time.Duration) []store.Timer {
	b.Helper()
	due, now, err := b.timers().DueTimers(b.Context(), operation, within, 100)
	if err != nil {
		b.Fatalf("DueTimers: %v", err)
	}
	for _, t := range due {
		if t.Due.After(now.Add(within + b.h.Skew)) {
			b.Errorf("a timer is due at %v, and now is %v", t.Due, now)
		}
	}
	return due
}

// onlyTimer fails unless the operation has this timer, and no other.
func (b *bed) onlyTimer(k store.Key, version store.Owner) store.Timer {
	b.Helper()
	got := b.due(k.Operation, 2*long)
	if len(got) != 1 || got[0].Key != k || got[0].Version != version {
		b.Fatalf("the timers are %v, want that of %q with version %x", got, k.Value, version)
	}
	return got[0]
}

func timerDue(b *bed) {
	k := key("due")
	wait := b.short()
	before := b.now()
	version := b.setTimer(k, store.Owner{}, wait)
	after := b.now()
	t := b.onlyTimer(k, version)
	if t.Due.Before(before.Add(wait-b.h.Skew)) || t.Due.After(after.Add(wait+b.h.Skew)) {
		b.Errorf("the timer is due at %v; it was set between %v and %v to %v later", t.Due, before, after, wait)
	}
	later := b.setTimer(key("later"), store.Owner{}, long)
	b.pass(wait + b.h.Skew)
	if got := b.due(k.Operation, 0); len(got) != 1 || got[0].Version != version {
		b.Errorf("the timers %v are due, want the one of %q", got, k.Value)
	}
	if got := b.due(k.Operation, 2*long); len(got) != 2 || got[1].Version != later {
		b.Errorf("the timers %v are due within two hours, want both", got)
	}
}

// now is the store's clock.
func (b *bed) now() time.Time {
	b.Helper()
	_, now, err := b.timers().DueTimers(b.Context(), "none", 0, 1)
	if err != nil {
		b.Fatalf("DueTimers: %v", err)
	}
	return now
}

// pass returns after d has passed by the store's clock.
func (b *bed) pass(d time.Duration) {
	b.Helper()
	end := b.now().Add(d)
	if b.h.Advance != nil {
		b.h.Advance(b.TB, b.st, d)
	}
	for start := time.Now(); b.now().Before(end); breathe() {
		if time.Since(start) > patience {
			b.Fatalf("the store's clock does not reach %v", end)
		}
	}
}

func timerVersion(b *bed) {
	k, wrong := key("version"), newOwner()
	if set, err := b.timers().SetTimer(b.Context(), k, wrong, newOwner(), 0); err != nil || set {
		b.Errorf("a version of an absent timer: set %v, error %v; want it refused", set, err)
	}
	if got := b.due(k.Operation, 2*long); len(got) != 0 {
		b.Errorf("a refused change has made the timers %v", got)
	}
	first := b.setTimer(k, store.Owner{}, long)
	was := b.onlyTimer(k, first)
	if set, err := b.timers().SetTimer(b.Context(), k, wrong, newOwner(), 0); err != nil || set {
		b.Errorf("a wrong version: set %v, error %v; want it refused", set, err)
	}
	if err := b.timers().DropTimer(b.Context(), k, wrong); err != nil {
		b.Errorf("DropTimer with a wrong version: %v", err)
	}
	if t := b.onlyTimer(k, first); t.Due != was.Due {
		b.Errorf("a refused change made the timer due at %v instead of %v", t.Due, was.Due)
	}
	b.onlyTimer(k, b.setTimer(k, first, 0))
	if set, err := b.timers().SetTimer(b.Context(), k, first, newOwner(), 0); err != nil || set {
		b.Errorf("the version before: set %v, error %v; want it refused", set, err)
	}
}

func timerAgain(b *bed) {
	k, next := key("again"), newOwner()
	first := b.setTimer(k, store.Owner{}, long)
	var was store.Timer
	for i := range 2 {
		if set, err := b.timers().SetTimer(b.Context(), k, first, next, time.Minute); err != nil || !set {
			b.Fatalf("sending %d: set %v, error %v; want it set", i+1, set, err)
		}
		t := b.onlyTimer(k, next)
		if i == 1 && t.Due != was.Due {
			b.Errorf("the second sending made the timer due at %v instead of %v", t.Due, was.Due)
		}
		was = t
		b.tick()
	}
}

func timerAny(b *bed) {
	k := key("any")
	for _, wait := range []time.Duration{long, 0, long} {
		b.onlyTimer(k, b.setTimer(k, store.Owner{}, wait))
	}
}

func timerDrop(b *bed) {
	k := key("drop")
	if err := b.timers().DropTimer(b.Context(), k, newOwner()); err != nil {
		b.Errorf("DropTimer of an absent timer: %v", err)
	}
	version := b.setTimer(k, store.Owner{}, 0)
	for range 2 {
		if err := b.timers().DropTimer(b.Context(), k, version); err != nil {
			b.Fatalf("DropTimer: %v", err)
		}
		if got := b.due(k.Operation, 2*long); len(got) != 0 {
			b.Errorf("a dropped timer is there: %v", got)
		}
	}
	b.onlyTimer(k, b.setTimer(k, store.Owner{}, 0))
}

func timerOrder(b *bed) {
	waits := []int{5, 2, 7, 1, 6, 3, 4}
	for _, n := range waits {
		b.setTimer(key(strings.Repeat("k", n)), store.Owner{}, time.Duration(n)*time.Minute)
	}
	due, _, err := b.timers().DueTimers(b.Context(), key("").Operation, 2*long, 5)
	if err != nil {
		b.Fatalf("DueTimers: %v", err)
	}
	var got []int
	for _, t := range due {
		got = append(got, len(t.Key.Value))
	}
	if !slices.Equal(got, []int{1, 2, 3, 4, 5}) {
		b.Errorf("of 7 timers the first 5 are %v, want 1 to 5", got)
	}
}

func timerKeys(b *bed) {
	versions := map[store.Key]store.Owner{}
	for _, operation := range []string{"a", "b", "a##saga", "A"} {
		for _, tenant := range []string{"", "t", "k", "é", "z'\"\\%", "\xff"} {
			for _, value := range []string{"t", "k", "\xff\xfe", strings.Repeat("v", 255)} {
				k := store.Key{Operation: operation, Tenant: tenant, Value: value}
				versions[k] = b.setTimer(k, store.Owner{}, 0)
			}
		}
	}
	seen := 0
	for _, operation := range []string{"a", "b", "a##saga", "A", "", "a%"} {
		for _, t := range b.due(operation, long) {
			seen++
			if t.Key.Operation != operation || versions[t.Key] != t.Version {
				b.Errorf("operation %q has the timer %+v, which nobody has set", operation, t)
			}
		}
	}
	if seen != len(versions) {
		b.Errorf("there are %d timers, want %d", seen, len(versions))
	}
}

func timerRecord(b *bed) {
	r := b.put(key("record"), store.Processing, long)
	version := b.setTimer(r.Key, store.Owner{}, long)
	b.settle(r.Lease(), settlement(store.Completed, b.short()))
	b.onlyTimer(r.Key, version)
	b.outlive(r.Key)
	if _, err := b.st.Sweep(b.Context(), "", 100); err != nil {
		b.Fatalf("Sweep: %v", err)
	}
	b.absent(r.Key)
	b.onlyTimer(r.Key, version)
	b.setTimer(key("other"), store.Owner{}, long)
	b.absent(key("other"))
}

func timerRace(b *bed) {
	k := key("race")
	version := b.setTimer(k, store.Owner{}, long)
	for range 20 {
		var won atomic.Int32
		var winner atomic.Pointer[store.Owner]
		handles := []store.Timers{}
		for i := range 4 {
			t, _ := store.As[store.Timers](b.handle(i))
			handles = append(handles, t)
		}
		pack(len(handles), func(i int) {
			next := newOwner()
			set, err := handles[i].SetTimer(b.Context(), k, version, next, long)
			if err != nil {
				b.Errorf("SetTimer: %v", err)
			}
			if set {
				won.Add(1)
				winner.Store(&next)
			}
		})
		if n := won.Load(); n != 1 {
			b.Fatalf("%d of 4 changes won, want 1", n)
		}
		version = *winner.Load()
		b.onlyTimer(k, version)
	}
}

func timerContext(b *bed) {
	k := key("context")
	version := b.setTimer(k, store.Owner{}, long)
	ctx, cancel := context.WithCancel(b.Context())
	cancel()
	if _, err := b.timers().SetTimer(ctx, k, version, newOwner(), 0); err == nil {
		b.Errorf("SetTimer succeeds")
	}
	if err := b.timers().DropTimer(ctx, k, version); err == nil {
		b.Errorf("DropTimer succeeds")
	}
	if _, _, err := b.timers().DueTimers(ctx, k.Operation, 2*long, 1); err == nil {
		b.Errorf("DueTimers succeeds")
	}
	b.onlyTimer(k, version)
}
