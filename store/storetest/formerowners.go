package storetest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/semel-go/semel/store"
)

var formerOwnerChecks = []check{
	{"nine takeovers keep the last eight owners in their order", formerTakeovers},
	{"each way in which an ownership ends is kept", formerWays},
	{"every read gives them, so that the next swap does not lose them", formerReads},
	{"a new life of the key has none", formerRestart},
	{"a key that was claimed once has none", formerNone},
}

// succeed replaces the record of k as a Guard does, and checks that the answer and the
// record have the former owners that want has, and then the owner of before.
func (b *bed) succeed(k store.Key, to store.State) store.Record {
	b.Helper()
	old := b.get(k).Record
	p := proposal(k, to)
	p.Holder, p.Attempt = "holder of "+to.String(), old.Attempt+1
	p.FormerOwners = old.FormerOwnersAfter(to)
	b.tick()
	r := b.swap(old.Seen(), p).Record
	if !slices.Equal(r.FormerOwners, p.FormerOwners) {
		b.Errorf("the answer of a swap from %v to %v has the former owners %+v, want %+v", old.State, to, r.FormerOwners, p.FormerOwners)
	}
	b.unchanged(r)
	return r
}

// formerOf is what the list has to say of an owner, written without the functions of
// package store.
func formerOf(r *store.Record, next store.State) store.FormerOwner {
	ended := r.Updated
	if r.State == store.Processing {
		ended = r.Until
	}
	return store.FormerOwner{Owner: r.Owner, Holder: r.Holder, Fence: r.Fence, Attempt: r.Attempt, State: r.State, Next: next, Ended: ended}
}

func formerTakeovers(b *bed) {
	k := key("nine")
	r := b.claim(proposal(k, store.Processing)).Record
	var want []store.FormerOwner
	for range 9 {
		want = append(want, formerOf(&r, store.Processing))
		r = b.succeed(k, store.Processing)
		if last := want[max(0, len(want)-8):]; !slices.Equal(r.FormerOwners, last) {
			b.Fatalf("after %d takeovers the former owners are %+v, want %+v", len(want), r.FormerOwners, last)
		}
	}
	if r.FormerOwners[0].Attempt != 2 || r.FormerOwners[7].Attempt != 9 || r.Attempt != 10 {
		b.Errorf("the former owners are of the attempts %d to %d, want 2 to 9", r.FormerOwners[0].Attempt, r.FormerOwners[7].Attempt)
	}
	for i := range 7 {
		if r.FormerOwners[i].Fence >= r.FormerOwners[i+1].Fence {
			b.Errorf("the fences of the former owners do not grow: %+v", r.FormerOwners)
		}
	}
}

func formerWays(b *bed) {
	for _, ended := range []store.State{store.Released, store.Failed, store.Unknown, store.Completed} {
		for _, next := range states {
			k := key(ended.String() + " " + next.String())
			r := b.put(k, ended, long)
			want := []store.FormerOwner{formerOf(&r, next)}
			if r = b.succeed(k, next); !slices.Equal(r.FormerOwners, want) {
				b.Errorf("from %v to %v: the former owners are %+v, want %+v", ended, next, r.FormerOwners, want)
			}
			if next == store.Started { // a reservation is no owner
				r = b.succeed(k, store.Processing)
			}
			if next != store.Started && next != store.Processing {
				want = append(want, formerOf(&r, store.Processing))
				r = b.succeed(k, store.Processing)
			}
			end := settlement(store.Completed, long)
			if r = b.settle(r.Lease(), end); !slices.Equal(r.FormerOwners, want) {
				b.Errorf("from %v to %v: a settlement makes the former owners %+v, want %+v", ended, next, r.FormerOwners, want)
			}
		}
	}
}

func formerReads(b *bed) {
	k := key("read")
	p := proposal(k, store.Processing)
	p.Holder = "\x00\xff" + strings.Repeat("é", 200)
	b.claim(p)
	r := b.succeed(k, store.Processing)
	if len(r.FormerOwners) != 1 || r.FormerOwners[0].Holder == "" {
		b.Fatalf("the former owners are %+v, want one with a holder", r.FormerOwners)
	}
	expect := func(by string, got store.Record) {
		b.Helper()
		if !slices.Equal(got.FormerOwners, r.FormerOwners) {
			b.Errorf("%s gives the former owners %+v, want %+v", by, got.FormerOwners, r.FormerOwners)
		}
	}
	f, err := b.st.Claim(b.Context(), proposal(k, store.Processing))
	if err != nil || f.Won {
		b.Fatalf("a claim of a key that is claimed: won %v, error %v", f.Won, err)
	}
	expect("Claim", f.Record)
	if f, err = b.st.Swap(b.Context(), store.Seen{Key: k}, proposal(k, store.Processing)); err != nil || f.Won {
		b.Fatalf("a swap of another record: won %v, error %v", f.Won, err)
	}
	expect("a Swap that lost", f.Record)
	if errs, err := b.st.Renew(b.Context(), []store.Lease{r.Lease()}, b.short()); err != nil || errs[0] != nil {
		b.Fatalf("Renew: %v, error %v", errs, err)
	}
	expect("Get after a renewal", b.outlive(k).Record)
	if l, ok := store.As[store.Lister](b.st); ok {
		for f, err := range l.List(b.Context(), store.Filter{}) {
			if err != nil {
				b.Fatalf("List: %v", err)
			}
			expect("List", f.Record)
		}
	}
	for _, lapsed := range b.sweepAll(100).Lapsed {
		expect("Sweep", lapsed)
	}
}

func formerRestart(b *bed) {
	for _, s := range []store.State{store.Released, store.Completed, store.Failed} {
		k := key(s.String())
		b.claim(proposal(k, store.Processing))
		r := b.succeed(k, store.Processing)
		b.settle(r.Lease(), settlement(s, b.short()))
		old := b.outlive(k).Record
		if len(old.FormerOwners) != 1 {
			b.Fatalf("a %v record has %d former owners, want 1", s, len(old.FormerOwners))
		}
		p := proposal(k, store.Processing)
		p.Restart = true
		r = b.swap(old.Seen(), p).Record
		if r.FormerOwners != nil || b.get(k).Record.FormerOwners != nil {
			b.Errorf("a key that begins a new life after %v has former owners: %+v", s, b.get(k).Record.FormerOwners)
		}
	}
}

func formerNone(b *bed) {
	for i, s := range []store.State{store.Released, store.Completed, store.Failed, store.Unknown} {
		k := key(fmt.Sprint("once", i))
		r := b.claim(proposal(k, store.Processing)).Record
		if errs, err := b.st.Renew(b.Context(), []store.Lease{r.Lease()}, long); err != nil || errs[0] != nil {
			b.Fatalf("Renew: %v, error %v", errs, err)
		}
		b.settle(r.Lease(), settlement(s, long))
		f, err := b.st.Claim(b.Context(), proposal(k, store.Processing))
		if err != nil || f.Record.FormerOwners != nil || b.get(k).Record.FormerOwners != nil {
			b.Errorf("a %v key that was claimed once: former owners %+v, error %v", s, f.Record.FormerOwners, err)
		}
	}
	k := key("reserved")
	b.claim(proposal(k, store.Started))
	if r := b.succeed(k, store.Processing); r.FormerOwners != nil {
		b.Errorf("a reservation that is redeemed has former owners: %+v", r.FormerOwners)
	}
}
