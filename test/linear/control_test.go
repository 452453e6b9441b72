package linear

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/test/internal/figure"
)

// flaw is one way to break a store.
type flaw string

const (
	sound          flaw = "nothing is broken"
	claimUnlocked  flaw = "a claim reads, and then writes without looking again"
	swapUnlocked   flaw = "a swap reads, and then writes without looking again"
	swapWithoutEnd flaw = "a swap does not compare the lease's end"
	settleAnyone   flaw = "a settlement compares neither owner nor fence"
	settleUpserts  flaw = "a settlement makes a record"
	renewAnyone    flaw = "a renewal compares neither owner nor fence"
	staleReads     flaw = "a read comes from a replica"
	lostAck        flaw = "a settlement is acknowledged and lost"
	sweepEarly     flaw = "a sweep removes what has not expired"
	sweepLive      flaw = "a sweep hands back what has not lapsed"
	fenceBack      flaw = "a swept fence is forgotten"
	sameFence      flaw = "a fence does not grow"
)

var flaws = []flaw{
	claimUnlocked, swapUnlocked, swapWithoutEnd, settleAnyone, settleUpserts, renewAnyone, staleReads, lostAck, sweepEarly, sweepLive, fenceBack, sameFence,
}

// broken is a store with a flaw.
type broken struct {
	flaw flaw

	mu  sync.Mutex
	at  map[store.Key]store.Record
	old map[store.Key]store.Record
	n   int

	// The highest fence that was swept. Without it a key that got several fences within a
	// microsecond, and was swept, could get a lower one.
	swept uint64

	// wrote is told of each claim and swap that writes, and whether it begins a new life of
	// the key. Nil: nobody is. It has the lock.
	wrote func(k store.Key, newLife bool)
}

func newBroken(f flaw) *broken {
	return &broken{flaw: f, at: map[store.Key]store.Record{}, old: map[store.Key]store.Record{}}
}

func clock() time.Time { return store.Time(store.Micros(time.Now())) }

// proposed puts the record of a claim or swap.
func (b *broken) proposed(r store.Record, newLife bool) {
	b.put(r)
	if b.wrote != nil {
		b.wrote(r.Key, newLife)
	}
}

func (b *broken) put(r store.Record) {
	b.old[r.Key] = b.at[r.Key]
	b.at[r.Key] = r
}

// gap is where a careless store lets others in.
func (b *broken) gap(f flaw) {
	if b.flaw == f {
		b.mu.Unlock()
		for range 20 {
			runtime.Gosched()
		}
		b.mu.Lock()
	}
}

func (b *broken) found(r *store.Record, p *store.Proposal) store.Found {
	return store.Found{Record: *r, Won: r.Owner == p.Owner && r.State == p.State, Now: clock()}
}

func (b *broken) Claim(_ context.Context, p store.Proposal) (store.Found, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r, ok := b.at[p.Key]
	b.gap(claimUnlocked)
	if !ok {
		r = p.Insert(time.Now(), b.swept)
		if b.flaw == fenceBack {
			r.Fence = 1
		}
		b.proposed(r, true)
	}
	return b.found(&r, &p), nil
}

func (b *broken) Swap(_ context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r, ok := b.at[seen.Key]
	if !ok {
		return store.Found{}, store.ErrNotFound
	}
	b.gap(swapUnlocked)
	is := r.Seen()
	if b.flaw == swapWithoutEnd {
		is.Until = seen.Until
	}
	if is == seen {
		fence := r.Fence
		r = p.Replace(&r, time.Now())
		if b.flaw == sameFence {
			r.Fence = fence
		}
		b.proposed(r, p.Restart)
	}
	return b.found(&r, &p), nil
}

func (b *broken) Renew(_ context.Context, held []store.Lease, d time.Duration) ([]error, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	errs := make([]error, len(held))
	for i, l := range held {
		r, ok := b.at[l.Key]
		if !ok || r.State != store.Processing || r.Lease() != l && b.flaw != renewAnyone {
			errs[i] = store.ErrLeaseLost
			continue
		}
		now := clock()
		r.Until, r.Updated = now.Add(d), now
		b.put(r)
	}
	return errs, nil
}

func (b *broken) Settle(_ context.Context, l store.Lease, s store.Settlement) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	r, ok := b.at[l.Key]
	b.n++
	switch {
	case !ok && b.flaw == settleUpserts:
		r = store.Record{Key: l.Key, Owner: l.Owner, Fence: l.Fence, Created: clock(), Format: store.Format}
	case !ok, r.Lease() != l && b.flaw != settleAnyone:
		return store.ErrLeaseLost
	case r.State == store.Processing:
	case s.Done(&r) && r.Lease() == l:
		return nil
	default:
		return store.ErrLeaseLost
	}
	if b.flaw != lostAck || b.n%3 > 0 {
		b.put(s.Apply(r, time.Now()))
	}
	return nil
}

func (b *broken) Get(_ context.Context, k store.Key) (store.Found, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r, ok := b.at[k]
	if o := b.old[k]; b.flaw == staleReads && o.State.Valid() {
		r = o
	}
	if !ok {
		return store.Found{}, store.ErrNotFound
	}
	return store.Found{Record: r, Now: clock()}, nil
}

func (b *broken) Sweep(context.Context, store.Cursor, int) (store.SweepResult, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	res := store.SweepResult{Now: clock()}
	for k, r := range b.at {
		switch {
		case r.Expired(res.Now), b.flaw == sweepEarly && r.State != store.Unknown:
			delete(b.at, k)
			b.swept = max(b.swept, r.Fence)
			res.Deleted++
		case r.Lapsed(res.Now), b.flaw == sweepLive && r.State == store.Processing:
			res.Lapsed = append(res.Lapsed, r)
		}
	}
	return res, nil
}

func TestBrokenStore_NotLinearizable(t *testing.T) {
	const most = 200 // histories for each
	caught := int64(0)
	all := slices.Concat(flaws, journalFlaws)
	for _, f := range all {
		n := 1
		for ; n <= most; n++ {
			h := Record(t.Context(), newJournaled(f), Options{Seed: uint64(n), Faults: 0.06})
			if Check(h, time.Minute) == Illegal {
				break
			}
		}
		if n > most {
			t.Errorf("%s: not seen in %d histories", f, most)
			continue
		}
		caught++
		t.Logf("%s: seen in history %d", f, n)
	}
	figure.Report(t, figure.Figure{
		Claim: "a store with a flaw has a history that is not linearizable", Where: "a store made for it",
		Trials: int64(len(all)), Failures: caught, Control: true,
	})
}

// The store that is broken above is sound without a flaw.
func TestControlStore_WithoutBug_Linearizable(t *testing.T) {
	c := histories(t, 100, func(i int) *History {
		return Record(t.Context(), newJournaled(sound), Options{Seed: uint64(i), Faults: 0.06})
	})
	if c.illegal+c.unknown > 0 {
		t.Errorf("%d histories are not linearizable, %d could not be judged", c.illegal, c.unknown)
	}
}
