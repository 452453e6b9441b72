//go:build unix

package chaos

import (
	"strings"
	"testing"

	"github.com/semel-go/semel"
)

// The oracle must be able to say no. Each story breaks one promise, or none.
func TestOracle_WrongHistories_Reported(t *testing.T) {
	for name, c := range map[string]struct {
		policy semel.Policy
		story  func(l *ledger)
		want   string // empty: nothing is wrong
	}{
		"paid and answered twice alike": {semel.Retry, func(l *ledger) {
			r, _ := l.pay(1, "k", 1, 10)
			l.settled("k", 10)
			l.answered("k", r)
			l.answered("k", r)
		}, ""},
		"killed between the effect and its end": {semel.Retry, func(l *ledger) {
			l.pay(1, "k", 1, 10)
			l.died(1)
			r, _ := l.pay(2, "k", 2, 11)
			l.answered("k", r)
		}, ""},
		"killed, and its last word came late": {semel.Retry, func(l *ledger) {
			l.died(1)
			l.pay(1, "k", 1, 10)
			r, _ := l.pay(2, "k", 2, 11)
			l.answered("k", r)
		}, ""},
		"killed, and parked for all that": {semel.Park, func(l *ledger) {
			l.pay(1, "k", 1, 10)
			l.died(1)
			r, _ := l.pay(2, "k", 2, 11)
			l.answered("k", r)
		}, "took effect 2 times"},
		"the same without a kill": {semel.Retry, func(l *ledger) {
			l.pay(1, "k", 1, 10)
			r, _ := l.pay(2, "k", 2, 11)
			l.answered("k", r)
		}, "nor killed"},
		"a run that was told": {semel.Retry, func(l *ledger) {
			l.pay(1, "k", 1, 10)
			l.excuse("k", 10)
			r, _ := l.pay(2, "k", 2, 11)
			l.answered("k", r)
		}, ""},
		"killed after its end was recorded, and repeated": {semel.Retry, func(l *ledger) {
			l.pay(1, "k", 1, 10)
			l.settled("k", 10)
			l.died(1)
			r, _ := l.pay(2, "k", 2, 11)
			l.answered("k", r)
		}, "after an outcome was recorded"},
		"two answers": {semel.Retry, func(l *ledger) {
			r, _ := l.pay(1, "k", 1, 10)
			l.answered("k", r)
			r, _ = l.pay(2, "k", 2, 11)
			l.answered("k", r)
		}, "answered in 2 ways"},
		"an answer of another key": {semel.Retry, func(l *ledger) {
			r, _ := l.pay(1, "k", 1, 10)
			l.answered("k", r)
			l.answered("j", r)
		}, "has no effect"},
		"no answer": {semel.Retry, func(l *ledger) { l.ask("k", 1) }, "no answer"},
	} {
		l := newLedger()
		c.story(l)
		wrong := strings.Join(l.audit(c.policy).wrong, "; ")
		if c.want == "" && wrong != "" || !strings.Contains(wrong, c.want) {
			t.Errorf("%s: %q, want %q", name, wrong, c.want)
		}
	}
}

func TestLedger_AnsweredNo_EffectRefusedLater(t *testing.T) {
	l := newLedger()
	if _, happened := l.ask("k", 20); happened {
		t.Error("nothing has happened")
	}
	if _, ok := l.pay(1, "k", 1, 19); ok || l.refused != 1 {
		t.Error("a payment that was said never to happen was made")
	}
	if _, ok := l.pay(1, "k", 2, 21); !ok || l.count("k") != 1 {
		t.Error("a later one was refused")
	}
	if _, happened := l.ask("k", 22); !happened {
		t.Error("it has happened")
	}
}

func TestAudit_SurplusAndZombies_Counted(t *testing.T) {
	l := newLedger()
	l.pay(1, "k", 2, 11)
	l.pay(2, "k", 1, 10)
	l.pay(1, "j", 1, 5)
	if f := l.audit(semel.Retry); f.keys != 2 || f.repeated != 1 || f.zombies != 1 || f.surplus != 1 {
		t.Errorf("%+v", f)
	}
}
