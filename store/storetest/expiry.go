package storetest

import (
	"time"

	"github.com/semel-go/semel/store"
)

var expiryChecks = []check{
	{"retention counts from completion", expiryFromCompletion},
	{"a released record is kept longer than its wait", expiryReleased},
	{"records without an end have no Expires", expiryNone},
	{"an expired record can be read", expiryRead},
	{"a record is expired at Expires itself", expiryBoundary},
	{"a lease has lapsed at Until itself", expiryLeaseBoundary},
}

func expiryFromCompletion(b *bed) {
	for _, s := range []store.State{store.Completed, store.Failed} {
		held := b.put(key(s.String()), store.Processing, long)
		if b.h.Advance != nil {
			b.h.Advance(b.TB, b.st, 30*time.Minute)
		}
		before := b.get(held.Key).Now
		r := b.settle(held.Lease(), settlement(s, 10*time.Minute))
		if r.Completed != r.Updated || r.Completed.Before(before.Add(-b.h.Skew)) {
			b.Errorf("settled as %v after %v: Completed is %v, Updated is %v; want both the time of the settlement", s, before, r.Completed, r.Updated)
		}
		if got := r.Expires.Sub(r.Completed); got != 10*time.Minute {
			b.Errorf("settled as %v to be kept for 10m: expires %v after completion", s, got)
		}
	}
}

func expiryReleased(b *bed) {
	for name, c := range map[string]struct{ wait, keep, until, expires time.Duration }{
		"wait is longer": {20 * time.Minute, 10 * time.Minute, 20 * time.Minute, 20 * time.Minute},
		"keep is longer": {10 * time.Minute, 20 * time.Minute, 10 * time.Minute, 20 * time.Minute},
		"no wait":        {0, 10 * time.Minute, 0, 10 * time.Minute},
		"neither":        {0, 0, 0, 0},
	} {
		held := b.put(key(name), store.Processing, long)
		r := b.settle(held.Lease(), store.Settlement{State: store.Released, Wait: c.wait, Keep: c.keep})
		if u, e := r.Until.Sub(r.Updated), r.Expires.Sub(r.Updated); u != c.until || e != c.expires {
			b.Errorf("released with wait %v and keep %v: Until after %v and Expires after %v, want %v and %v", c.wait, c.keep, u, e, c.until, c.expires)
		}
	}
}

func expiryNone(b *bed) {
	for _, s := range []store.State{store.Started, store.Processing, store.Unknown} {
		r := b.put(key(s.String()), s, long)
		if !r.Expires.IsZero() || !r.Completed.IsZero() {
			b.Errorf("a %v record has Expires %v and Completed %v, want none", s, r.Expires, r.Completed)
		}
		done := b.put(key("from "+s.String()), store.Completed, long)
		if again := b.swap(done.Seen(), proposal(done.Key, s)).Record; !again.Expires.IsZero() || !again.Completed.IsZero() {
			b.Errorf("a completed record swapped to %v has Expires %v and Completed %v, want none", s, again.Expires, again.Completed)
		}
	}
}

func expiryRead(b *bed) {
	for _, s := range []store.State{store.Released, store.Completed, store.Failed} {
		was := b.put(key(s.String()), s, b.short())
		f := b.outlive(was.Key)
		if d := diff(was, f.Record); d != "" {
			b.Errorf("an expired %v record is read as another: %s", s, d)
		}
		if !f.Record.Expired(f.Now) {
			b.Errorf("a %v record that expires at %v is not over at %v", s, f.Record.Expires, f.Now)
		}
		if d := store.Decide(&f.Record, &store.Call{}, f.Now); d.Action != store.Execute || !d.Restart {
			b.Errorf("Decide on an expired %v record: %v, restart %v; want to execute anew", s, d.Action, d.Restart)
		}
	}
}

// frozen skips the check unless the store's clock stands still, so that an
// instant can be met.
func (b *bed) frozen() {
	b.Helper()
	if b.h.Advance == nil || b.h.Skew > 0 {
		b.Skip("the harness has no clock that can be set to the microsecond")
	}
	if !stands(b.TB, b.st) {
		b.Skip("the clock of the harness runs between two calls of Advance")
	}
}

func expiryBoundary(b *bed) {
	b.frozen()
	for _, s := range []store.State{store.Released, store.Completed, store.Failed} {
		r := b.put(key(s.String()), s, time.Minute)
		b.h.Advance(b.TB, b.st, time.Minute-time.Microsecond)
		if f := b.get(r.Key); f.Now != r.Expires.Add(-time.Microsecond) {
			b.Fatalf("Advance to a microsecond before %v came to %v", r.Expires, f.Now)
		}
		if all := b.sweepAll(10); all.Deleted != 0 {
			b.Errorf("a %v record was deleted a microsecond before it expires", s)
		}
		b.unchanged(r)
		b.h.Advance(b.TB, b.st, time.Microsecond)
		b.unchanged(r)
		if all := b.sweepAll(10); all.Deleted != 1 {
			b.Errorf("a %v record was not deleted at the instant that it expires", s)
		}
		b.absent(r.Key)
	}
}

func expiryLeaseBoundary(b *bed) {
	b.frozen()
	for _, s := range []store.State{store.Started, store.Processing} {
		r := b.put(key(s.String()), s, time.Minute)
		b.h.Advance(b.TB, b.st, time.Minute-time.Microsecond)
		if all := b.sweepAll(10); len(all.Lapsed) != 0 {
			b.Errorf("a %v record was handed back a microsecond before its time", s)
		}
		b.h.Advance(b.TB, b.st, time.Microsecond)
		if all := b.sweepAll(10); len(all.Lapsed) != 1 {
			b.Errorf("a %v record was not handed back at the instant that its time is up", s)
		}
		b.swap(r.Seen(), proposal(r.Key, store.Unknown)) // out of the way
	}
}
