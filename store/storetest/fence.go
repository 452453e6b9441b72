package storetest

import (
	"fmt"
	"time"

	"github.com/semel-go/semel/store"
)

var fenceChecks = []check{
	{"grows with each swap", fenceSwap},
	{"does not change with renewal and settlement", fenceStays},
	{"grows with a restart", fenceRestart},
	{"grows with a claim after a sweep", fenceSweep},
	{"grows when the clock was set back", fenceClockBack},
	{"grows with a claim after a sweep when the clock was set back", fenceSweepClockBack},
}

func fenceSwap(b *bed) {
	r := b.put(key("swap"), store.Processing, long)
	if r.Fence == 0 {
		b.Errorf("a record has fence 0, which is that of none")
	}
	for i := range 100 { // many in one microsecond, if the store is that fast
		next := b.swap(r.Seen(), proposal(r.Key, states[i%len(states)])).Record
		if next.Fence <= r.Fence {
			b.Fatalf("swap %d moved the fence from %d to %d", i, r.Fence, next.Fence)
		}
		r = next
	}
}

func fenceStays(b *bed) {
	for _, s := range finals {
		r := b.put(key(s.String()), store.Processing, long)
		b.renew(2*long, r.Lease())
		if f := b.get(r.Key); f.Record.Fence != r.Fence {
			b.Errorf("a renewal moved the fence from %d to %d", r.Fence, f.Record.Fence)
		}
		if end := b.settle(r.Lease(), settlement(s, long)); end.Fence != r.Fence {
			b.Errorf("a settlement as %v moved the fence from %d to %d", s, r.Fence, end.Fence)
		}
	}
}

func fenceRestart(b *bed) {
	b.put(key("restart"), store.Completed, b.short())
	old := b.outlive(key("restart")).Record
	b.restart(old)
}

// restart replaces an expired record by a new claim and returns that.
func (b *bed) restart(old store.Record) store.Record {
	b.Helper()
	p := proposal(old.Key, store.Processing)
	p.Restart = true
	r := b.swap(old.Seen(), p).Record
	if r.Fence <= old.Fence {
		b.Errorf("a restart moved the fence from %d to %d", old.Fence, r.Fence)
	}
	return r
}

func fenceSweep(b *bed) {
	k := key("swept")
	for range 5 {
		old := b.put(k, store.Completed, b.short())
		b.outlive(k)
		b.sweepAll(100)
		b.claimAbove(old)
		b.settle(b.get(k).Record.Lease(), settlement(store.Released, 0))
		b.outlive(k)
		b.sweepAll(100)
	}
}

// claimAbove claims a swept key again. The new fence must be above the old one.
func (b *bed) claimAbove(old store.Record) store.Record {
	b.Helper()
	b.absent(old.Key)
	r := b.claim(proposal(old.Key, store.Processing)).Record
	if r.Fence <= old.Fence {
		b.Fatalf("a claim after a sweep has fence %d, and the swept record had %d", r.Fence, old.Fence)
	}
	return r
}

// setBack is how far a clock may be set back: by the declared skew if the store
// has several clocks, and by any time if it has one.
func (b *bed) setBack() time.Duration {
	if b.h.Advance == nil {
		b.Skip("the harness cannot set the clock back")
	}
	if b.h.Skew > 0 {
		return b.h.Skew
	}
	return 24 * time.Hour
}

func fenceClockBack(b *bed) {
	back := b.setBack()
	r := b.put(key("back"), store.Processing, long)
	for range 3 {
		b.h.Advance(b.TB, b.st, -back)
		next := b.swap(r.Seen(), proposal(r.Key, store.Processing)).Record
		if next.Fence <= r.Fence {
			b.Fatalf("a swap after the clock was set back by %v moved the fence from %d to %d", back, r.Fence, next.Fence)
		}
		r = next
	}
	b.settle(r.Lease(), settlement(store.Completed, b.short()))
	old := b.outlive(r.Key).Record
	b.h.Advance(b.TB, b.st, -back)
	b.restart(old)
}

func fenceSweepClockBack(b *bed) {
	back := b.setBack()
	const n = 20
	var old [n]store.Record
	for i := range old {
		old[i] = b.put(key(fmt.Sprint("swept", i)), store.Completed, b.short()+b.h.Skew)
		b.h.Advance(b.TB, b.st, time.Second) // a fence of its own for each
	}
	b.outlive(old[n-1].Key)
	b.sweepAll(7)
	b.h.Advance(b.TB, b.st, -back)
	for _, r := range old {
		b.claimAbove(r)
	}
}
