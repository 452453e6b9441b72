package storetest

import (
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel/store"
)

var eraseChecks = []check{
	{"erases a record that is over, and its steps", eraseRecords},
	{"never erases a live claim, a lapsed one, a reservation or a doubt", eraseLive},
	{"never erases a record that has changed since it was seen", eraseChanged},
	{"an erasure that is sent again, or late, spares the next life of the key", eraseAgain},
	{"the fence grows with a claim after an erasure, also if the clock was set back", eraseFence},
	{"an erasure and a swap at the same time: one of them", eraseRace},
	{"a context that ended before the call: an error, and no change", eraseContext},
}

// eraser skips the check if the store cannot erase.
func (b *bed) eraser() store.Eraser {
	e, ok := store.As[store.Eraser](b.st)
	if !ok || errors.Is(e.Erase(b.Context(), store.Seen{Key: key("none"), State: store.Completed}), errors.ErrUnsupported) {
		b.Skip("the store cannot erase")
	}
	return e
}

// age returns when the record's fence is in the past of every clock.
func (b *bed) age(r store.Record) store.Record {
	b.Helper()
	if b.h.Advance != nil {
		b.h.Advance(b.TB, b.st, b.h.Skew+time.Millisecond)
		return r
	}
	for start := time.Now(); b.h.Skew > 0; {
		if f := b.get(r.Key); f.Now.Sub(r.Updated) > b.h.Skew {
			return r
		}
		if time.Since(start) > patience {
			b.Fatalf("the store's clock does not pass the last change of %q", r.Key.Value)
		}
		breathe()
	}
	return r
}

// erase erases a record, which must succeed.
func (b *bed) erase(r store.Record) {
	b.Helper()
	if err := b.eraser().Erase(b.Context(), r.Seen()); err != nil {
		b.Fatalf("Erase of a %v record: %v", r.State, err)
	}
	b.absent(r.Key)
}

func eraseRecords(b *bed) {
	b.eraser()
	other := b.put(store.Key{Operation: "storetest", Tenant: "other", Value: "completed"}, store.Completed, long)
	journal, keepsSteps := store.As[store.Journal](b.st)
	for _, s := range []store.State{store.Completed, store.Failed, store.Released} {
		r := b.claim(proposal(key(s.String()), store.Processing)).Record
		if keepsSteps {
			b.record(r.Lease(), newStep("done"))
		}
		r = b.age(b.settle(r.Lease(), settlement(s, long)))
		b.erase(r)
		if !keepsSteps {
			continue
		}
		if _, err := journal.Steps(b.Context(), r.Lease()); !errors.Is(err, store.ErrLeaseLost) {
			b.Errorf("Steps of an erased record: error %v, want ErrLeaseLost", err)
		}
		b.steps(b.claim(proposal(r.Key, store.Processing)).Record.Lease())
	}
	expired := b.put(key("expired"), store.Completed, b.short())
	b.outlive(expired.Key)
	b.erase(b.age(expired))
	b.unchanged(other)
}

func eraseLive(b *bed) {
	for _, s := range []store.State{store.Started, store.Processing, store.Unknown} {
		live := b.put(key("live "+s.String()), s, long)
		over := b.put(key("over "+s.String()), s, b.short())
		if s != store.Unknown {
			b.outlive(over.Key)
		}
		for _, r := range []store.Record{live, b.age(over)} {
			err := b.eraser().Erase(b.Context(), r.Seen())
			if err == nil || errors.Is(err, store.ErrNotFound) || store.Affects(err) != store.ExtentCall {
				b.Errorf("Erase of a %v record: error %v, want one of this call", s, err)
			}
			b.unchanged(r)
			pretended := r.Seen()
			for _, pretended.State = range []store.State{store.Completed, store.Failed, store.Released} {
				if err := b.eraser().Erase(b.Context(), pretended); !errors.Is(err, store.ErrChanged) {
					b.Errorf("Erase of a %v record that was seen %v: error %v, want ErrChanged", s, pretended.State, err)
				}
				b.unchanged(r)
			}
		}
	}
}

func eraseChanged(b *bed) {
	r := b.age(b.put(key("changed"), store.Completed, long))
	for field, change := range map[string]func(s *store.Seen){
		"State":   func(s *store.Seen) { s.State = store.Failed },
		"Owner":   func(s *store.Seen) { s.Owner = newOwner() },
		"Fence":   func(s *store.Seen) { s.Fence-- },
		"Until":   func(s *store.Seen) { s.Until = s.Expires },
		"Expires": func(s *store.Seen) { s.Expires = s.Expires.Add(-time.Microsecond) },
	} {
		seen := r.Seen()
		change(&seen)
		if err := b.eraser().Erase(b.Context(), seen); !errors.Is(err, store.ErrChanged) {
			b.Errorf("Erase with another %s: error %v, want ErrChanged", field, err)
		}
		b.unchanged(r)
	}
	next := b.swap(r.Seen(), proposal(r.Key, store.Released)).Record
	if err := b.eraser().Erase(b.Context(), r.Seen()); !errors.Is(err, store.ErrChanged) {
		b.Errorf("Erase of a record that was reopened since: error %v, want ErrChanged", err)
	}
	b.unchanged(next)
	b.erase(b.age(next))
}

func eraseAgain(b *bed) {
	r := b.age(b.put(key("again"), store.Completed, long))
	b.erase(r)
	if err := b.eraser().Erase(b.Context(), r.Seen()); !errors.Is(err, store.ErrNotFound) {
		b.Errorf("Erase sent again: error %v, want ErrNotFound", err)
	}
	next := b.age(b.put(r.Key, store.Completed, long))
	if err := b.eraser().Erase(b.Context(), r.Seen()); !errors.Is(err, store.ErrChanged) {
		b.Errorf("Erase that arrives in the next life of the key: error %v, want ErrChanged", err)
	}
	b.unchanged(next)
}

func eraseFence(b *bed) {
	b.eraser()
	const n = 10
	var old [n]store.Record
	for i := range old { // the last one has the highest fence of all
		old[i] = b.put(key(fmt.Sprint("erased", i)), store.Completed, long)
		b.tick()
	}
	b.age(old[n-1])
	for i := range old {
		b.erase(old[i])
	}
	for i := range old {
		if i == n/2 && b.h.Advance != nil {
			b.h.Advance(b.TB, b.st, -b.setBack())
		}
		b.claimAbove(old[i])
	}
}

func eraseRace(b *bed) {
	const n = 40
	b.eraser()
	b.handle(1)
	var old [n]store.Record
	for i := range old {
		old[i] = b.put(key(fmt.Sprint("race", i)), store.Failed, long)
	}
	b.age(old[n-1])
	for i := range old {
		var swapped store.Found
		var swapErr, eraseErr error
		pack(2, func(who int) {
			if who == 0 {
				swapped, swapErr = b.handle(0).Swap(b.Context(), old[i].Seen(), proposal(old[i].Key, store.Released))
				return
			}
			e, _ := store.As[store.Eraser](b.handle(1))
			eraseErr = e.Erase(b.Context(), old[i].Seen())
		})
		switch {
		case eraseErr == nil && errors.Is(swapErr, store.ErrNotFound):
			b.absent(old[i].Key)
		case errors.Is(eraseErr, store.ErrChanged) && swapErr == nil && swapped.Won:
			b.unchanged(swapped.Record)
		default:
			b.Errorf("Erase: error %v; Swap at the same time: won %v, error %v; want one of them", eraseErr, swapped.Won, swapErr)
		}
	}
}

func eraseContext(b *bed) {
	r := b.age(b.put(key("context"), store.Completed, long))
	for name, ctx := range b.overContexts() {
		err := b.eraser().Erase(ctx, r.Seen())
		if err == nil || errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrChanged) {
			b.Errorf("Erase with a context that is %s: error %v, want one that says so", name, err)
		}
		b.unchanged(r)
	}
}
