package redisstore

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
)

// figure is what the evidence command collects.
func figure(t *testing.T, claim string, control bool, trials, failures int64, detail string) {
	t.Helper()
	b, err := json.Marshal(map[string]any{
		"claim": claim, "where": "Redis", "trials": trials, "failures": failures, "control": control, "detail": detail,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("evidence: %s", b)
}

// long reports whether SEMEL_EVIDENCE=1 asks for the long form of campaigns.
func long() bool { return os.Getenv("SEMEL_EVIDENCE") == "1" }

// kills is how often a server is killed.
func kills() int {
	if long() {
		return 250
	}
	return 10
}

// ledger is what the server has confirmed.
type ledger struct {
	mu      sync.Mutex
	claims  map[string]store.Owner // confirmed as won
	settled map[string]string      // confirmed, with the body
	resent  atomic.Int64
}

func newLedger() *ledger {
	return &ledger{claims: map[string]store.Owner{}, settled: map[string]string{}}
}

// work claims and settles new keys until it is stopped. It sends calls without an
// answer again, as a Guard does.
func (l *ledger) work(t *testing.T, s *Store, name string, stop *atomic.Bool) {
	for i := 0; !stop.Load(); i++ {
		key := fmt.Sprint(name, " ", i)
		p := proposal(key)
		f, ok := persist(&l.resent, stop, func() (store.Found, error) { return s.Claim(t.Context(), p) })
		if !ok {
			return
		}
		if !f.Won {
			t.Errorf("a claim of %q, sent again, found another's record: %+v", key, f.Record)
			return
		}
		l.mu.Lock()
		l.claims[key] = p.Owner
		l.mu.Unlock()
		_, ok = persist(&l.resent, stop, func() (struct{}, error) {
			err := s.Settle(t.Context(), f.Record.Lease(), completion(key))
			if errors.Is(err, store.ErrLeaseLost) {
				t.Errorf("the settlement of %q lost its lease", key)
			}
			return struct{}{}, err
		})
		if !ok {
			return
		}
		l.mu.Lock()
		l.settled[key] = key
		l.mu.Unlock()
	}
}

// persist calls fn until the server answers, or reports false if it is
// stopped.
func persist[T any](resent *atomic.Int64, stop *atomic.Bool, fn func() (T, error)) (v T, ok bool) {
	for !stop.Load() {
		v, err := fn()
		if err == nil || errors.Is(err, store.ErrLeaseLost) {
			return v, true
		}
		resent.Add(1)
		<-time.After(5 * time.Millisecond)
	}
	return v, false
}

func (l *ledger) size() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int64(len(l.claims) + len(l.settled))
}

// grow waits for n more confirmed settlements.
func (l *ledger) grow(t *testing.T, n int) {
	t.Helper()
	count := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.settled)
	}
	from := count()
	waitFor(t, "settlements are confirmed", func() bool { return count() >= from+n })
}

// lost counts what was confirmed and is not there. The store is opened after
// the last crash: an older one may hold dead connections.
func (l *ledger) lost(t *testing.T, s *Store) (lost int64) {
	t.Helper()
	is := map[string]store.Record{}
	for f, err := range s.List(t.Context(), store.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		is[f.Record.Key.Value] = f.Record
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, owner := range l.claims {
		if r, ok := is[key]; !ok || r.Owner != owner {
			lost++
		}
	}
	for key, body := range l.settled {
		if r := is[key]; r.State != store.Completed || string(r.Outcome.Body) != body {
			lost++
		}
	}
	return lost
}

// failures is 1 if it happened.
func failures(is bool) int64 {
	if is {
		return 1
	}
	return 0
}

func itoa(n int) string { return strconv.Itoa(n) }
