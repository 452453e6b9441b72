package storetest

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel/store"
)

var swapChecks = []check{
	{"replaces the record that was seen, from each state to each", swapReplaces},
	{"fails if one field of Seen is wrong", swapCompares},
	{"the same swap sent again is won", swapResent},
	{"the same swap sent after a later change is not won", swapMovedOn},
	{"an absent record is ErrNotFound and stays absent", swapAbsent},
	{"one of many concurrent calls wins", swapPack},
	{"one swap sent many times concurrently is won each time", swapPackOfResends},
	{"Restart begins a new record", swapRestart},
	{"does not depend on the clock", swapClockless},
}

func swapReplaces(b *bed) {
	for _, from := range states {
		for _, to := range states {
			old := b.put(key(from.String()+" to "+to.String()), from, long)
			p := proposal(old.Key, to)
			p.Lease, p.Keep = 10*time.Minute, 20*time.Minute
			b.tick()
			r := b.swap(old.Seen(), p).Record
			if d := diff(p.Replace(&old, r.Updated), r); d != "" {
				b.Errorf("swap from %v to %v: %s", from, to, d)
			}
			b.unchanged(r)
		}
	}
}

// wrongs are what was seen with one field wrong in each.
func wrongs(s store.Seen) map[string]store.Seen {
	m := map[string]store.Seen{}
	add := func(name string, change func(*store.Seen)) {
		w := s
		if change(&w); w != s {
			m[name] = w
		}
	}
	for _, other := range states {
		add("state "+other.String(), func(w *store.Seen) { w.State = other })
	}
	for i := range s.Owner {
		add(fmt.Sprintf("owner byte %d", i), func(w *store.Seen) { w.Owner[i] ^= 1 })
	}
	add("zero owner", func(w *store.Seen) { w.Owner = store.Owner{} })
	add("fence+1", func(w *store.Seen) { w.Fence++ })
	add("fence-1", func(w *store.Seen) { w.Fence-- })
	add("zero fence", func(w *store.Seen) { w.Fence = 0 })
	for name, t := range map[string]func(*store.Seen) *time.Time{
		"until":   func(w *store.Seen) *time.Time { return &w.Until },
		"expires": func(w *store.Seen) *time.Time { return &w.Expires },
	} {
		add("zero "+name, func(w *store.Seen) { *t(w) = time.Time{} })
		add("later "+name, func(w *store.Seen) { *t(w) = atLeastEpoch(*t(w)).Add(time.Microsecond) })
		add("earlier "+name, func(w *store.Seen) { *t(w) = atLeastEpoch(*t(w)).Add(-time.Microsecond) })
	}
	return m
}

// atLeastEpoch keeps a changed zero time within what a store can hold.
func atLeastEpoch(t time.Time) time.Time {
	if t.IsZero() {
		return store.Time(1e15)
	}
	return t
}

func swapCompares(b *bed) {
	for _, s := range states {
		was := b.put(key(s.String()), s, long)
		for name, seen := range wrongs(was.Seen()) {
			f, err := b.st.Swap(b.Context(), seen, proposal(was.Key, store.Processing))
			if err != nil || f.Won {
				b.Fatalf("swap of a %v record with wrong %s: won %v, error %v; want the record as it is", s, name, f.Won, err)
			}
			if d := diff(was, f.Record); d != "" {
				b.Errorf("swap of a %v record with wrong %s returned another record: %s", s, name, d)
			}
		}
		b.unchanged(was)
	}
}

func swapResent(b *bed) {
	for _, s := range states {
		old := b.put(key(s.String()), store.Processing, long)
		p := proposal(old.Key, s)
		first := b.swap(old.Seen(), p).Record
		for i := range 4 {
			f, err := b.handle(i).Swap(b.Context(), old.Seen(), p)
			if err != nil || !f.Won {
				b.Fatalf("the same swap to %v again: won %v, error %v; want it won", s, f.Won, err)
			}
			if d := diff(first, f.Record); d != "" {
				b.Errorf("the same swap to %v again gave another record: %s", s, d)
			}
		}
		b.unchanged(first)
	}
}

func swapMovedOn(b *bed) {
	old := b.put(key("moved"), store.Processing, long)
	p := proposal(old.Key, store.Processing)
	mine := b.swap(old.Seen(), p).Record
	if errs, err := b.st.Renew(b.Context(), []store.Lease{mine.Lease()}, 2*long); err != nil || errs[0] != nil {
		b.Fatalf("Renew: %v, %v", errs, err)
	}
	if f, err := b.st.Swap(b.Context(), old.Seen(), p); err != nil || !f.Won {
		b.Errorf("a swap sent again after its renewal: won %v, error %v; want it won", f.Won, err)
	}
	done := b.settle(mine.Lease(), settlement(store.Completed, long))
	if f, err := b.st.Swap(b.Context(), old.Seen(), p); err != nil || f.Won {
		b.Errorf("a swap sent again after its settlement: won %v, error %v; want not won", f.Won, err)
	}
	b.unchanged(done)

	next := b.swap(done.Seen(), proposal(old.Key, store.Processing)).Record
	if f, err := b.st.Swap(b.Context(), old.Seen(), p); err != nil || f.Won {
		b.Errorf("a swap sent again after another's: won %v, error %v; want not won", f.Won, err)
	}
	b.unchanged(next)
}

func swapAbsent(b *bed) {
	k := key("absent")
	for _, restart := range []bool{false, true} {
		p := proposal(k, store.Processing)
		p.Restart = restart
		old := p.Insert(time.Now(), 0)
		if f, err := b.st.Swap(b.Context(), old.Seen(), p); !errors.Is(err, store.ErrNotFound) || f.Won {
			b.Errorf("swap of an absent record: won %v, error %v; want ErrNotFound", f.Won, err)
		}
		if _, err := b.st.Swap(b.Context(), store.Seen{Key: k}, p); !errors.Is(err, store.ErrNotFound) {
			b.Errorf("swap of nothing: error %v, want ErrNotFound", err)
		}
		b.absent(k)
	}
}

func swapPack(b *bed) {
	const goroutines = 16
	b.handle(1)
	for round, s := range states {
		old := b.put(key(fmt.Sprint("pack", round)), s, long)
		var won atomic.Int32
		founds := make([]store.Found, goroutines)
		pack(goroutines, func(i int) {
			f, err := b.handle(i).Swap(b.Context(), old.Seen(), proposal(old.Key, store.Processing))
			if err != nil {
				b.Errorf("swap %d of a pack: %v", i, err)
			}
			if f.Won {
				won.Add(1)
			}
			founds[i] = f
		})
		if won.Load() != 1 {
			b.Fatalf("%d of a pack of %d swaps of a %v record won, want 1", won.Load(), goroutines, s)
		}
		now := b.get(old.Key).Record
		for i, f := range founds {
			if d := diff(now, f.Record); d != "" {
				b.Errorf("swap %d of a pack (won %v) saw another record than the winner's: %s", i, f.Won, d)
			}
		}
	}
}

func swapPackOfResends(b *bed) {
	b.handle(1)
	for round, s := range states {
		old := b.put(key(fmt.Sprint("resend", round)), s, long)
		p := proposal(old.Key, store.Processing)
		pack(8, func(i int) {
			if f, err := b.handle(i).Swap(b.Context(), old.Seen(), p); err != nil || !f.Won {
				b.Errorf("sending %d of one swap: won %v, error %v; want it won", i, f.Won, err)
			}
		})
		if r := b.get(old.Key).Record; r.Fence != p.Replace(&old, r.Updated).Fence {
			b.Errorf("one swap sent many times moved the fence from %d to %d", old.Fence, r.Fence)
		}
	}
}

func swapRestart(b *bed) {
	for _, s := range []store.State{store.Released, store.Completed, store.Failed} {
		b.put(key(s.String()), s, b.short())
		old := b.outlive(key(s.String())).Record
		p := proposal(old.Key, store.Processing)
		p.Restart = true
		r := b.swap(old.Seen(), p).Record
		if !r.Created.After(old.Created) || r.Created != r.Updated {
			b.Errorf("restart of an expired %v record made at %v: Created is %v, want the time of the swap, %v", s, old.Created, r.Created, r.Updated)
		}
		p = proposal(old.Key, store.Processing)
		b.tick()
		if kept := b.swap(r.Seen(), p).Record; kept.Created != r.Created {
			b.Errorf("a swap that does not restart changed Created from %v to %v", r.Created, kept.Created)
		}
	}
}

func swapClockless(b *bed) {
	// Live, lapsed, expired: the caller has judged, the store compares.
	for _, s := range states {
		live := b.put(key("live "+s.String()), s, long)
		b.swap(live.Seen(), proposal(live.Key, store.Processing))
		if s == store.Unknown {
			continue
		}
		b.put(key("over "+s.String()), s, b.short())
		over := b.outlive(key("over " + s.String())).Record
		b.swap(over.Seen(), proposal(over.Key, store.Processing))
	}
}
