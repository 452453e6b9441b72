package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/semel-go/semel/store"
)

func journalRestart(b *bed) {
	r := b.put(key("restart"), store.Processing, long)
	b.record(r.Lease(), newStep("old"))
	for range 3 {
		b.settle(r.Lease(), settlement(store.Completed, b.short()))
		old := b.outlive(r.Key).Record
		r = b.restart(old)
		b.steps(r.Lease())
		s := newStep("old") // the name is free again
		b.record(r.Lease(), s)
		b.steps(r.Lease(), s)
	}
}

func journalSweep(b *bed) {
	k := key("swept")
	for range 3 {
		r := b.claim(proposal(k, store.Processing)).Record
		b.steps(r.Lease())
		for i := range 3 {
			b.record(r.Lease(), newStep(fmt.Sprint("step", i)))
		}
		b.settle(r.Lease(), settlement(store.Completed, b.short()))
		b.outlive(k)
		b.sweepAll(100)
		b.absent(k)
		if _, err := b.journal().Steps(b.Context(), r.Lease()); !errors.Is(err, store.ErrLeaseLost) {
			b.Errorf("Steps of a swept record: error %v, want ErrLeaseLost", err)
		}
	}
	parked := b.put(key("parked"), store.Processing, b.short())
	s := newStep("kept")
	b.record(parked.Lease(), s)
	b.outlive(parked.Key)
	b.sweepAll(100)
	b.steps(parked.Lease(), s)
}

func journalKeys(b *bed) {
	keys := []store.Key{
		key("a"), key("b"), {Operation: "storetest#a", Tenant: "tenant", Value: "a"}, {Operation: "storetest", Value: "a"},
	}
	leases, want := map[store.Key]store.Lease{}, map[store.Key]store.Step{}
	for _, k := range keys {
		r := b.put(k, store.Processing, long)
		leases[k] = r.Lease()
		want[k] = newStep("step")
		b.record(leases[k], want[k])
	}
	for _, k := range keys {
		b.steps(leases[k], want[k])
	}
}

// journalRace sends a step and a takeover at the same time. If the step is
// acknowledged, the new owner sees it; if it is refused, nobody ever does.
func journalRace(b *bed) {
	j := b.journal()
	for i := range 30 {
		r := b.put(key(fmt.Sprint("race", i)), store.Processing, long)
		s, p := newStep("s"), proposal(r.Key, store.Processing)
		var recorded atomic.Bool
		var next store.Found
		pack(2, func(who int) {
			if who == 0 {
				err := j.RecordStep(b.Context(), r.Lease(), s)
				recorded.Store(err == nil)
				if err != nil && !errors.Is(err, store.ErrLeaseLost) {
					b.Errorf("RecordStep beside a takeover: %v", err)
				}
				return
			}
			var err error
			if next, err = b.handle(i).Swap(b.Context(), r.Seen(), p); err != nil || !next.Won {
				b.Errorf("Swap beside RecordStep: won %v, error %v", next.Won, err)
			}
		})
		if b.Failed() {
			return
		}
		lease := next.Record.Lease()
		if recorded.Load() {
			b.steps(lease, s)
		} else {
			b.steps(lease)
		}
	}
}

func journalLimits(b *bed) {
	r := b.put(key("many"), store.Processing, long)
	var names []string
	for i := range 200 {
		s := newStep(fmt.Sprint("step", i))
		names = append(names, s.Name)
		b.record(r.Lease(), s)
	}
	got, err := b.journal().Steps(b.Context(), r.Lease())
	if err != nil || !slices.Equal(stepNames(got), names) {
		b.Errorf("%d steps are back, error %v; want 200 in their order", len(got), err)
	}
	r = b.put(key("large"), store.Processing, long)
	large := newStep("large")
	large.Outcome.Body = bytes.Repeat([]byte{0, 0xff}, store.MaxStepBytes/2-100)
	b.record(r.Lease(), large)
	b.record(r.Lease(), large)
	end := b.settle(r.Lease(), settlement(store.Completed, long))
	b.steps(end.Lease(), large)
}

func journalContext(b *bed) {
	r := b.put(key("over"), store.Processing, long)
	for name, ctx := range b.overContexts() {
		for method, err := range map[string]error{
			"RecordStep": b.journal().RecordStep(ctx, r.Lease(), newStep("s")), "Steps": stepsError(ctx, b.journal(), r.Lease()),
		} {
			if err == nil || errors.Is(err, store.ErrLeaseLost) || errors.Is(err, store.ErrChanged) {
				b.Errorf("%s with a context that is %s: error %v, want one that says so", method, name, err)
			}
		}
	}
	b.steps(r.Lease())
}

func stepsError(ctx context.Context, j store.Journal, l store.Lease) error {
	_, err := j.Steps(ctx, l)
	return err
}

// txJournal skips the check if the store's transactions keep no steps.
func (b *bed) txJournal(tx Tx) store.Journal {
	b.Helper()
	b.journal()
	j, ok := tx.(store.Journal)
	if !ok {
		b.Fatalf("the store is a store.Journal, and its transaction %T is none", tx)
	}
	return j
}

func journalTx(b *bed) {
	b.journal()
	r := b.put(key("tx"), store.Processing, long)
	old, lost, kept := newStep("old"), newStep("s"), newStep("s")
	b.record(r.Lease(), old)
	for _, commit := range []bool{false, true} {
		tx, s := b.begin(), lost
		if commit {
			s = kept
		}
		j := b.txJournal(tx)
		b.txSteps(j, r.Lease(), old)
		b.ok("RecordStep", j.RecordStep(b.Context(), r.Lease(), s))
		for what, t := range map[string]store.Step{"the step that the record has": old, "the same step again": s} {
			if err := j.RecordStep(b.Context(), r.Lease(), t); !errors.Is(err, store.ErrChanged) {
				b.Errorf("RecordStep in a transaction, of %s: error %v, want ErrChanged", what, err)
			}
		}
		b.txSteps(j, r.Lease(), old, s)
		b.ok("Effect", tx.Effect(b.Context(), fmt.Sprint(commit)))
		if !commit {
			b.ok("Rollback", tx.Rollback(b.Context()))
			b.steps(r.Lease(), old)
			continue
		}
		b.ok("Commit", tx.Commit(b.Context()))
		b.effects(tx, "true")
		b.steps(r.Lease(), old, kept)
	}
}

func (b *bed) txSteps(j store.Journal, l store.Lease, want ...store.Step) {
	b.Helper()
	got, err := j.Steps(b.Context(), l)
	b.ok("Steps", err)
	b.sameSteps(got, want)
}

func journalTxFence(b *bed) {
	b.journal()
	r := b.put(key("tx"), store.Processing, long)
	next := b.swap(r.Seen(), proposal(r.Key, store.Processing)).Record
	tx := b.begin()
	j := b.txJournal(tx)
	if err := j.RecordStep(b.Context(), r.Lease(), newStep("s")); !errors.Is(err, store.ErrLeaseLost) {
		b.Errorf("RecordStep in a transaction by an owner that lost its lease: error %v, want ErrLeaseLost", err)
	}
	if err := stepsError(b.Context(), j, r.Lease()); !errors.Is(err, store.ErrLeaseLost) {
		b.Errorf("Steps in a transaction by an owner that lost its lease: error %v, want ErrLeaseLost", err)
	}
	b.txSteps(j, next.Lease())
	b.ok("Effect after a refused step", tx.Effect(b.Context(), "goes on"))
	b.ok("Commit", tx.Commit(b.Context()))
	b.steps(next.Lease())
}

func journalTxNested(b *bed) {
	b.journal()
	r := b.put(key("tx"), store.Processing, long)
	tx := b.begin()
	j := b.txJournal(tx)
	failed := errors.New("inner failed")
	err := tx.Nested(b.Context(), func() error {
		b.ok("RecordStep", j.RecordStep(b.Context(), r.Lease(), newStep("undone")))
		return failed
	})
	if !errors.Is(err, failed) {
		b.Errorf("Nested gives %v, want the error of its function", err)
	}
	kept := newStep("kept")
	b.ok("Nested", tx.Nested(b.Context(), func() error { return j.RecordStep(b.Context(), r.Lease(), kept) }))
	b.txSteps(j, r.Lease(), kept)
	b.ok("Commit", tx.Commit(b.Context()))
	b.steps(r.Lease(), kept)
}
