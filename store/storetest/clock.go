package storetest

import (
	"testing"
	"time"

	"github.com/semel-go/semel/store"
)

var clockChecks = []check{
	{"Now is the clock of the record's times", clockAgrees},
	{"each answer has Now, which does not go back", clockAnswers},
	{"times are UTC and truncated to microseconds", clockForm},
	{"two handles have one clock", clockHandles},
	{"moves as Harness.Advance says", clockAdvance},
}

// slack is how far apart two readings of the store's clock in one step may be.
const slack = time.Millisecond

// stands reports whether the store's clock stands still when nobody moves it.
func stands(t testing.TB, st store.Store) bool {
	t.Helper()
	read := func() time.Time {
		f, err := st.Claim(t.Context(), proposal(store.Key{Operation: "storetest clock", Value: "probe"}, store.Started))
		if err != nil {
			t.Fatalf("Claim: %v", err)
		}
		return f.Now
	}
	first, start := read(), time.Now()
	for time.Since(start) < slack {
		if read() != first {
			return false
		}
	}
	return read().Equal(first)
}

// near fails unless two readings are as close as the time between them, the
// declared skew and the store's own slack allow.
func (b *bed) near(what string, got, want time.Time, start time.Time) {
	b.Helper()
	if d := got.Sub(want).Abs(); d > b.h.Skew+slack+time.Since(start) {
		b.Errorf("%s is %v, want %v: they are %v apart", what, got, want, d)
	}
}

func clockAgrees(b *bed) {
	start := time.Now()
	f := b.claim(proposal(key("claim"), store.Processing))
	b.near("Now of a claim, by Until,", f.Now, f.Record.Until.Add(-long), start)
	b.near("Now of a claim, by Updated,", f.Now, f.Record.Updated, start)

	start = time.Now()
	f = b.swap(f.Record.Seen(), proposal(key("claim"), store.Completed))
	b.near("Now of a swap, by Expires,", f.Now, f.Record.Expires.Add(-long), start)

	// Later reads give the time of the read, not the time of the change.
	if b.h.Advance != nil {
		b.h.Advance(b.TB, b.st, 10*time.Minute)
		r := b.get(key("claim"))
		b.near("Now of a read after 10m", r.Now, f.Now.Add(10*time.Minute), start)
		lost, err := b.st.Claim(b.Context(), proposal(key("claim"), store.Processing))
		if err != nil {
			b.Fatalf("Claim: %v", err)
		}
		b.near("Now of a lost claim after 10m", lost.Now, f.Now.Add(10*time.Minute), start)
	}
}

func clockAnswers(b *bed) {
	var last time.Time
	seen := func(what string, now time.Time) {
		b.Helper()
		if now.IsZero() || now.Before(last.Add(-b.h.Skew)) {
			b.Errorf("Now of %s is %v, after %v", what, now, last)
		}
		last = now
	}
	p := proposal(key("answers"), store.Processing)
	f := b.claim(p)
	seen("a won claim", f.Now)
	old := f.Record.Seen()
	if f, err := b.st.Claim(b.Context(), proposal(p.Key, store.Processing)); err == nil {
		seen("a lost claim", f.Now)
	}
	seen("a resent claim", b.claim(p).Now)
	seen("a read", b.get(p.Key).Now)
	seen("a won swap", b.swap(old, proposal(p.Key, store.Processing)).Now)
	if f, err := b.st.Swap(b.Context(), old, proposal(p.Key, store.Processing)); err == nil {
		seen("a lost swap", f.Now)
	}
	seen("a sweep", b.sweepAll(10).Now)
}

func clockForm(b *bed) {
	form := func(what string, t time.Time) {
		b.Helper()
		if t != store.Time(store.Micros(t)) {
			b.Errorf("%s is %#v, want it as store.Time gives it: UTC, in microseconds", what, t)
		}
	}
	found := func(what string, f *store.Found) {
		b.Helper()
		form("Now of "+what, f.Now)
		r := &f.Record
		form("Until of "+what, r.Until)
		form("Created of "+what, r.Created)
		form("Updated of "+what, r.Updated)
		form("Completed of "+what, r.Completed)
		form("Expires of "+what, r.Expires)
	}
	for _, s := range states {
		p := proposal(key(s.String()), store.Processing)
		p.Lease = time.Minute + 1999*time.Nanosecond // not a whole number of microseconds
		f := b.claim(p)
		found("a claim", f)
		p = proposal(p.Key, s)
		p.Lease, p.Keep = long+1999*time.Nanosecond, long+1999*time.Nanosecond
		found("a swap to "+s.String(), b.swap(f.Record.Seen(), p))
		found("a read of "+s.String(), b.get(p.Key))
	}
	form("Now of a sweep", b.sweepAll(10).Now)
}

func clockHandles(b *bed) {
	f := b.claim(proposal(key("handles"), store.Processing))
	start := time.Now()
	one := b.get(f.Record.Key)
	two, err := b.handle(1).Get(b.Context(), f.Record.Key)
	if err != nil {
		b.Fatalf("Get by the second handle: %v", err)
	}
	b.near("Now of the second handle", two.Now, one.Now, start)
}

func clockAdvance(b *bed) {
	if b.h.Advance == nil {
		b.Skip("the harness has no Advance")
	}
	k := b.claim(proposal(key("advance"), store.Processing)).Record.Key
	for _, d := range []time.Duration{time.Microsecond, time.Second, 48 * time.Hour, -time.Hour} {
		start := time.Now()
		before := b.get(k).Now
		b.h.Advance(b.TB, b.st, d)
		b.near("Now after Advance by "+d.String(), b.get(k).Now, before.Add(d), start)
	}
}
