package storetest

import (
	"context"
	"fmt"
	"time"

	"github.com/semel-go/semel/store"
)

var receiveChecks = []check{
	{"a record of another store is kept as it is, in each state", receiveKeeps},
	{"a record in doubt is listed as one, until a later version ends the doubt", receiveDoubt},
	{"an earlier version, or the same one, changes nothing", receiveEarlier},
	{"a later version replaces the record", receiveLater},
	{"a claim that was made here is not overwritten", receiveOwnClaim},
	{"the next claim has a higher fence, also if the other clock was ahead", receiveFence},
	{"the steps come with their record, and are replaced with it", receiveSteps},
	{"an expired record is kept as it is", receiveExpired},
	{"of versions that race, the latest stays", receiveRace},
	{"a context that ended before the call: an error, and no change", receiveContext},
}

// receiver skips the check if the store cannot receive records.
func (b *bed) receiver() store.Receiver {
	r, ok := store.As[store.Receiver](b.st)
	if !ok {
		b.Skip("the store is no store.Receiver")
	}
	return r
}

// receive takes over a record, and fails unless it is written if and only if won is set.
func (b *bed) receive(r store.Record, won bool, steps ...store.Step) {
	b.Helper()
	f, err := b.receiver().Receive(b.Context(), r, steps)
	if err != nil || f.Won != won || f.Record.Key != r.Key {
		b.Fatalf("Receive of a %v record with fence %d: won %v, error %v, the record of %q; want won %v", r.State, r.Fence, f.Won, err, f.Record.Key.Value, won)
	}
	if d := diff(f.Record, b.get(r.Key).Record); d != "" {
		b.Fatalf("the answer to Receive is not the record that is there: %s", d)
	}
}

// foreign is a record as another store has it: claimed an hour before, by this store's
// clock, with an end that is an hour away.
func (b *bed) foreign(k store.Key, s store.State) store.Record {
	b.Helper()
	r := b.put(key(fmt.Sprintf("pattern %x", newOwner())), s, long)
	r.Key, r.Owner, r.Attempt, r.Policy = k, newOwner(), 3, store.Park
	r.Fence -= uint64(time.Hour.Microseconds())
	for _, at := range []*time.Time{&r.Created, &r.Updated, &r.Completed} {
		if !at.IsZero() {
			*at = at.Add(-time.Hour)
		}
	}
	r.FormerOwners = []store.FormerOwner{{Owner: newOwner(), Holder: "former", Fence: 7, Attempt: 2, State: store.Processing, Next: store.Processing, Ended: r.Created}}
	return r
}

// kept fails unless the store has the record as it is.
func (b *bed) kept(r store.Record) {
	b.Helper()
	if d := diff(r, b.get(r.Key).Record); d != "" {
		b.Fatalf("the %v record was changed on its way: %s", r.State, d)
	}
}

func receiveKeeps(b *bed) {
	b.receiver()
	for _, s := range states {
		r := b.foreign(key(s.String()), s)
		b.receive(r, true)
		b.kept(r)
	}
}

func receiveDoubt(b *bed) {
	b.receiver()
	inDoubt := func() bool {
		_, ok := b.list(store.Filter{States: []store.State{store.Unknown}})[key("doubt")]
		return ok
	}
	r := b.foreign(key("doubt"), store.Unknown)
	b.receive(r, true)
	if !inDoubt() {
		b.Error("a record in doubt is not in the list of those")
	}
	later := b.foreign(key("doubt"), store.Completed)
	later.Fence = r.Fence + 1
	b.receive(later, true)
	if inDoubt() {
		b.Error("a record that is no longer in doubt is in the list of those that are")
	}
	r.Fence = later.Fence + 1
	b.receive(r, true)
	if !inDoubt() {
		b.Error("a record that came into doubt again is not in the list of those")
	}
}

func receiveEarlier(b *bed) {
	b.receiver()
	for _, s := range states {
		r := b.foreign(key(s.String()), s)
		b.receive(r, true)
		b.receive(r, false)
		for what, change := range map[string]func(*store.Record){
			"a lower fence":   func(r *store.Record) { r.Fence--; r.Updated = r.Updated.Add(time.Minute) },
			"an earlier time": func(r *store.Record) { r.Updated = r.Updated.Add(-time.Microsecond) },
		} {
			other := b.foreign(r.Key, store.Completed)
			other.Fence, other.Updated = r.Fence, r.Updated
			change(&other)
			b.receive(other, false)
			if d := diff(r, b.get(r.Key).Record); d != "" {
				b.Fatalf("a version with %s changed the %v record: %s", what, s, d)
			}
		}
	}
}

func receiveLater(b *bed) {
	b.receiver()
	for _, from := range states {
		for _, to := range states {
			k := key(fmt.Sprint(from, to))
			first, claimed := b.foreign(k, from), b.foreign(k, to)
			claimed.Fence = first.Fence + 1
			claimed.Updated = first.Updated.Add(-time.Minute) // the fence decides
			if claimed.State.Terminal() {
				claimed.Completed = claimed.Updated
			}
			b.receive(first, true)
			b.receive(claimed, true)
			b.kept(claimed)
			settled := b.foreign(k, to)
			settled.Fence, settled.Updated = claimed.Fence, claimed.Updated.Add(time.Microsecond)
			if settled.State.Terminal() {
				settled.Completed = settled.Updated
			}
			b.receive(settled, true)
			b.kept(settled)
		}
	}
}

func receiveOwnClaim(b *bed) {
	b.receiver()
	for _, s := range states {
		own := b.put(key(s.String()), s, long)
		b.receive(b.foreign(own.Key, store.Completed), false)
		b.unchanged(own)
	}
}

func receiveFence(b *bed) {
	b.receiver()
	for _, ahead := range []time.Duration{0, 2 * time.Hour} {
		r := b.foreign(key(ahead.String()), store.Released)
		r.Fence += uint64(ahead.Microseconds())
		b.receive(r, true)
		next := b.swap(r.Seen(), proposal(r.Key, store.Processing)).Record
		if next.Fence <= r.Fence {
			b.Errorf("a claim after a record with fence %d has fence %d", r.Fence, next.Fence)
		}
		if next.Created != r.Created {
			b.Errorf("the record began at %v, and after a claim at %v", r.Created, next.Created)
		}
	}
}

func receiveSteps(b *bed) {
	b.receiver()
	b.journal()
	r := b.foreign(key("steps"), store.Released)
	var want []store.Step
	for _, name := range []string{"b", "a", "é'\"\\"} {
		step := newStep(name)
		step.Attempt, step.Recorded = 2, r.Created.Add(time.Duration(len(want)+1)*time.Second)
		step.Fingerprint, step.Failed = store.Fingerprint{Alg: "a", KeyID: "k", Sum: "\x00\xff"}, name == "a"
		want = append(want, step)
	}
	b.receive(r, true, want...)
	b.steps(r.Lease(), want...)
	got, err := b.journal().Steps(b.Context(), r.Lease())
	for i := range want {
		if err != nil || got[i].Recorded != want[i].Recorded {
			b.Fatalf("a step that was recorded at %v is recorded at %v, error %v", want[i].Recorded, got[i].Recorded, err)
		}
	}
	b.receive(r, false, newStep("other")) // nothing changes
	b.steps(r.Lease(), want...)

	next := b.swap(r.Seen(), proposal(r.Key, store.Processing)).Record
	own := newStep("own")
	b.record(next.Lease(), own)
	b.steps(next.Lease(), append(want, own)...)

	later := next
	later.Fence, later.Owner = next.Fence+1, newOwner()
	b.receive(later, true, want[2])
	b.steps(later.Lease(), want[2])
	later.Fence++
	b.receive(later, true)
	b.steps(later.Lease())
}

func receiveExpired(b *bed) {
	b.receiver()
	r := b.foreign(key("expired"), store.Completed)
	r.Expires = r.Updated.Add(time.Minute)
	b.receive(r, true)
	b.kept(r)
	if f := b.get(r.Key); !f.Record.Expired(f.Now) {
		b.Errorf("the record expires at %v, and at %v it has not", f.Record.Expires, f.Now)
	}
}

func receiveRace(b *bed) {
	const versions, rounds = 16, 20
	to := b.receiver()
	pattern := b.foreign(key("race"), store.Completed)
	for round := range rounds {
		latest := pattern
		latest.Key = key(fmt.Sprint("race ", round))
		pack(versions, func(i int) {
			r := latest
			r.Fence -= uint64(i)
			if _, err := to.Receive(b.Context(), r, nil); err != nil {
				b.Errorf("Receive: %v", err)
			}
		})
		b.kept(latest)
	}
}

func receiveContext(b *bed) {
	r := b.foreign(key("context"), store.Completed)
	ctx, cancel := context.WithCancel(b.Context())
	cancel()
	if _, err := b.receiver().Receive(ctx, r, nil); err == nil {
		b.Error("Receive with a context that has ended returns no error")
	}
	b.absent(r.Key)
}
