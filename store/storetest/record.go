package storetest

import (
	"errors"
	"fmt"
	"strings"

	"github.com/semel-go/semel/store"
)

var recordChecks = []check{
	{"all fields come back from a claim", recordClaim},
	{"all fields come back from a swap", recordSwap},
	{"a change by one handle is read by the other at once", recordHandles},
	{"migrating again changes nothing", recordMigrate},
	{"an outcome that cannot be read is an error with its record", recordHidden},
}

// full proposes something in every field.
func full(k store.Key, s store.State) store.Proposal {
	p := proposal(k, s)
	p.Policy, p.Attempt, p.Holder = store.Park, 1<<31-1, "Höst-7 / pid 4711 / "+strings.Repeat("h", 200)
	p.Fingerprint = store.Fingerprint{Alg: "hmac-sha256", KeyID: "2026-11 ü", Sum: "\x00\x01\x80\xfe\xff'\"\\\n" + strings.Repeat("\xaa", 23)}
	p.Error = "first line\nsecond line: \"quoted\" \\ 'ünïcode' 日本語 " + strings.Repeat("e", 2000)
	return p
}

func recordClaim(b *bed) {
	for _, s := range []store.State{store.Started, store.Processing} {
		p := full(key(s.String()), s)
		r := b.claim(p).Record
		if d := inserted(&p, r); d != "" {
			b.Errorf("claimed as %v: %s", s, d)
		}
		b.unchanged(r)

		bare := store.Proposal{Key: key("bare " + s.String()), State: s, Owner: newOwner(), Lease: long}
		r = b.claim(bare).Record
		if d := inserted(&bare, r); d != "" {
			b.Errorf("claimed as %v with only the required fields: %s", s, d)
		}
		b.unchanged(r)
	}
}

func recordSwap(b *bed) {
	for _, from := range states {
		for _, to := range states {
			old := b.put(key(from.String()+" to "+to.String()), from, long)
			p := full(old.Key, to)
			p.FormerOwners = []store.FormerOwner{
				{Owner: newOwner(), Holder: p.Holder, Fence: 1<<62 + 1, Attempt: p.Attempt, State: from, Next: to, Ended: store.Time(1)},
				{Owner: newOwner(), Holder: "", Fence: 0, State: store.Unknown, Next: store.Processing},
			}
			b.tick()
			r := b.swap(old.Seen(), p).Record
			if d := diff(p.Replace(&old, r.Updated), r); d != "" {
				b.Errorf("swapped from %v to %v: %s", from, to, d)
			}
			b.unchanged(r)
		}
	}
}

func recordHandles(b *bed) {
	for i := range 20 {
		p := proposal(key(fmt.Sprint("handles", i)), store.Processing)
		one, two := b.handle(i), b.handle(i+1)
		f, err := one.Claim(b.Context(), p)
		if err != nil || !f.Won {
			b.Fatalf("Claim by one handle: won %v, error %v", f.Won, err)
		}
		r := f.Record
		other := func(after string) {
			b.Helper()
			f, err := two.Get(b.Context(), p.Key)
			if err != nil {
				b.Fatalf("Get by the other handle after %s: %v", after, err)
			}
			if d := diff(r, f.Record); d != "" {
				b.Errorf("the other handle reads another record after %s: %s", after, d)
			}
		}
		other("a claim")
		if errs, err := one.Renew(b.Context(), []store.Lease{r.Lease()}, 2*long); err != nil || errs[0] != nil {
			b.Fatalf("Renew by one handle: %v, error %v", errs, err)
		}
		r = b.get(p.Key).Record
		other("a renewal")
		if f, err = one.Swap(b.Context(), r.Seen(), proposal(p.Key, store.Processing)); err != nil || !f.Won {
			b.Fatalf("Swap by one handle: won %v, error %v", f.Won, err)
		}
		r = f.Record
		other("a swap")
		end := settlement(store.Completed, long)
		if err := one.Settle(b.Context(), r.Lease(), end); err != nil {
			b.Fatalf("Settle by one handle: %v", err)
		}
		done := b.get(p.Key).Record
		if r = end.Apply(r, done.Updated); diff(r, done) != "" {
			b.Errorf("settled by one handle: %s", diff(r, done))
		}
		other("a settlement")
	}
}

func recordMigrate(b *bed) {
	m, ok := store.As[store.Migrator](b.st)
	if !ok {
		b.Skip("the store is no store.Migrator")
	}
	r := b.put(key("migrate"), store.Completed, long)
	held := b.put(key("held"), store.Processing, long)
	for range 2 {
		if err := m.Migrate(b.Context()); err != nil {
			b.Fatalf("Migrate of a store that is up to date: %v", err)
		}
		b.unchanged(r)
		b.unchanged(held)
	}
	b.settle(held.Lease(), settlement(store.Completed, long))
}

func recordHidden(b *bed) {
	if b.h.HideOutcomes == nil {
		b.Skip("Harness.HideOutcomes is nil")
	}
	done := b.put(key("hidden"), store.Completed, long)
	held := b.put(key("held"), store.Processing, long)
	b.h.HideOutcomes(b.TB, b.st)
	stale := done.Seen()
	stale.Fence--
	for name, ask := range map[string]func() (store.Found, error){
		"Claim": func() (store.Found, error) { return b.st.Claim(b.Context(), proposal(done.Key, store.Processing)) },
		"Swap": func() (store.Found, error) {
			return b.st.Swap(b.Context(), stale, proposal(done.Key, store.Processing))
		},
		"Get": func() (store.Found, error) { return b.st.Get(b.Context(), done.Key) },
	} {
		f, err := ask()
		if err == nil || errors.Is(err, store.ErrNotFound) || f.Won {
			b.Errorf("%s: won %v, error %v; want an error other than ErrNotFound", name, f.Won, err)
		}
		if r := f.Record; r.Lease() != done.Lease() || r.State != done.State || !r.Outcome.Equal(store.Outcome{}) {
			b.Errorf("%s: a %v record of %q with fence %d and the outcome %+v; want the record without its outcome", name, r.State, r.Key.Value, r.Fence, r.Outcome)
		}
	}
	b.unchanged(held)
}
