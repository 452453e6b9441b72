//go:build unix

package saga

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

// ledger is the other systems. It keeps what happened, recognises keys, refuses lower
// fencing tokens, and kills the caller's process before or after an effect.
type ledger struct {
	mu     sync.Mutex
	rng    *rand.Rand
	fleet  *fleet
	calm   bool
	fences map[string]uint64
	keys   map[string]bool
	log    map[string][]call
	calls  int
	last   time.Time // of a call
}

func newLedger(f *fleet) *ledger {
	return &ledger{rng: rand.New(rand.NewPCG(uint64(os.Getpid()), 1)), fleet: f, fences: map[string]uint64{}, keys: map[string]bool{}, log: map[string][]call{}, last: time.Now()}
}

// dies decides whether a process dies now.
func (l *ledger) dies() bool { return !l.calm && l.rng.IntN(6) == 0 }

// refused reports whether the last step of a saga is refused for good.
func refused(id string) bool { return strings.HasSuffix(id, "refused") }

// ServeHTTP takes the effect of a process. The path is the slot of the process.
func (l *ledger) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var c call
	if err := json.NewDecoder(r.Body).Decode(&c); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	l.fleet.called(r.URL.Path)
	l.mu.Lock()
	before := l.dies()
	l.mu.Unlock()
	if before {
		l.fleet.kill(r.URL.Path)
		return
	}
	l.mu.Lock()
	status := l.apply(&c)
	after := l.dies()
	l.mu.Unlock()
	if after {
		l.fleet.kill(r.URL.Path)
		return
	}
	w.WriteHeader(status)
}

// idle is how long ago the last call was.
func (l *ledger) idle() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Since(l.last)
}

// apply applies an effect. The caller holds mu.
func (l *ledger) apply(c *call) int {
	l.calls++
	l.last = time.Now()
	if c.Fence < l.fences[c.Saga] {
		return http.StatusPreconditionFailed
	}
	l.fences[c.Saga] = c.Fence
	switch {
	case c.Step == "between":
		return http.StatusOK
	case c.Step == "ship" && refused(c.Saga) && !c.Undo:
		return http.StatusConflict
	case !l.keys[c.Key]:
		l.keys[c.Key] = true
		l.log[c.Saga] = append(l.log[c.Saga], *c)
	}
	return http.StatusOK
}

// judge says what is wrong with a saga that has ended.
func (l *ledger) judge(id string, booked int) (wrong []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var got []string
	for _, c := range l.log[id] {
		if c.Undo {
			c.Step = "undo " + c.Step
		}
		got = append(got, c.Step)
	}
	want := []string{"hold", "charge", "ship"}
	if refused(id) {
		want = []string{"hold", "charge", "undo book", "undo charge", "undo hold"}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		wrong = append(wrong, fmt.Sprintf("%s: the effects are %q, want %q", id, got, want))
	}
	if booked != 1 {
		wrong = append(wrong, fmt.Sprintf("%s: it is booked %d times by transactions, want once", id, booked))
	}
	return wrong
}
