package semelkafka

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/store"
)

// Several messages of an order key fail for good in one turn, as redelivered ones do, and
// the letter of one of them is refused. The letters after it wait, so that the dead
// letters are in the order of the messages. Other order keys go on.
func TestSettle_LettersOfAKey_KeepTheirOrder(t *testing.T) {
	failed := driver.Result{Err: semel.Final(errors.New("no")), FromHandler: true, Attempt: 1}
	flaky := driver.Result{Err: errors.New("flaky"), FromHandler: true, Attempt: 1}
	for name, first := range map[string]driver.Result{"refused": failed, "tried again": flaky} {
		t.Run(name, func(t *testing.T) {
			l := &scripted{ends: map[string]driver.Result{"0/0": first, "0/1": failed, "0/2": failed, "1/0": failed}}
			if name == "refused" {
				l.refused = map[string]int{"0/0": 2, "0/1": 1}
			}
			b := looping(t, l, consume.Options{AckFailures: true}, 3, 1)
			b.turn(t)
			if !slices.Equal(l.passed, []string{"1/0"}) {
				t.Errorf("in the first turn %q were settled, want only the other order key's", l.passed)
			}
			l.ends["0/0"] = failed
			for range 4 {
				b.due()
				b.turn(t)
			}
			if !slices.Equal(l.passed, []string{"1/0", "0/0", "0/1", "0/2"}) || len(b.held) > 0 {
				t.Errorf("settled in the order %q, and %d order keys wait", l.passed, len(b.held))
			}
		})
	}
}

// A tool that sends a dead letter back can keep the time of the record.
func TestHandle_RedrivenAndOld_Runs(t *testing.T) {
	for name, reopen := range map[string]*semel.Guard{"with Reopen": new(semel.Guard), "without": nil} {
		t.Run(name, func(t *testing.T) {
			l := &scripted{}
			b := looping(t, l, consume.Options{Reopen: reopen}, 2)
			b.keep = time.Hour
			ds, _ := handed(t, b.s, MaxBatch)
			works := newWorks(ds)
			for _, w := range works {
				w.m.Published = time.Now().Add(-2 * time.Hour)
			}
			works[1].m.Headers = append(works[1].m.Headers, store.Header{Name: consume.RedriveHeader, Value: "ticket 12"})
			if err := b.handle(t.Context(), works); err != nil {
				t.Fatal(err)
			}
			if ran := slices.Equal(l.given, []string{"0/1"}); ran != (reopen != nil) || works[0].disp.Reason != driver.ReasonLate {
				t.Errorf("the ledger was given %q, and the other message is %v", l.given, works[0].disp.Reason)
			}
		})
	}
}
