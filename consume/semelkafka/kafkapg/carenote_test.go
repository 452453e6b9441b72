package kafkapg

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/store/pgstore/pgkafka"
)

// The database takes no notes: nothing is tried, and nothing counts.
func TestWithoutANoteNothingIsTried(t *testing.T) {
	byBoth(t, func(t *testing.T, p *shop, by string) {
		m := p.careful(t, by, 1)
		batch := named("a/o", "b/p")
		p.fails["a"] = errors.New("no")
		away := func(to string, f func()) {
			t.Helper()
			p.exec(t, "ALTER TABLE "+p.note()+" RENAME TO away")
			f()
			p.exec(t, "ALTER TABLE "+strings.Replace(p.note(), "semel_crash_marker", "away", 1)+" RENAME TO semel_crash_marker")
		}
		in := func() {
			for i, r := range m.Handle(t.Context(), batch) {
				if d := driver.Decide(r, driver.Policy{}); d.Action != driver.Hold || d.Reason != driver.ReasonUnavailable || d.Attempt != 0 {
					t.Errorf("message %d: %v, %v, attempt %d, %v", i, d.Action, d.Reason, d.Attempt, d.Err)
				}
			}
		}
		away("at the beginning", in)
		if _, err := m.cares.begin(t.Context(), p.st, &batch[0]); err != nil {
			t.Fatal(err)
		}
		away("at a try", in)
		if len(p.runs) > 0 {
			t.Errorf("the runs are %q", p.runs)
		}
		delete(p.fails, "a")
		wantEnds(t, m.Handle(t.Context(), batch), times(driver.ReasonDone, 2)...)
		p.want(t, "a", "b")
	})
}

// The end of a try cannot be noted: the try does not count as one that had none.
func TestATryWhoseEndIsNotNotedHasEnded(t *testing.T) {
	byBoth(t, func(t *testing.T, p *shop, by string) {
		m := p.careful(t, by, 3)
		fail := func(ctx context.Context, _ pgx.Tx, _ []*consume.Message) error {
			_, err := p.pool.Exec(ctx, "ALTER TABLE "+p.note()+" RENAME TO away")
			return errors.Join(err, errors.New("no"))
		}
		*m.h = fail
		for attempt := 1; attempt <= 2; attempt++ {
			if ends := m.Handle(t.Context(), named("a/o")); ends[0].Attempt != attempt {
				t.Errorf("attempt %d, want %d: %v", ends[0].Attempt, attempt, ends[0].Err)
			}
			p.exec(t, "ALTER TABLE "+strings.Replace(p.note(), "semel_crash_marker", "away", 1)+" RENAME TO semel_crash_marker")
		}
		m.cares.end(t.Context())
		if tried := p.noted(t); len(tried) > 0 {
			t.Errorf("noted is %v", tried)
		}
	})
}

// The drain is over while a message is tried with care: it has not died.
func TestATryThatIsInterruptedIsTakenBack(t *testing.T) {
	byBoth(t, func(t *testing.T, p *shop, by string) {
		m := p.careful(t, by, 1)
		ctx, cancel := context.WithCancel(t.Context())
		*m.h = func(ctx context.Context, _ pgx.Tx, _ []*consume.Message) error {
			cancel()
			<-ctx.Done()
			return ctx.Err()
		}
		m.Handle(ctx, named("a/o"))
		if tried := p.noted(t); len(tried) > 0 {
			t.Errorf("noted is %v", tried)
		}
	})
}

// A member freezes in a try. The next one does not take that for the message's
// fault; and the first, when it wakes, leaves nothing that counts.
func TestAFrozenMembersNotesAreRefused(t *testing.T) {
	byBoth(t, func(t *testing.T, p *shop, by string) {
		p.careful(t, by, 2)
		batch := named("a/o", "b/o")
		d := p.freeze(t, by, 2, batch, "a")
		m := p.member(t, by, 2).own(t)
		if by == "keys" { // the first has the key
			wantEnds(t, m.Handle(t.Context(), batch), times(driver.ReasonInProgress, 2)...)
			p.exec(t, "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE pid = "+strconv.Itoa(int(d.pid)))
		}
		wantEnds(t, m.Handle(t.Context(), batch), times(driver.ReasonDone, 2)...)
		d.wake()
		for i, r := range <-d.ends {
			if d := driver.Decide(r, driver.Policy{}); d.Action == driver.DeadLetter {
				t.Errorf("message %d of the frozen one: %v", i, d.Err)
			}
		}
		p.want(t, "a", "b")
		m.cares.end(t.Context())
		if tried := p.noted(t); len(tried) > 0 {
			t.Errorf("noted is %v", tried)
		}
	})
}

// One that another has begun behind notes no try, so it makes none.
func TestWhoCannotNoteATryWaits(t *testing.T) {
	byBoth(t, func(t *testing.T, p *shop, by string) {
		m := p.careful(t, by, 2)
		batch := named("a/o", "b/p")
		if _, err := m.cares.begin(t.Context(), p.st, &batch[0]); err != nil {
			t.Fatal(err)
		}
		if _, err := pgkafka.NewCrashMarker(p.st, topicPartition(orders)).Begin(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		wantEnds(t, m.Handle(t.Context(), batch), times(driver.ReasonLeaseLost, 2)...)
		if len(p.runs) > 0 {
			t.Errorf("the runs are %q", p.runs)
		}
		wantEnds(t, m.Handle(t.Context(), batch), times(driver.ReasonDone, 2)...) // it is given them still: it begins again
	})
}
