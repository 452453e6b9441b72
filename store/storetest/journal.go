package storetest

import (
	"errors"
	"fmt"
	"strings"

	"github.com/semel-go/semel/store"
)

var journalChecks = []check{
	{"returns the steps that were recorded, in their order", journalKeeps},
	{"keeps every field, byte for byte", journalFields},
	{"a step that is sent again is recorded once", journalAgain},
	{"another step of the same name is refused, and changes nothing", journalOther},
	{"a wrong owner, fence, state or key is refused, and changes nothing", journalFence},
	{"an owner that lost its lease records nothing", journalTakeOver},
	{"the next owner gets the steps of the claims before it", journalNextOwner},
	{"steps stay through renewal and settlement in every state", journalStays},
	{"steps stay through each swap of the same life", journalSwaps},
	{"a restart begins without steps", journalRestart},
	{"a sweep removes the steps with their record", journalSweep},
	{"keys do not see each other's steps", journalKeys},
	{"claims that race with a step see it, or fence it off", journalRace},
	{"keeps the most and the largest steps", journalLimits},
	{"a context that ended before the call: an error, and no change", journalContext},
	{"in a transaction: a commit keeps the step, a rollback does not", journalTx},
	{"in a transaction: the lease is compared", journalTxFence},
	{"in a transaction: Nested undoes the step", journalTxNested},
}

// journal skips the check if the store keeps no steps.
func (b *bed) journal() store.Journal {
	j, ok := store.As[store.Journal](b.st)
	if !ok {
		b.Skip("the store is no store.Journal")
	}
	return j
}

// newStep is a step that no other equals.
func newStep(name string) store.Step {
	o := newOwner()
	return store.Step{Name: name, Attempt: 1, Outcome: store.Outcome{Code: 3, Body: o[:], Codec: "json"}}
}

// record writes a step, which must succeed.
func (b *bed) record(l store.Lease, s store.Step) {
	b.Helper()
	if err := b.journal().RecordStep(b.Context(), l, s); err != nil {
		b.Fatalf("RecordStep(%q): %v", s.Name, err)
	}
}

// steps fails unless the record has these steps, and no others.
func (b *bed) steps(l store.Lease, want ...store.Step) {
	b.Helper()
	got, err := b.journal().Steps(b.Context(), l)
	if err != nil {
		b.Fatalf("Steps(%q): %v", l.Key.Value, err)
	}
	b.sameSteps(got, want)
}

func (b *bed) sameSteps(got, want []store.Step) {
	b.Helper()
	if len(got) != len(want) {
		b.Fatalf("there are %d steps %v, want %d", len(got), stepNames(got), len(want))
	}
	for i := range want {
		if !got[i].Equal(&want[i]) || got[i].Attempt != want[i].Attempt || got[i].Recorded.IsZero() {
			b.Fatalf("step %d is %+v, want %+v", i, got[i], want[i])
		}
	}
}

func stepNames(steps []store.Step) (names []string) {
	for i := range steps {
		names = append(names, steps[i].Name)
	}
	return names
}

func (b *bed) stepRefused(what string, l store.Lease, want error) {
	b.Helper()
	if err := b.journal().RecordStep(b.Context(), l, newStep("refused")); !errors.Is(err, want) {
		b.Errorf("RecordStep with %s: error %v, want %v", what, err, want)
	}
}

func journalKeeps(b *bed) {
	r := b.put(key("kept"), store.Processing, long)
	b.steps(r.Lease())
	var want []store.Step
	for _, name := range []string{"b", "a", "c#d", "z'\"\\%", "é", "A"} {
		b.tick()
		want = append(want, newStep(name))
		b.record(r.Lease(), want[len(want)-1])
		b.steps(r.Lease(), want...)
	}
	b.unchanged(r)
}

func journalFields(b *bed) {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	r := b.put(key("fields"), store.Processing, long)
	now := b.get(r.Key).Now
	want := []store.Step{
		{Name: "empty"},
		{Name: "bytes", Attempt: 7, Outcome: store.Outcome{Code: -1, Body: all, Codec: "c", Header: header("X-A", "1", "X-A", string(all))}},
		{Name: "gone", Attempt: 1 << 40, Outcome: store.Outcome{Code: 1 << 40, Gone: true, Codec: strings.Repeat("c", 300)}},
		{Name: "failed", Failed: true, Fingerprint: store.Fingerprint{Alg: "a", KeyID: "k", Sum: string(all)}, Outcome: store.Outcome{Body: []byte("f")}},
		{Name: strings.Repeat("n", 4*255)},
	}
	for i := range want {
		b.record(r.Lease(), want[i])
	}
	b.steps(r.Lease(), want...)
	got, err := b.journal().Steps(b.Context(), r.Lease())
	if err != nil || got[0].Recorded.Before(now.Add(-b.h.Skew)) || got[0].Recorded != store.Time(store.Micros(got[0].Recorded)) {
		b.Errorf("the step was recorded at %v, error %v; want a time of the store's clock, %v", got[0].Recorded, err, now)
	}
}

func journalAgain(b *bed) {
	r := b.put(key("again"), store.Processing, long)
	s, other := newStep("s"), newStep("other")
	b.record(r.Lease(), s)
	b.record(r.Lease(), other)
	b.tick()
	later := s
	later.Attempt = 9 // not compared: it is the first sending's
	b.record(r.Lease(), later)
	b.steps(r.Lease(), s, other)
}

func journalOther(b *bed) {
	r := b.put(key("other"), store.Processing, long)
	s := newStep("s")
	b.record(r.Lease(), s)
	failed, payload := s, s
	failed.Failed = true
	payload.Fingerprint.Sum = "other"
	for what, t := range map[string]store.Step{"result": newStep("s"), "kind of result": failed, "payload": payload} {
		if err := b.journal().RecordStep(b.Context(), r.Lease(), t); !errors.Is(err, store.ErrChanged) {
			b.Errorf("a second step of the same name with another %s: error %v, want ErrChanged", what, err)
		}
	}
	b.steps(r.Lease(), s)
}

func journalFence(b *bed) {
	r := b.put(key("fence"), store.Processing, long)
	for what, l := range map[string]store.Lease{
		"another owner": {Key: r.Key, Owner: newOwner(), Fence: r.Fence},
		"a lower fence": {Key: r.Key, Owner: r.Owner, Fence: r.Fence - 1},
		"a high fence":  {Key: r.Key, Owner: r.Owner, Fence: r.Fence + 1},
		"an absent key": {Key: key("absent"), Owner: r.Owner, Fence: r.Fence},
		"a huge fence":  {Key: r.Key, Owner: r.Owner, Fence: 1<<64 - 1},
	} {
		b.stepRefused(what, l, store.ErrLeaseLost)
		if _, err := b.journal().Steps(b.Context(), l); !errors.Is(err, store.ErrLeaseLost) {
			b.Errorf("Steps with %s: error %v, want ErrLeaseLost", what, err)
		}
	}
	b.steps(r.Lease())
	b.absent(key("absent"))
	for _, s := range states {
		if s == store.Processing {
			continue
		}
		r := b.put(key(s.String()), s, long)
		b.stepRefused("state "+s.String(), r.Lease(), store.ErrLeaseLost)
		b.steps(r.Lease())
		b.unchanged(r)
	}
}

func journalTakeOver(b *bed) {
	r := b.put(key("takeover"), store.Processing, b.short())
	b.outlive(r.Key) // a lapsed lease is still the owner's until another takes it
	kept := newStep("before")
	b.record(r.Lease(), kept)
	now := b.get(r.Key)
	next := b.swap(now.Record.Seen(), proposal(r.Key, store.Processing)).Record
	b.stepRefused("a lease that was taken over", r.Lease(), store.ErrLeaseLost)
	if err := b.journal().RecordStep(b.Context(), r.Lease(), kept); !errors.Is(err, store.ErrLeaseLost) {
		b.Errorf("the same step again, by an owner that lost its lease: error %v, want ErrLeaseLost", err)
	}
	b.steps(next.Lease(), kept)
}

func journalNextOwner(b *bed) {
	r := b.put(key("next"), store.Processing, long)
	var want []store.Step
	for i := range 5 {
		s := newStep(fmt.Sprint("step", i))
		s.Attempt = i + 1
		b.record(r.Lease(), s)
		want = append(want, s)
		released := b.settle(r.Lease(), settlement(store.Released, long))
		p := proposal(r.Key, store.Processing)
		p.Attempt = i + 2
		r = b.swap(released.Seen(), p).Record
		b.steps(r.Lease(), want...)
	}
}

func journalStays(b *bed) {
	for _, s := range finals {
		r := b.put(key(s.String()), store.Processing, long)
		kept := newStep("kept")
		b.record(r.Lease(), kept)
		b.renew(2*long, r.Lease())
		b.steps(r.Lease(), kept)
		end := b.settle(r.Lease(), settlement(s, b.short()))
		b.steps(end.Lease(), kept)
		if s != store.Unknown {
			b.outlive(r.Key)
		}
		b.steps(end.Lease(), kept)
	}
}

func journalSwaps(b *bed) {
	r := b.put(key("swaps"), store.Processing, long)
	kept := newStep("kept")
	b.record(r.Lease(), kept)
	for _, from := range states {
		for _, to := range states {
			r = b.swap(r.Seen(), proposal(r.Key, from)).Record
			r = b.swap(r.Seen(), proposal(r.Key, to)).Record
			b.steps(r.Lease(), kept)
		}
	}
}
