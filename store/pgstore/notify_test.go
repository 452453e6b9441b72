package pgstore

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/internal/notify"
	"github.com/semel-go/semel/store/pgstore/internal/table"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// openOther is another store of the same schema, as another process has it.
func openOther(t testing.TB, s *Store) *Store {
	o := s.options
	return openAt(t, pgtest.URL(t), &o)
}

// wantNotified waits until a waiter is woken.
func wantNotified(t *testing.T, l *notify.Waiter, what string) {
	t.Helper()
	select {
	case <-l.Done():
		if l.Err() != nil {
			t.Errorf("%s: %v", what, l.Err())
		}
	case <-time.After(30 * time.Second):
		t.Errorf("%s: nobody was told", what)
	}
}

func join(t *testing.T, s *Store, value string) *notify.Waiter {
	t.Helper()
	l, err := s.listener.Join(table.ID(testKey(value)))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Each way in which a run ends, and who listens in another process.
func TestWait_RunEnds_Notified(t *testing.T) {
	t.Parallel()
	s := openNew(t, &Options{Notify: true})
	far := openOther(t, s)
	one := join(t, far, "one")
	complete(t, s, "one", "result")
	wantNotified(t, one, "a settlement")

	var all sync.WaitGroup
	for i := range 300 { // so many go in batches, and need more than one notification
		r := claim(t, s, itoa(i))
		l := join(t, far, itoa(i))
		all.Go(func() {
			if err := s.Settle(t.Context(), r.Lease(), completion("result")); err != nil {
				t.Error(err)
			}
			wantNotified(t, l, "a settlement in a batch")
		})
	}
	all.Wait()

	parked := claim(t, s, "parked")
	l := join(t, far, "parked")
	p := proposal("parked")
	p.State = store.Unknown
	if f, err := s.Swap(t.Context(), parked.Seen(), p); err != nil || !f.Won {
		t.Errorf("swap: won %v, error %v", f.Won, err)
	}
	wantNotified(t, l, "a swap to unknown")
}

// A take-over is not an end, and a claim that loses changes nothing.
func TestWait_RunContinues_NotNotified(t *testing.T) {
	t.Parallel()
	s := openNew(t, &Options{Notify: true})
	was := claim(t, s, "k")
	l := join(t, s, "k")
	if f, err := s.Swap(t.Context(), was.Seen(), proposal("k")); err != nil || !f.Won {
		t.Fatalf("swap: won %v, error %v", f.Won, err)
	}
	if err := s.Settle(t.Context(), was.Lease(), completion("late")); !errors.Is(err, store.ErrLeaseLost) {
		t.Errorf("the settlement of who lost the lease: %v", err)
	}
	last := join(t, s, "last") // notifications come in the order of the commits
	complete(t, s, "last", "result")
	wantNotified(t, last, "a settlement")
	select {
	case <-l.Done():
		t.Error("a take-over was told as an end")
	default:
	}
}

func TestWait_NotifyOff_ErrUnsupported(t *testing.T) {
	s := openNew(t, nil)
	if err := s.Wait(t.Context(), seenOf(claim(t, s, "k"))); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("got %v, want ErrUnsupported", err)
	}
	if n := ask[int](t, s.ownPool, "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN %'||$1||'%'", s.options.channel()); n != 0 {
		t.Errorf("%d connections listen", n)
	}
}

func TestWait_RunEndedBefore_ReturnsAtOnce(t *testing.T) {
	t.Parallel()
	s := openNew(t, &Options{Notify: true})
	r := claim(t, s, "k")
	seen := r.Seen()
	if err := s.Settle(t.Context(), r.Lease(), completion("result")); err != nil {
		t.Fatal(err)
	}
	if err := s.Wait(t.Context(), seen); err != nil {
		t.Errorf("settled: %v", err)
	}
	if err := s.Wait(t.Context(), proposalSeen("absent")); err != nil {
		t.Errorf("absent: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Wait(ctx, seenOf(claim(t, s, "running"))); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that is over: %v", err)
	}
	if n := waiters(s); n != 0 {
		t.Errorf("%d places are left", n)
	}
}

func seenOf(r store.Record) store.Seen { return r.Seen() }

// waiters is the number of callers that wait at a store.
func waiters(s *Store) int { return s.listener.Waiting() }

func proposalSeen(value string) store.Seen {
	p := proposal(value)
	r := p.Insert(time.Now(), 1)
	return r.Seen()
}

// A claim that was taken over before somebody waits for it is in the same state,
// and another's.
func TestWait_TakeOverBefore_ReturnsAtOnce(t *testing.T) {
	t.Parallel()
	s := openNew(t, &Options{Notify: true})
	was := claim(t, s, "k")
	if f, err := s.Swap(t.Context(), was.Seen(), proposal("k")); err != nil || !f.Won {
		t.Fatalf("won %v, error %v", f.Won, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := s.Wait(ctx, was.Seen()); err != nil {
		t.Errorf("got %v", err)
	}
}
