package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/semel-go/semel/store"
)

var sweepChecks = []check{
	{"deletes expired records only", sweepDeletes},
	{"returns lapsed records unchanged", sweepLapsed},
	{"keeps the limit, and ends in a store with more records", sweepLimit},
	{"deletes expired records among many lapsed ones", sweepBoth},
	{"returns every lapsed record in the end", sweepLiveness},
	{"an empty store takes one step", sweepEmpty},
	{"two concurrent sweeps delete each record once", sweepTwice},
	{"never deletes a record that a concurrent restart made", sweepRacesRestart},
}

// maxSteps is how many sweeps a pass over a small store may take: enough for a
// store of many parts that looks at one of them each time.
const maxSteps = 5000

// pass sweeps from the start to the end.
func pass(ctx context.Context, st store.Store, limit int, each func(store.SweepResult)) error {
	var from store.Cursor
	for range maxSteps {
		res, err := st.Sweep(ctx, from, limit)
		if err != nil {
			return fmt.Errorf("Sweep(%q, %d): %w", from, limit, err)
		}
		if res.Deleted < 0 || res.Deleted+len(res.Lapsed) > limit {
			return fmt.Errorf("Sweep(%q, %d) deleted %d and handed back %d", from, limit, res.Deleted, len(res.Lapsed))
		}
		for _, r := range res.Lapsed {
			if !r.Lapsed(res.Now) {
				return fmt.Errorf("Sweep handed back a %v record of %q that has not lapsed: Until is %v at %v", r.State, r.Key.Value, r.Until, res.Now)
			}
		}
		each(res)
		if from = res.Next; from == "" {
			return nil
		}
	}
	return fmt.Errorf("a pass of sweeps does not end: %d steps of limit %d, cursor %q", maxSteps, limit, from)
}

// sweepAll makes one pass and returns what its steps did together. Lapsed
// holds each record once.
func (b *bed) sweepAll(limit int) store.SweepResult {
	b.Helper()
	var all store.SweepResult
	err := pass(b.Context(), b.st, limit, func(res store.SweepResult) {
		for _, r := range res.Lapsed {
			if !holds(all.Lapsed, r.Key) {
				all.Lapsed = append(all.Lapsed, r)
			}
		}
		all.Deleted, all.Now = all.Deleted+res.Deleted, res.Now
	})
	if err != nil {
		b.Fatal(err)
	}
	return all
}

func sweepDeletes(b *bed) {
	kept, over := map[store.Key]store.Record{}, []store.Key{}
	for _, s := range states {
		for i := range 3 {
			r := b.put(key(fmt.Sprint("live ", s, i)), s, long)
			kept[r.Key] = r
			r = b.put(key(fmt.Sprint("over ", s, i)), s, b.short())
			if s == store.Released || s.Terminal() {
				over = append(over, r.Key)
			} else {
				kept[r.Key] = r
			}
			if s != store.Unknown {
				b.outlive(r.Key)
			}
		}
	}
	if all := b.sweepAll(1000); all.Deleted != len(over) {
		b.Errorf("a pass says that it deleted %d records, want %d", all.Deleted, len(over))
	}
	for _, k := range over {
		b.absent(k)
	}
	for _, r := range kept {
		b.unchanged(r)
	}
	if all := b.sweepAll(1000); all.Deleted != 0 {
		b.Errorf("a second pass deleted %d records", all.Deleted)
	}
}

func sweepLapsed(b *bed) {
	want := map[store.Key]store.Record{}
	for _, s := range states {
		live := b.put(key("live "+s.String()), s, long)
		b.handedBack(want, live.Key, false)
		if s == store.Unknown {
			continue
		}
		r := b.put(key("over "+s.String()), s, b.short())
		b.outlive(r.Key)
		if s == store.Started || s == store.Processing {
			want[r.Key] = r
		}
	}
	for range 2 { // it changes nothing, so a second pass sees the same
		all := b.sweepAll(1000)
		for _, r := range all.Lapsed {
			was, ok := want[r.Key]
			if !ok {
				b.Errorf("a pass handed back %q, a %v record that has not lapsed", r.Key.Value, r.State)
				continue
			}
			if d := diff(was, r); d != "" {
				b.Errorf("a pass handed back %q changed: %s", r.Key.Value, d)
			}
			b.unchanged(was)
		}
		if len(all.Lapsed) != len(want) {
			b.Errorf("a pass handed back %d records, want %d", len(all.Lapsed), len(want))
		}
	}
}

// handedBack fails if a pass over the store as it is hands k back, or not.
func (b *bed) handedBack(others map[store.Key]store.Record, k store.Key, want bool) {
	b.Helper()
	got := slices.ContainsFunc(b.sweepAll(1000).Lapsed, func(r store.Record) bool { return r.Key == k })
	if _, other := others[k]; got != want && !other {
		b.Errorf("a pass handed back %q: %v, want %v", k.Value, got, want)
	}
}

func sweepLimit(b *bed) {
	for limit, n := range map[int]int{1: 12, 7: 40, 50: 120} {
		for i := range n {
			b.put(key(fmt.Sprint("limit", limit, i)), []store.State{store.Released, store.Completed, store.Failed}[i%3], b.short())
		}
		live := b.put(key(fmt.Sprint("live", limit)), store.Completed, long)
		for i := range n {
			b.outlive(key(fmt.Sprint("limit", limit, i)))
		}
		if all := b.sweepAll(limit); all.Deleted != n {
			b.Errorf("a pass with limit %d deleted %d of %d", limit, all.Deleted, n)
		}
		for i := range n {
			b.absent(key(fmt.Sprint("limit", limit, i)))
		}
		b.unchanged(live)
	}
}

func sweepBoth(b *bed) {
	const n = 60
	for i := range n {
		b.put(key(fmt.Sprint("lapsed", i)), store.Processing, b.short())
		b.put(key(fmt.Sprint("over", i)), store.Completed, b.short())
	}
	for i := range n {
		b.outlive(key(fmt.Sprint("lapsed", i)))
		b.outlive(key(fmt.Sprint("over", i)))
	}
	if all := b.sweepAll(5); all.Deleted != n { // nobody judges the lapsed ones
		b.Errorf("a pass over %d expired and as many lapsed records deleted %d", n, all.Deleted)
	}
	for i := range n {
		b.absent(key(fmt.Sprint("over", i)))
		b.get(key(fmt.Sprint("lapsed", i)))
	}
}

func sweepLiveness(b *bed) {
	const n = 60
	left := map[store.Key]bool{}
	for i := range n {
		r := b.put(key(fmt.Sprint("lapsed", i)), []store.State{store.Started, store.Processing}[i%2], b.short())
		left[r.Key] = true
	}
	for k := range left {
		b.outlive(k)
	}
	for pass := 0; len(left) > 0; pass++ {
		if pass > n {
			b.Fatalf("%d passes have not handed back %d of %d lapsed records", pass, len(left), n)
		}
		for _, r := range b.sweepAll(7).Lapsed {
			b.swap(r.Seen(), proposal(r.Key, store.Unknown)) // judged
			delete(left, r.Key)
		}
	}
	if all := b.sweepAll(7); len(all.Lapsed) != 0 {
		b.Errorf("a pass handed back %d records that were judged", len(all.Lapsed))
	}
}

func sweepEmpty(b *bed) {
	res, err := b.st.Sweep(b.Context(), "", 10)
	if err != nil || res.Deleted != 0 || len(res.Lapsed) != 0 || res.Next != "" || res.Now.IsZero() {
		b.Errorf("Sweep of an empty store: %+v, error %v; want nothing, the clock, and no next cursor", res, err)
	}
}

func sweepTwice(b *bed) {
	const n = 80
	b.handle(1)
	for i := range n {
		b.put(key(fmt.Sprint("twice", i)), store.Completed, b.short())
	}
	for i := range n {
		b.outlive(key(fmt.Sprint("twice", i)))
	}
	var deleted atomic.Int64
	pack(4, func(i int) {
		err := pass(b.Context(), b.handle(i), 10, func(res store.SweepResult) { deleted.Add(int64(res.Deleted)) })
		if err != nil {
			b.Errorf("beside another pass: %v", err)
		}
	})
	b.sweepAll(10) // for records that one pass left to another one, which failed
	if deleted.Load() > n {
		b.Errorf("passes at once say that they deleted %d of %d records", deleted.Load(), n)
	}
	for i := range n {
		b.absent(key(fmt.Sprint("twice", i)))
	}
}

func sweepRacesRestart(b *bed) {
	const n = 40
	b.handle(1)
	for round := range 5 {
		var old [n]store.Record
		for i := range old {
			old[i] = b.put(key(fmt.Sprint("race", round, "-", i)), store.Completed, b.short())
		}
		for i := range old {
			b.outlive(old[i].Key)
		}
		var won [n]store.Found
		pack(3, func(g int) {
			if g == 0 {
				if err := pass(b.Context(), b.handle(0), 4, func(store.SweepResult) {}); err != nil {
					b.Errorf("beside a restart: %v", err)
				}
				return
			}
			for i := range old {
				if i = (i*7 + round) % n; i%2 != g-1 { // each goroutine half, in no order that a sweep has
					continue
				}
				p := proposal(old[i].Key, store.Processing)
				p.Restart = true
				f, err := b.handle(1).Swap(b.Context(), old[i].Seen(), p)
				if err != nil && !errors.Is(err, store.ErrNotFound) {
					b.Errorf("Swap beside a sweep: %v", err)
				}
				won[i] = f
			}
		})
		for i := range old {
			if won[i].Won {
				b.unchanged(won[i].Record)
			} else {
				b.absent(old[i].Key)
			}
		}
	}
}
