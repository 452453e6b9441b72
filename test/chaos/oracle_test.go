//go:build unix

package chaos

import (
	"fmt"
	"slices"

	"github.com/semel-go/semel"
)

// findings is what the books say in the end.
type findings struct {
	keys, answers int
	repeated      int // keys with more than one effect
	zombies       int // effects with a fence below one that the ledger had seen
	surplus       int // units paid that no answer accounts for
	wrong         []string
}

// audit compares the ledger with the promises of the policy. Every key must have
// an answer.
func (l *ledger) audit(policy semel.Policy) findings {
	l.mu.Lock()
	defer l.mu.Unlock()
	var f findings
	owed := 0
	for key, e := range l.keys {
		f.keys++
		owed++
		for _, n := range e.answers {
			f.answers += n
		}
		if len(e.effects) > 1 {
			f.repeated++
		}
		f.zombies += e.zombies()
		for _, what := range e.judge(policy) {
			f.wrong = append(f.wrong, key+": "+what)
		}
	}
	for _, balance := range l.accounts {
		f.surplus -= balance
	}
	f.surplus -= owed
	slices.Sort(f.wrong)
	return f
}

func (e *entry) zombies() (n int) {
	highest := uint64(0)
	for _, f := range e.effects {
		if f.fence < highest {
			n++
		}
		highest = max(highest, f.fence)
	}
	return n
}

// judge names each promise that was broken for a key.
func (e *entry) judge(policy semel.Policy) (wrong []string) {
	bad := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	if len(e.answers) == 0 {
		bad("no answer")
	}
	if len(e.answers) > 1 {
		bad("answered in %d ways: %v", len(e.answers), e.answers)
	}
	if policy == semel.Park && len(e.effects) > 1 {
		bad("parked, and took effect %d times", len(e.effects))
	}
	for receipt := range e.answers {
		if !slices.ContainsFunc(e.effects, func(f *effect) bool { return f.receipt == receipt }) {
			bad("the answer %q has no effect", receipt)
		}
	}
	for _, f := range e.effects {
		if e.settled != 0 && f.fence > e.settled {
			bad("attempt %d took effect after an outcome was recorded", f.attempt)
		}
		if e.answers[f.receipt] == 0 && !f.excused {
			bad("attempt %d took effect, and nobody was told it, nor killed, nor refused", f.attempt)
		}
	}
	return wrong
}
