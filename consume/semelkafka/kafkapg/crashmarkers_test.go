package kafkapg

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/store/pgstore/pgkafka"
)

// The database takes no notes: nothing is tried, and nothing counts.
func TestCrashMarker_CannotBeWritten_HoldsMessages(t *testing.T) {
	eachLedger(t, func(t *testing.T, p *shop, form string) {
		m := p.isolatedMember(t, form, 1)
		batch := named("a/o", "b/p")
		p.errs["a"] = errors.New("no")
		away := func(to string, f func()) {
			t.Helper()
			p.exec(t, "ALTER TABLE "+p.markerTable()+" RENAME TO away")
			f()
			p.exec(t, "ALTER TABLE "+strings.Replace(p.markerTable(), "semel_crash_marker", "away", 1)+" RENAME TO semel_crash_marker")
		}
		in := func() {
			for i, r := range m.Handle(t.Context(), batch) {
				if d := driver.Decide(r, driver.Policy{}); d.Action != driver.Hold || d.Reason != driver.ReasonUnavailable || d.Attempt != 0 {
					t.Errorf("message %d: %v, %v, attempt %d, %v", i, d.Action, d.Reason, d.Attempt, d.Err)
				}
			}
		}
		away("at the beginning", in)
		if _, err := m.markers.begin(t.Context(), p.store, &batch[0]); err != nil {
			t.Fatal(err)
		}
		away("at a try", in)
		if len(p.runs) > 0 {
			t.Errorf("the runs are %q", p.runs)
		}
		delete(p.errs, "a")
		wantReasons(t, m.Handle(t.Context(), batch), repeat(driver.ReasonDone, 2)...)
		p.wantEffects(t, "a", "b")
	})
}

// The end of a try cannot be noted: the try does not count as one that had none.
func TestCrashMarker_EndOfTryNotWritten_IsNotOpen(t *testing.T) {
	eachLedger(t, func(t *testing.T, p *shop, form string) {
		m := p.isolatedMember(t, form, 3)
		fail := func(ctx context.Context, _ pgx.Tx, _ []*consume.Message) error {
			_, err := p.pool.Exec(ctx, "ALTER TABLE "+p.markerTable()+" RENAME TO away")
			return errors.Join(err, errors.New("no"))
		}
		*m.handler = fail
		for attempt := 1; attempt <= 2; attempt++ {
			if results := m.Handle(t.Context(), named("a/o")); results[0].Attempt != attempt {
				t.Errorf("attempt %d, want %d: %v", results[0].Attempt, attempt, results[0].Err)
			}
			p.exec(t, "ALTER TABLE "+strings.Replace(p.markerTable(), "semel_crash_marker", "away", 1)+" RENAME TO semel_crash_marker")
		}
		m.markers.end(t.Context())
		if tried := p.openTries(t); len(tried) > 0 {
			t.Errorf("noted is %v", tried)
		}
	})
}

// The drain is over while a message is tried with care: it has not died.
func TestCrashMarker_TryInterrupted_IsTakenBack(t *testing.T) {
	eachLedger(t, func(t *testing.T, p *shop, form string) {
		m := p.isolatedMember(t, form, 1)
		ctx, cancel := context.WithCancel(t.Context())
		*m.handler = func(ctx context.Context, _ pgx.Tx, _ []*consume.Message) error {
			cancel()
			<-ctx.Done()
			return ctx.Err()
		}
		m.Handle(ctx, named("a/o"))
		if tried := p.openTries(t); len(tried) > 0 {
			t.Errorf("noted is %v", tried)
		}
	})
}

// A member freezes in a try. The next one does not take that for the message's
// fault; and the first, when it wakes, leaves nothing that counts.
func TestCrashMarker_MemberFrozen_WritesNothing(t *testing.T) {
	eachLedger(t, func(t *testing.T, p *shop, form string) {
		p.isolatedMember(t, form, 2)
		batch := named("a/o", "b/o")
		d := p.freeze(t, form, 2, batch, "a")
		m := p.member(t, form, 2).own(t)
		if form == "keys" { // the first has the key
			wantReasons(t, m.Handle(t.Context(), batch), repeat(driver.ReasonInProgress, 2)...)
			p.disconnect(t, d)
		}
		wantReasons(t, m.Handle(t.Context(), batch), repeat(driver.ReasonDone, 2)...)
		d.wake()
		for i, r := range <-d.results {
			if d := driver.Decide(r, driver.Policy{}); d.Action == driver.DeadLetter {
				t.Errorf("message %d of the frozen one: %v", i, d.Err)
			}
		}
		p.wantEffects(t, "a", "b")
		m.markers.end(t.Context())
		if tried := p.openTries(t); len(tried) > 0 {
			t.Errorf("noted is %v", tried)
		}
	})
}

// One that another has begun behind notes no try, so it makes none.
func TestCrashMarker_OtherMemberBegan_RefusesTry(t *testing.T) {
	eachLedger(t, func(t *testing.T, p *shop, form string) {
		m := p.isolatedMember(t, form, 2)
		batch := named("a/o", "b/p")
		if _, err := m.markers.begin(t.Context(), p.store, &batch[0]); err != nil {
			t.Fatal(err)
		}
		if _, err := pgkafka.NewCrashMarker(p.store, topicPartition(orders)).Begin(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		wantReasons(t, m.Handle(t.Context(), batch), repeat(driver.ReasonLeaseLost, 2)...)
		if len(p.runs) > 0 {
			t.Errorf("the runs are %q", p.runs)
		}
		wantReasons(t, m.Handle(t.Context(), batch), repeat(driver.ReasonDone, 2)...) // it is given them still: it begins again
	})
}
