package storetest

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
)

// long is a lease, or a retention, that does not end during a test.
const long = time.Hour

// patience is how long the suite waits in real time until a clock has moved on.
const patience = 30 * time.Second

// bed is the test of one check, with a store of its own. Its methods end the test
// if the store refuses a call that must succeed, so only the test's own goroutine
// calls them; other goroutines use st and Errorf.
type bed struct {
	testing.TB
	h     *Harness
	st    store.Store
	again store.Store // a second handle, made by handle
}

func newBed(t testing.TB, h *Harness) *bed { return &bed{TB: t, h: h, st: h.Open(t)} }

// handle is one of the store's two handles, alternately, if it can be reopened.
func (b *bed) handle(i int) store.Store {
	if i%2 == 0 || b.h.Reopen == nil {
		return b.st
	}
	if b.again == nil {
		b.again = b.h.Reopen(b.TB, b.st)
	}
	return b.again
}

func key(name string) store.Key {
	return store.Key{Operation: "storetest", Tenant: "tenant", Value: name}
}

func newOwner() (o store.Owner) {
	binary.LittleEndian.PutUint64(o[:8], rand.Uint64())
	binary.LittleEndian.PutUint64(o[8:], rand.Uint64()|1) // never the zero Owner
	return o
}

// proposal is the proposal of a new claim or swap. No two are equal.
func proposal(k store.Key, s store.State) store.Proposal {
	p := store.Proposal{
		Key: k, State: s, Owner: newOwner(), Holder: "suite/1", Attempt: 1, Lease: long, Keep: long,
		Fingerprint: store.Fingerprint{Alg: "test", KeyID: "k1", Sum: "\x00\xff sum"},
	}
	if s.Terminal() {
		p.Outcome = store.Outcome{Code: 201, Body: p.Owner[:], Codec: "json", Header: header("X-A", "1", "X-A", "2")}
	}
	if s == store.Failed || s == store.Released || s == store.Unknown {
		p.Error = "the " + s.String() + " attempt's error"
	}
	return p
}

// settlement ends a claim in s, with an outcome that no other has.
func settlement(s store.State, keep time.Duration) store.Settlement {
	p := proposal(store.Key{}, s)
	return store.Settlement{State: s, Attempt: 1, Outcome: p.Outcome, Error: p.Error, Keep: keep}
}

// claim sends p and must win.
func (b *bed) claim(p store.Proposal) *store.Found {
	b.Helper()
	f, err := b.st.Claim(b.Context(), p)
	if err != nil || !f.Won {
		b.Fatalf("Claim(%+v): won %v, error %v; want it won", p.Key, f.Won, err)
	}
	return &f
}

// swap sends p with seen, and must win.
func (b *bed) swap(seen store.Seen, p store.Proposal) *store.Found {
	b.Helper()
	f, err := b.st.Swap(b.Context(), seen, p)
	if err != nil || !f.Won {
		b.Fatalf("Swap of %v to %v: won %v, error %v; want it won", seen.State, p.State, f.Won, err)
	}
	return &f
}

// settle ends a claim and must succeed.
func (b *bed) settle(l store.Lease, s store.Settlement) store.Record {
	b.Helper()
	if err := b.st.Settle(b.Context(), l, s); err != nil {
		b.Fatalf("Settle as %v: %v", s.State, err)
	}
	return b.get(l.Key).Record
}

// get reads a record that must be there.
func (b *bed) get(k store.Key) *store.Found {
	b.Helper()
	f, err := b.st.Get(b.Context(), k)
	if err != nil {
		b.Fatalf("Get(%q): %v", k.Value, err)
	}
	return &f
}

// absent fails unless there is no record.
func (b *bed) absent(k store.Key) {
	b.Helper()
	if f, err := b.st.Get(b.Context(), k); !errors.Is(err, store.ErrNotFound) {
		b.Fatalf("Get(%q): %v, error %v; want ErrNotFound", k.Value, f.Record.State, err)
	}
}

// unchanged fails if the record differs from the given one.
func (b *bed) unchanged(was store.Record) {
	b.Helper()
	if d := diff(was, b.get(was.Key).Record); d != "" {
		b.Fatalf("the %v record of %q changed: %s", was.State, was.Key.Value, d)
	}
}

// put brings a new key to a state whose end (Until or Expires; Unknown has
// none) is d away.
func (b *bed) put(k store.Key, s store.State, d time.Duration) store.Record {
	b.Helper()
	p := proposal(k, store.Processing)
	if s == store.Started || s == store.Processing {
		p.State, p.Lease = s, d
		return b.claim(p).Record
	}
	r := b.claim(p).Record
	return b.settle(r.Lease(), settlement(s, d))
}

// states are the six.
var states = []store.State{store.Started, store.Processing, store.Released, store.Completed, store.Failed, store.Unknown}

// short is a lease, or a retention, that outlive ends soon.
func (b *bed) short() time.Duration {
	if b.h.Advance != nil {
		return time.Minute
	}
	return 2 * time.Millisecond
}

// outlive returns when the store's clock is past the end of k's record by at
// least the declared skew. It moves the clock if it can, and waits if not.
func (b *bed) outlive(k store.Key) *store.Found {
	b.Helper()
	f := b.get(k)
	end := f.Record.Until
	if !f.Record.Expires.IsZero() {
		end = f.Record.Expires
	}
	end = end.Add(b.h.Skew)
	if left := end.Sub(f.Now); left > 0 && b.h.Advance != nil {
		b.h.Advance(b.TB, b.st, left)
	}
	for start := time.Now(); ; {
		if f = b.get(k); !f.Now.Before(end) {
			return f
		}
		if time.Since(start) > patience {
			b.Fatalf("the store's clock is %v and does not reach %v, the end of %q", f.Now, end, k.Value)
		}
		breathe()
	}
}

// breathe is the pause between two reads while the suite waits.
func breathe() { <-time.After(100 * time.Microsecond) }

// tick moves a clock that stands still, so that the next time differs.
func (b *bed) tick() {
	if b.h.Advance != nil {
		b.h.Advance(b.TB, b.st, time.Millisecond)
	}
}

// pack runs n functions at the same time and waits until all have returned.
func pack(n int, fn func(i int)) {
	var wg sync.WaitGroup
	gate := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-gate
			fn(i)
		})
	}
	close(gate)
	wg.Wait()
}
