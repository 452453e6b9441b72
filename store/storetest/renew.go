package storetest

import (
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel/store"
)

var renewChecks = []check{
	{"sets Until to now plus d and changes nothing else", renewMoves},
	{"has a result for each lease", renewMixture},
	{"never creates a record", renewAbsent},
	{"renews Processing only", renewStates},
	{"a lapsed claim that nobody took over is renewed", renewLapsed},
	{"accepts no lease, many leases, and one lease twice", renewSizes},
	{"a swap decided before a renewal loses", renewCancelsSwap},
	{"one of a concurrent renewal and swap wins", renewRacesSwap},
}

// renew renews the leases and fails if there is not one answer for each.
func (b *bed) renew(d time.Duration, held ...store.Lease) []error {
	b.Helper()
	errs, err := b.st.Renew(b.Context(), held, d)
	if err != nil || len(errs) != len(held) {
		b.Fatalf("Renew of %d leases: %d results, error %v", len(held), len(errs), err)
	}
	return errs
}

func renewMoves(b *bed) {
	was := b.put(key("moves"), store.Processing, long)
	for _, d := range []time.Duration{2 * long, time.Minute, long} { // on, back, on
		if b.h.Advance != nil {
			b.h.Advance(b.TB, b.st, time.Second)
		}
		if errs := b.renew(d, was.Lease()); errs[0] != nil {
			b.Fatalf("Renew of a live lease: %v", errs[0])
		}
		f := b.get(was.Key)
		want := was
		want.Updated, want.Until = f.Record.Updated, f.Record.Updated.Add(d)
		if diff := diff(want, f.Record); diff != "" {
			b.Errorf("renewed by %v: %s", d, diff)
		}
		if f.Record.Updated.Before(was.Updated) || f.Record.Updated.After(f.Now.Add(b.h.Skew)) {
			b.Errorf("renewed by %v: Updated is %v, want the time of the renewal, between %v and %v", d, f.Record.Updated, was.Updated, f.Now)
		}
		was = f.Record
	}
}

func renewMixture(b *bed) {
	var held []store.Lease
	var good []bool
	var was []store.Record
	add := func(r store.Record, l store.Lease, ok bool) {
		held, good, was = append(held, l), append(good, ok), append(was, r)
	}
	for i := range 4 {
		r := b.put(key(fmt.Sprint("good", i)), store.Processing, long)
		add(r, r.Lease(), true)

		r = b.put(key(fmt.Sprint("owner", i)), store.Processing, long)
		l := r.Lease()
		l.Owner[i] ^= 1
		add(r, l, false)

		r = b.put(key(fmt.Sprint("fence", i)), store.Processing, long)
		l = r.Lease()
		l.Fence += uint64(2*(i%2)) - 1
		add(r, l, false)

		r = b.put(key(fmt.Sprint("settled", i)), finals[i], long)
		add(r, r.Lease(), false)

		add(store.Record{}, store.Lease{Key: key(fmt.Sprint("absent", i)), Owner: newOwner(), Fence: 1}, false)
	}
	for i, err := range b.renew(2*long, held...) {
		switch {
		case good[i] && err != nil:
			b.Errorf("lease %d of a mixture is good and gives %v", i, err)
		case good[i]:
			if r := b.get(held[i].Key).Record; r.Until.Sub(r.Updated) != 2*long {
				b.Errorf("lease %d of a mixture was not renewed", i)
			}
		case !errors.Is(err, store.ErrLeaseLost):
			b.Errorf("lease %d of a mixture, %q, is lost and gives %v", i, held[i].Key.Value, err)
		case was[i].State != 0:
			b.unchanged(was[i])
		}
	}
}

func renewAbsent(b *bed) {
	k := key("absent")
	if errs := b.renew(long, store.Lease{Key: k, Owner: newOwner(), Fence: 7}); !errors.Is(errs[0], store.ErrLeaseLost) {
		b.Errorf("Renew of an absent record: %v, want ErrLeaseLost", errs[0])
	}
	b.absent(k)

	gone := b.put(key("swept"), store.Completed, b.short())
	b.outlive(gone.Key)
	b.sweepAll(100)
	if errs := b.renew(long, gone.Lease()); !errors.Is(errs[0], store.ErrLeaseLost) {
		b.Errorf("Renew of a swept record: %v, want ErrLeaseLost", errs[0])
	}
	b.absent(gone.Key)
}

func renewStates(b *bed) {
	for _, s := range states {
		if s == store.Processing {
			continue
		}
		was := b.put(key(s.String()), s, long)
		if errs := b.renew(2*long, was.Lease()); !errors.Is(errs[0], store.ErrLeaseLost) {
			b.Errorf("Renew of a %v record: %v, want ErrLeaseLost", s, errs[0])
		}
		b.unchanged(was)
	}
}

func renewLapsed(b *bed) {
	was := b.put(key("lapsed"), store.Processing, b.short())
	b.outlive(was.Key)
	if errs := b.renew(long, was.Lease()); errs[0] != nil {
		b.Fatalf("Renew of a lapsed claim that nobody took: %v", errs[0])
	}
	if f := b.get(was.Key); f.Record.Lapsed(f.Now) {
		b.Errorf("a renewed claim is still lapsed: Until is %v at %v", f.Record.Until, f.Now)
	}
}

func renewSizes(b *bed) {
	b.renew(long)
	const n = 250 // more than the batches of any database that limits them
	held := make([]store.Lease, 0, n+2)
	for i := range n {
		r := b.put(key(fmt.Sprint("size", i)), store.Processing, time.Minute)
		held = append(held, r.Lease())
	}
	held = append(held, held[0], held[n-1])
	for i, err := range b.renew(long, held...) {
		if err != nil {
			b.Errorf("lease %d of %d: %v", i, len(held), err)
		}
	}
	for i := range n {
		if r := b.get(held[i].Key).Record; r.Until.Sub(r.Updated) != long {
			b.Errorf("lease %d of %d was not renewed", i, len(held))
		}
	}
}

func renewCancelsSwap(b *bed) {
	lapsed := b.put(key("cancels"), store.Processing, b.short())
	decided := b.outlive(lapsed.Key).Record.Seen()
	if errs := b.renew(long, lapsed.Lease()); errs[0] != nil {
		b.Fatalf("Renew: %v", errs[0])
	}
	renewed := b.get(lapsed.Key).Record
	f, err := b.st.Swap(b.Context(), decided, proposal(lapsed.Key, store.Processing))
	if err != nil || f.Won {
		b.Errorf("a swap decided before a renewal: won %v, error %v; want not won", f.Won, err)
	}
	b.unchanged(renewed)
}

func renewRacesSwap(b *bed) {
	b.handle(1)
	for round := range 30 {
		old := b.put(key(fmt.Sprint("race", round)), store.Processing, time.Minute)
		if b.h.Advance != nil {
			// A clock that stands still gives a renewal by the same time the
			// same Until: then there is nothing for the swap to see.
			b.h.Advance(b.TB, b.st, time.Second)
		}
		var renewed error
		var swapped store.Found
		pack(2, func(i int) {
			if i == 0 {
				errs, err := b.handle(round).Renew(b.Context(), []store.Lease{old.Lease()}, long)
				if err != nil || len(errs) != 1 {
					b.Errorf("Renew: %d results, error %v", len(errs), err)
					return
				}
				renewed = errs[0]
				return
			}
			var err error
			if swapped, err = b.handle(round+1).Swap(b.Context(), old.Seen(), proposal(old.Key, store.Processing)); err != nil {
				b.Errorf("Swap: %v", err)
			}
		})
		if (renewed == nil) == swapped.Won {
			b.Fatalf("a renewal and a swap at once: renewal %v, swap won %v; want one of them", renewed, swapped.Won)
		}
	}
}
