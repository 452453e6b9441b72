package storetest

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/semel-go/semel/store"
)

var txChecks = []check{
	{"a commit shows the record and the effect together", txCommit},
	{"a rollback leaves neither the record nor the effect", txRollback},
	{"a transaction sees its own writes", txOwnWrites},
	{"a claim that loses gets the committed record", txLoses},
	{"swap and settle compare as outside of transactions", txCompares},
	{"Nested undoes a function that fails, and the transaction goes on", txNested},
	{"Nested undoes a function that panics, and the transaction goes on", txNestedPanic},
	{"Nested keeps the writes of a function that succeeds", txNestedKeeps},
	{"a record that it parks is in doubt after the commit", txDoubt},
	{"one of concurrent transactions has the effect", txRace},
	{"after a rollback the next transaction has the effect", txRaceRollback},
}

// begin opens a transaction, or skips the check. It is rolled back at the end
// of the test.
func (b *bed) begin() Tx {
	b.Helper()
	if b.h.Begin == nil {
		b.Skip("the harness has no transactions")
	}
	tx := b.h.Begin(b.TB, b.st)
	b.Cleanup(func() { _ = tx.Rollback(b.Context()) })
	return tx
}

// once claims, writes an effect and settles inside tx.
func (b *bed) once(tx Tx, k store.Key, effect string) store.Found {
	b.Helper()
	f, err := tx.Claim(b.Context(), proposal(k, store.Processing))
	if err != nil || !f.Won {
		b.Fatalf("Claim of %q in a transaction: won %v, error %v", k.Value, f.Won, err)
	}
	b.ok("Effect", tx.Effect(b.Context(), effect))
	b.ok("Settle", tx.Settle(b.Context(), f.Record.Lease(), settlement(store.Completed, long)))
	return f
}

func (b *bed) ok(what string, err error) {
	b.Helper()
	if err != nil {
		b.Fatalf("%s in a transaction: %v", what, err)
	}
}

// effects fails unless these, and no other, are committed.
func (b *bed) effects(tx Tx, want ...string) {
	b.Helper()
	got, err := tx.Effects(b.Context())
	if err != nil {
		b.Fatalf("Effects: %v", err)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		b.Errorf("committed effects are %q, want %q", got, want)
	}
}

func txCommit(b *bed) {
	tx := b.begin()
	k := key("commit")
	f := b.once(tx, k, "paid")
	p := proposal(k, store.Processing)
	p.Owner, p.Holder = f.Record.Owner, f.Record.Holder
	if d := inserted(&p, f.Record); d != "" {
		b.Errorf("a claim in a transaction: %s", d)
	}
	b.effects(tx)
	b.ok("Commit", tx.Commit(b.Context()))
	b.effects(tx, "paid")
	if r := b.get(k).Record; r.State != store.Completed || r.Owner != f.Record.Owner || r.Fence != f.Record.Fence {
		b.Errorf("after the commit the record is %v with fence %d, want Completed with fence %d", r.State, r.Fence, f.Record.Fence)
	}
	b.ok("Rollback after Commit", tx.Rollback(b.Context()))
	b.effects(tx, "paid")
}

func txRollback(b *bed) {
	was := b.put(key("old"), store.Processing, long)
	tx := b.begin()
	b.once(tx, key("rollback"), "paid")
	if f, err := tx.Swap(b.Context(), was.Seen(), proposal(was.Key, store.Processing)); err != nil || !f.Won {
		b.Fatalf("Swap in a transaction: won %v, error %v", f.Won, err)
	}
	b.ok("Rollback", tx.Rollback(b.Context()))
	b.effects(tx)
	b.absent(key("rollback"))
	b.unchanged(was)
	b.claim(proposal(key("rollback"), store.Processing))
}

func txOwnWrites(b *bed) {
	tx := b.begin()
	k := key("own")
	p := proposal(k, store.Processing)
	first, err := tx.Claim(b.Context(), p)
	b.ok("Claim", err)
	again, err := tx.Claim(b.Context(), p)
	if err != nil || !first.Won || !again.Won || diff(first.Record, again.Record) != "" {
		b.Errorf("the same claim again in a transaction: won %v, error %v, %s", again.Won, err, diff(first.Record, again.Record))
	}
	other, err := tx.Claim(b.Context(), proposal(k, store.Processing))
	if err != nil || other.Won || diff(first.Record, other.Record) != "" {
		b.Errorf("a duplicate in the same transaction: won %v, error %v, %s", other.Won, err, diff(first.Record, other.Record))
	}
	end := settlement(store.Completed, long)
	b.ok("Settle", tx.Settle(b.Context(), first.Record.Lease(), end))
	b.ok("the same Settle again", tx.Settle(b.Context(), first.Record.Lease(), end))
	if f, err := tx.Claim(b.Context(), proposal(k, store.Processing)); err != nil || f.Won || !f.Record.Outcome.Equal(end.Outcome) {
		b.Errorf("a duplicate after the settlement in the same transaction: won %v, error %v, outcome %s", f.Won, err, brief(f.Record.Outcome))
	}
	b.ok("Commit", tx.Commit(b.Context()))
}

func txLoses(b *bed) {
	was := b.put(key("loses"), store.Completed, long)
	tx := b.begin()
	f, err := tx.Claim(b.Context(), proposal(was.Key, store.Processing))
	if err != nil || f.Won {
		b.Fatalf("Claim of a completed key in a transaction: won %v, error %v", f.Won, err)
	}
	if d := diff(was, f.Record); d != "" {
		b.Errorf("a lost claim in a transaction returned another record: %s", d)
	}
	b.ok("Effect after a lost claim", tx.Effect(b.Context(), "goes on"))
	b.ok("Commit", tx.Commit(b.Context()))
	b.effects(tx, "goes on")
	b.unchanged(was)
}

func txCompares(b *bed) {
	was := b.put(key("compares"), store.Processing, long)
	tx := b.begin()
	for name, seen := range wrongs(was.Seen()) {
		if f, err := tx.Swap(b.Context(), seen, proposal(was.Key, store.Processing)); err != nil || f.Won {
			b.Fatalf("swap with wrong %s in a transaction: won %v, error %v", name, f.Won, err)
		}
	}
	if _, err := tx.Swap(b.Context(), store.Seen{Key: key("absent")}, proposal(key("absent"), store.Processing)); !errors.Is(err, store.ErrNotFound) {
		b.Errorf("swap of an absent record in a transaction: %v, want ErrNotFound", err)
	}
	l := was.Lease()
	l.Fence++
	if err := tx.Settle(b.Context(), l, settlement(store.Completed, long)); !errors.Is(err, store.ErrLeaseLost) {
		b.Errorf("settling with another fence in a transaction: %v, want ErrLeaseLost", err)
	}
	p := proposal(was.Key, store.Processing)
	f, err := tx.Swap(b.Context(), was.Seen(), p)
	if err != nil || !f.Won {
		b.Fatalf("Swap in a transaction: won %v, error %v", f.Won, err)
	}
	if d := diff(p.Replace(&was, f.Record.Updated), f.Record); d != "" {
		b.Errorf("swap in a transaction: %s", d)
	}
	if err := tx.Settle(b.Context(), was.Lease(), settlement(store.Completed, long)); !errors.Is(err, store.ErrLeaseLost) {
		b.Errorf("settling in a transaction by an owner that lost its lease: %v, want ErrLeaseLost", err)
	}
	b.ok("Commit", tx.Commit(b.Context()))
	b.unchanged(f.Record)
}

func txNested(b *bed) {
	tx := b.begin()
	b.once(tx, key("outer"), "outer")
	failed := errors.New("inner failed")
	err := tx.Nested(b.Context(), func() error {
		b.once(tx, key("inner"), "inner")
		return failed
	})
	if !errors.Is(err, failed) || err.Error() != failed.Error() {
		b.Errorf("Nested gives %v, want the error of its function as it is", err)
	}
	if f, err := tx.Claim(b.Context(), proposal(key("inner"), store.Processing)); err != nil || !f.Won {
		b.Errorf("a claim that was undone, made again: won %v, error %v", f.Won, err)
	}
	// Two deep: the inner failure is the outer's to forgive.
	b.ok("Nested", tx.Nested(b.Context(), func() error {
		b.once(tx, key("middle"), "middle")
		if err := tx.Nested(b.Context(), func() error {
			b.once(tx, key("deep"), "deep")
			return failed
		}); !errors.Is(err, failed) {
			b.Errorf("Nested in Nested gives %v, want the error of its function", err)
		}
		return nil
	}))
	b.once(tx, key("after"), "after")
	b.ok("Commit", tx.Commit(b.Context()))
	b.effects(tx, "outer", "middle", "after")
	b.absent(key("deep"))
	b.get(key("middle"))
}

func txNestedPanic(b *bed) {
	tx := b.begin()
	b.once(tx, key("outer"), "outer")
	func() {
		defer func() {
			if got := recover(); got != "inner panic" {
				b.Errorf("Nested let panic %v through, want that of its function", got)
			}
		}()
		_ = tx.Nested(b.Context(), func() error {
			b.once(tx, key("inner"), "inner")
			panic("inner panic")
		})
	}()
	b.once(tx, key("after"), "after")
	b.ok("Commit", tx.Commit(b.Context()))
	b.effects(tx, "outer", "after")
	b.absent(key("inner"))
}

func txNestedKeeps(b *bed) {
	tx := b.begin()
	b.ok("Nested", tx.Nested(b.Context(), func() error {
		b.once(tx, key("inner"), "inner")
		return nil
	}))
	b.effects(tx)
	b.ok("Commit", tx.Commit(b.Context()))
	b.effects(tx, "inner")
	b.get(key("inner"))
}

// attempt is what an Atomic runner does: claim, and only if that won the
// effect. An error is one of a database that refuses one of two transactions.
func (b *bed) attempt(tx Tx, k store.Key, effect string) (won bool, err error) {
	f, err := tx.Claim(b.Context(), proposal(k, store.Processing))
	if err != nil || !f.Won {
		return false, errors.Join(err, tx.Rollback(b.Context()))
	}
	if err := tx.Effect(b.Context(), effect); err != nil {
		return false, errors.Join(err, tx.Rollback(b.Context()))
	}
	if err := tx.Settle(b.Context(), f.Record.Lease(), settlement(store.Completed, long)); err != nil {
		return false, errors.Join(err, tx.Rollback(b.Context()))
	}
	if err := tx.Commit(b.Context()); err != nil {
		return false, errors.Join(err, tx.Rollback(b.Context()))
	}
	return true, nil
}

func txRace(b *bed) {
	last := b.begin()
	b.ok("Rollback", last.Rollback(b.Context()))
	var want []string
	for round := range 10 {
		k := key(fmt.Sprint("race", round))
		var won atomic.Int32
		pack(4, func(i int) {
			tx := b.h.Begin(b.TB, b.st)
			ok, err := b.attempt(tx, k, k.Value)
			if err != nil {
				b.Logf("transaction %d of a race: %v", i, err)
			}
			if ok {
				won.Add(1)
			}
		})
		if won.Load() != 1 {
			b.Fatalf("%d of 4 transactions at once committed the effect, want 1", won.Load())
		}
		want = append(want, k.Value)
		if r := b.get(k).Record; r.State != store.Completed {
			b.Errorf("after a race of transactions the record is %v", r.State)
		}
	}
	b.effects(last, want...)
}

func txRaceRollback(b *bed) {
	first := b.begin()
	b.once(first, key("next"), "first")
	done := make(chan error, 1)
	go func() {
		defer close(done)           // also if Begin ends the test
		tx := b.h.Begin(b.TB, b.st) // may wait for the first to end, here or at its claim
		_, err := b.attempt(tx, key("next"), "second")
		done <- err
	}()
	b.ok("Rollback", first.Rollback(b.Context()))
	if err := <-done; err != nil {
		b.Fatalf("a transaction beside one that was rolled back: %v", err)
	}
	b.effects(first, "second")
}
