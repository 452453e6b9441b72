//go:build unix

package chaos

import (
	"fmt"
	"sync"
)

// ledger is where the effects happen: money that leaves an account. It lives
// in the test's process, knows nothing of Semel, and is never killed. It is
// also what a reconciler asks. Safe for concurrent use.
type ledger struct {
	mu       sync.Mutex
	accounts map[string]int
	keys     map[string]*entry
	paid     int // effects so far: their numbers
	asked    int
	refused  int // by a "no" that was given before they came
	dead     map[int]bool
}

// entry is all that the ledger knows of a key.
type entry struct {
	effects []*effect
	floor   uint64 // lower fences are refused: it was said that they never happened
	settled uint64 // the fence whose settlement the store has acknowledged; 0: none
	answers map[string]int
}

// effect is a payment that was made.
type effect struct {
	worker, attempt int
	fence           uint64
	receipt         string // unique, so that a second effect shows in a replay
	excused         bool   // its run was killed, or told that its outcome does not count
}

func newLedger() *ledger {
	return &ledger{accounts: map[string]int{}, keys: map[string]*entry{}, dead: map[int]bool{}}
}

// of is the entry of a key. The caller holds mu.
func (l *ledger) of(key string) *entry {
	e := l.keys[key]
	if e == nil {
		e = &entry{answers: map[string]int{}}
		l.keys[key] = e
	}
	return e
}

// pay takes one unit from the key's account.
func (l *ledger) pay(worker int, key string, attempt int, fence uint64) (receipt string, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.of(key)
	if fence < e.floor {
		l.refused++
		return "", false
	}
	l.paid++
	f := &effect{worker: worker, attempt: attempt, fence: fence, receipt: fmt.Sprintf("%s#%d", key, l.paid), excused: l.dead[worker]}
	e.effects = append(e.effects, f)
	l.accounts[account(key)]--
	return f.receipt, true
}

// account is the account of a key's payment. Many keys share one account.
func account(key string) string { return "account-" + key[len(key)-1:] }

// ask says whether a key was paid. After a "no" the ledger refuses payments of
// the key with a lower fence.
func (l *ledger) ask(key string, fence uint64) (receipt string, happened bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked++
	e := l.of(key)
	if len(e.effects) > 0 {
		return e.effects[0].receipt, true
	}
	e.floor = max(e.floor, fence)
	return "", false
}

// settled notes that the store has acknowledged the end of a run.
func (l *ledger) settled(key string, fence uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.of(key)
	e.settled = max(e.settled, fence)
}

// excuse notes that a run's own caller was told that it does not count.
func (l *ledger) excuse(key string, fence uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.of(key).effects {
		f.excused = f.excused || f.fence == fence
	}
}

// died notes that a worker was killed. Requests that it sent before may still
// arrive.
func (l *ledger) died(worker int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead[worker] = true
	for _, e := range l.keys {
		for _, f := range e.effects {
			f.excused = f.excused || f.worker == worker && f.fence != e.settled
		}
	}
}

// answered notes what a caller was given as the outcome.
func (l *ledger) answered(key, receipt string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.of(key).answers[receipt]++
}

// count is how many effects a key has had.
func (l *ledger) count(key string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.of(key).effects)
}
