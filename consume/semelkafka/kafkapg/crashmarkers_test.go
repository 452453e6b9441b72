package kafkapg

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/store/pgstore/pgkafka"
)

// If the crash marker cannot be written, the messages are held: the handler does
// not run, and no attempt is counted.
func TestCrashMarker_CannotBeWritten_HoldsMessages(t *testing.T) {
	eachLedger(t, func(t *testing.T, p *shop, form string) {
		m := p.isolatedMember(t, form, 1)
		batch := named("a/o", "b/p")
		p.errs["a"] = errors.New("no")
		wantHeld := func(failing string) {
			t.Helper()
			if err := p.hideMarkers(t.Context()); err != nil {
				t.Fatal(err)
			}
			defer p.showMarkers(t)
			for i, r := range m.Handle(t.Context(), batch) {
				if d := driver.Decide(r, driver.Policy{}); d.Action != driver.Hold || d.Reason != driver.ReasonUnavailable || d.Attempt != 0 {
					t.Errorf("%s fails, message %d: %v, %v, attempt %d, %v", failing, i, d.Action, d.Reason, d.Attempt, d.Err)
				}
			}
		}
		wantHeld("Begin")
		if _, err := m.markers.begin(t.Context(), p.store, &batch[0]); err != nil {
			t.Fatal(err)
		}
		wantHeld("Try")
		if len(p.runs) > 0 {
			t.Errorf("the runs are %q", p.runs)
		}
		delete(p.errs, "a")
		wantReasons(t, m.Handle(t.Context(), batch), repeat(driver.ReasonDone, 2)...)
		p.wantEffects(t, "a", "b")
	})
}

// If the end of a try cannot be written, a later write of the marker corrects it,
// so that the try does not stay open.
func TestCrashMarker_EndOfTryNotWritten_IsNotOpen(t *testing.T) {
	eachLedger(t, func(t *testing.T, p *shop, form string) {
		m := p.isolatedMember(t, form, 3)
		*m.handler = func(ctx context.Context, _ pgx.Tx, _ []*consume.Message) error {
			return errors.Join(p.hideMarkers(ctx), errors.New("no"))
		}
		for attempt := 1; attempt <= 2; attempt++ {
			if results := m.Handle(t.Context(), named("a/o")); results[0].Attempt != attempt {
				t.Errorf("attempt %d, want %d: %v", results[0].Attempt, attempt, results[0].Err)
			}
			p.showMarkers(t)
		}
		m.markers.end(t.Context())
		if tries := p.openTries(t); len(tries) > 0 {
			t.Errorf("the open tries are %v, want none", tries)
		}
	})
}

// If Serve's drain ends while a message of an isolated partition runs, its try does
// not stay open.
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
		if tries := p.openTries(t); len(tries) > 0 {
			t.Errorf("the open tries are %v, want none", tries)
		}
	})
}

// A member freezes in a try. The next member does not blame the message, and when
// the first member wakes, it cannot write the marker any more.
func TestCrashMarker_MemberFrozen_WritesNothing(t *testing.T) {
	eachLedger(t, func(t *testing.T, p *shop, form string) {
		p.isolatedMember(t, form, 2)
		batch := named("a/o", "b/o")
		f := p.freeze(t, form, 2, batch, "a")
		m := p.member(t, form, 2).own(t)
		if form == "keys" { // the frozen member has locked the key
			wantReasons(t, m.Handle(t.Context(), batch), repeat(driver.ReasonInProgress, 2)...)
			p.disconnect(t, f)
		}
		wantReasons(t, m.Handle(t.Context(), batch), repeat(driver.ReasonDone, 2)...)
		f.wake()
		for i, r := range <-f.results {
			if d := driver.Decide(r, driver.Policy{}); d.Action == driver.DeadLetter {
				t.Errorf("the frozen member sends message %d to the dead letters: %v", i, d.Err)
			}
		}
		p.wantEffects(t, "a", "b")
		m.markers.end(t.Context())
		if tries := p.openTries(t); len(tries) > 0 {
			t.Errorf("the open tries are %v, want none", tries)
		}
	})
}

// After another member has begun, this member cannot write a try, so it does not
// run the message.
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
		wantReasons(t, m.Handle(t.Context(), batch), repeat(driver.ReasonDone, 2)...) // this member still gets messages, so it begins again
	})
}
