package storetest

import (
	"fmt"
	"sync"

	"github.com/semel-go/semel/store"
)

var claimChecks = []check{
	{"inserts if there is no record", claimInserts},
	{"a claim that loses gets the record unchanged", claimLoses},
	{"a claim that loses to an expired record gets it unchanged", claimLosesToExpired},
	{"the same claim sent again is won", claimResent},
	{"the same claim sent after its settlement is not won", claimMovedOn},
	{"a claim with the zero owner sent again is not won", claimNobody},
	{"one of many concurrent calls wins", claimPack},
	{"one claim sent many times concurrently is won each time", claimPackOfResends},
	{"concurrent claims of many keys do not mix", claimManyKeys},
}

func claimInserts(b *bed) {
	for _, s := range []store.State{store.Started, store.Processing} {
		p := proposal(key(s.String()), s)
		b.absent(p.Key)
		f := b.claim(p)
		if d := inserted(&p, f.Record); d != "" {
			b.Errorf("claim as %v: %s", s, d)
		}
		b.unchanged(f.Record)
	}
}

// inserted compares r with the record that store.Proposal.Insert makes of p at
// the time of r.Updated.
func inserted(p *store.Proposal, r store.Record) string {
	want := p.Insert(r.Updated, 0)
	if r.Fence > want.Fence {
		want.Fence = r.Fence // a store may keep a floor
	}
	return diff(want, r)
}

// A caller without an owner token cannot recognize its own claim.
func claimNobody(b *bed) {
	p := proposal(key("k"), store.Processing)
	p.Owner = store.Owner{}
	for range 2 {
		f, err := b.st.Claim(b.Context(), p)
		if err != nil || f.Won {
			b.Fatalf("claim without an owner: won %v, error %v", f.Won, err)
		}
	}
	f, err := b.st.Get(b.Context(), p.Key)
	if err != nil {
		b.Fatal(err)
	}
	for range 2 {
		if f, err := b.st.Swap(b.Context(), f.Record.Seen(), p); err != nil || f.Won {
			b.Fatalf("swap without an owner: won %v, error %v", f.Won, err)
		}
	}
}

func claimLoses(b *bed) {
	for _, s := range states {
		was := b.put(key(s.String()), s, long)
		for _, as := range []store.State{store.Started, store.Processing} {
			b.losesTo(was, proposal(was.Key, as))
		}
	}
}

// losesTo sends a claim on both handles that must change nothing.
func (b *bed) losesTo(was store.Record, p store.Proposal) {
	b.Helper()
	p.Policy, p.Attempt, p.Holder = store.Park, 7, "loser"
	for i := range 2 {
		f, err := b.handle(i).Claim(b.Context(), p)
		if err != nil || f.Won {
			b.Fatalf("claim on a %v record: won %v, error %v; want the record as it is", was.State, f.Won, err)
		}
		if d := diff(was, f.Record); d != "" {
			b.Errorf("claim on a %v record returned another: %s", was.State, d)
		}
	}
	b.unchanged(was)
}

func claimLosesToExpired(b *bed) {
	for _, s := range []store.State{store.Started, store.Processing, store.Released, store.Completed, store.Failed} {
		was := b.put(key(s.String()), s, b.short())
		b.outlive(was.Key)
		b.losesTo(was, proposal(was.Key, store.Processing))
	}
}

func claimResent(b *bed) {
	for _, s := range []store.State{store.Started, store.Processing} {
		p := proposal(key(s.String()), s)
		first := b.claim(p).Record
		for i := range 4 {
			f, err := b.handle(i).Claim(b.Context(), p)
			if err != nil || !f.Won {
				b.Fatalf("the same claim again: won %v, error %v; want it won", f.Won, err)
			}
			if d := diff(first, f.Record); d != "" {
				b.Errorf("the same claim again gave another record: %s", d)
			}
		}
		b.unchanged(first)
	}
}

func claimMovedOn(b *bed) {
	lost := func(p store.Proposal, why string) {
		b.Helper()
		was := b.get(p.Key).Record
		f, err := b.st.Claim(b.Context(), p)
		if err != nil || f.Won {
			b.Errorf("a claim sent again after %s: won %v, error %v; want not won", why, f.Won, err)
		}
		if d := diff(was, f.Record); d != "" {
			b.Errorf("a claim sent again after %s returned another record: %s", why, d)
		}
		b.unchanged(was)
	}
	for _, s := range []store.State{store.Released, store.Completed, store.Failed, store.Unknown} {
		p := proposal(key(s.String()), store.Processing)
		b.settle(b.claim(p).Record.Lease(), settlement(s, long))
		lost(p, "its settlement as "+s.String())
	}
	p := proposal(key("swapped"), store.Processing)
	r := b.claim(p).Record
	b.swap(r.Seen(), proposal(p.Key, store.Processing))
	lost(p, "another took over")

	p = proposal(key("begun"), store.Started)
	r = b.claim(p).Record
	begin := proposal(p.Key, store.Processing)
	begin.Owner = p.Owner
	b.swap(r.Seen(), begin)
	lost(p, "its owner began")
}

func claimPack(b *bed) {
	const goroutines, rounds = 16, 10
	b.handle(1)
	for round := range rounds {
		var mu sync.Mutex
		var won, seen []store.Record
		k := key(fmt.Sprint("pack", round))
		pack(goroutines, func(i int) {
			p := proposal(k, store.Processing)
			f, err := b.handle(i).Claim(b.Context(), p)
			if err != nil {
				b.Errorf("claim %d of a pack: %v", i, err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, f.Record)
			if f.Won {
				won = append(won, f.Record)
				if f.Record.Owner != p.Owner {
					b.Errorf("claim %d won a record of another owner", i)
				}
			}
		})
		if len(won) != 1 {
			b.Fatalf("%d of a pack of %d won, want 1", len(won), goroutines)
		}
		for _, r := range seen {
			if d := diff(won[0], r); d != "" {
				b.Errorf("one of the pack saw another record than the winner's: %s", d)
			}
		}
		b.unchanged(won[0])
	}
}

func claimPackOfResends(b *bed) {
	b.handle(1)
	for round := range 10 {
		p := proposal(key(fmt.Sprint("resend", round)), store.Processing)
		fences := make([]uint64, 8)
		pack(len(fences), func(i int) {
			f, err := b.handle(i).Claim(b.Context(), p)
			if err != nil || !f.Won {
				b.Errorf("sending %d of one claim: won %v, error %v; want it won", i, f.Won, err)
			}
			fences[i] = f.Record.Fence
		})
		for _, fence := range fences {
			if fence != fences[0] {
				b.Fatalf("the sendings of one claim got different fences: %v", fences)
			}
		}
	}
}

func claimManyKeys(b *bed) {
	b.handle(1)
	pack(64, func(i int) {
		p := proposal(key(fmt.Sprint("many", i/2)), store.Processing) // two a key
		f, err := b.handle(i).Claim(b.Context(), p)
		if err != nil {
			b.Errorf("claim %d: %v", i, err)
			return
		}
		if f.Record.Key != p.Key || f.Won != (f.Record.Owner == p.Owner) {
			b.Errorf("claim %d of %q got the record of %q, won %v", i, p.Key.Value, f.Record.Key.Value, f.Won)
		}
	})
	for i := range 32 {
		b.get(key(fmt.Sprint("many", i)))
	}
}
