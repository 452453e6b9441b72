package pgstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
)

// ledger is what the server has confirmed.
type ledger struct {
	mu      sync.Mutex
	won     map[string]store.Owner // whose claim of a key was confirmed
	answers map[string]string      // the confirmed outcome of each key
	settled int                    // confirmed
	doubles int                    // a second winner, or another outcome, of a key
	gone    int                    // claims that were confirmed, and whose settlement found them gone
	resent  atomic.Int64
}

func newLedger() *ledger {
	return &ledger{won: map[string]store.Owner{}, answers: map[string]string{}}
}

// work claims and settles keys until ctx ends, concurrently with workers that use the
// same name and keys. A request without an answer is sent again, as a Guard does,
// until it has one.
func (l *ledger) work(ctx context.Context, s *Store, name string) {
	for i := 0; ctx.Err() == nil; i++ {
		key := fmt.Sprint(name, " ", i)
		p := proposal(key)
		f, ok, err := persist(ctx, &l.resent, func() (store.Found, error) { return s.Claim(ctx, p) })
		if !ok {
			return
		}
		if err != nil || !f.Won {
			if f.Record.State == store.Completed {
				l.answer(key, string(f.Record.Outcome.Body), 0)
			}
			continue // the other one has it
		}
		l.claimed(key, p.Owner)
		body := fmt.Sprintf("%x", p.Owner)
		_, ok, err = persist(ctx, &l.resent, func() (struct{}, error) { return struct{}{}, s.Settle(ctx, f.Record.Lease(), completion(body)) })
		if !ok {
			return
		}
		if err != nil { // nobody took it over: it is lost
			l.mu.Lock()
			l.gone++
			l.mu.Unlock()
			continue
		}
		l.answer(key, body, 1)
	}
}

func (l *ledger) claimed(key string, by store.Owner) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if was, is := l.won[key]; is && was != by {
		l.doubles++
	}
	l.won[key] = by
}

// answer notes an outcome, which n settlements have made.
func (l *ledger) answer(key, body string, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if was, is := l.answers[key]; is && was != body {
		l.doubles++
	}
	l.answers[key] = body
	l.settled += n
}

// persist calls fn until the server answers, if only that the lease is lost, or
// reports false if ctx ends.
func persist[T any](ctx context.Context, resent *atomic.Int64, fn func() (T, error)) (v T, ok bool, err error) {
	for ctx.Err() == nil {
		v, err := fn()
		if err == nil || errors.Is(err, store.ErrLeaseLost) {
			return v, true, err
		}
		resent.Add(1)
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	return v, false, ctx.Err()
}

// lost counts what was confirmed and is not there, and doubles what is there
// twice, or is another than was confirmed. The store is opened after the last
// crash: an older one may hold connections that are dead and unnoticed.
func (l *ledger) lost(t *testing.T, s *Store) (lost, doubles int64) {
	t.Helper()
	is := map[string]store.Record{}
	for f, err := range s.List(t.Context(), store.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		r := f.Record
		r.Fingerprint, r.Outcome.Header = store.Fingerprint{}, nil // there are many
		is[r.Key.Value] = r
	}
	lost, doubles = int64(l.gone), int64(l.doubles)
	for key, owner := range l.won {
		if r, ok := is[key]; !ok {
			lost++
		} else if r.Owner != owner {
			doubles++
		}
	}
	for key, body := range l.answers {
		if r := is[key]; r.State != store.Completed {
			lost++
		} else if string(r.Outcome.Body) != body {
			doubles++
		}
	}
	return lost, doubles
}

// grow waits for n more confirmed settlements.
func (l *ledger) grow(t *testing.T, n int) {
	t.Helper()
	count := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.settled
	}
	from := count()
	waitFor(t, "settlements are confirmed", func() bool { return count() >= from+n })
}

func (l *ledger) trials() int64 { return int64(len(l.won) + l.settled) }

func (l *ledger) detail(kills int) string {
	return fmt.Sprintf("%d kills, %d confirmed claims, %d confirmed outcomes, %d requests sent again", kills, len(l.won), l.settled, l.resent.Load())
}
