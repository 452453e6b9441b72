package pgstore

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// other is another store of the same schema, as another process has it.
func other(t testing.TB, s *Store) *Store {
	o := s.opt
	return openAt(t, pgtest.URL(t), &o)
}

// told waits until the ear hears of a key.
func told(t *testing.T, l *listener, what string) {
	t.Helper()
	select {
	case <-l.told:
		if l.err != nil {
			t.Errorf("%s: %v", what, l.err)
		}
	case <-time.After(30 * time.Second):
		t.Errorf("%s: nobody was told", what)
	}
}

func join(t *testing.T, s *Store, value string) *listener {
	t.Helper()
	l, err := s.ear.join(idOf(testKey(value)))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Each way in which a run ends, and who listens in another process.
func TestTheEndOfARunIsTold(t *testing.T) {
	s := openNew(t, &Options{Notify: true})
	far := other(t, s)
	one := join(t, far, "one")
	complete(t, s, "one", "result")
	told(t, one, "a settlement")

	var all sync.WaitGroup
	for i := range 300 { // so many go in batches, and need more than one notification
		r := claim(t, s, itoa(i))
		l := join(t, far, itoa(i))
		all.Go(func() {
			if err := s.Settle(t.Context(), r.Lease(), completion("result")); err != nil {
				t.Error(err)
			}
			told(t, l, "a settlement in a batch")
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
	told(t, l, "a swap to unknown")
}

// A crowd that ends at once is more than the server takes in one notification.
func TestTheEndsOfACrowdAreTold(t *testing.T) {
	s := openNew(t, &Options{Notify: true})
	far, m := other(t, s), s.ear.mouth
	var crowd []*listener
	var ids []byte
	for i := range 3*spoken + 1 {
		l := join(t, far, itoa(i))
		crowd, ids = append(crowd, l), append(ids, l.id.Bytes[:]...)
	}
	m.mu.Lock()
	m.ended = append(m.ended, ids...)
	m.mu.Unlock()
	s.ended(crowd[0].id)
	waitFor(t, "the crowd is being told", func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return len(m.ended) == 0
	})
	last := join(t, far, "last") // is told when all of the crowd was
	s.ended(last.id)
	told(t, last, "who came last")
	for i, l := range crowd {
		select {
		case <-l.told:
		default:
			t.Fatalf("%d of %d were told", i, len(crowd))
		}
	}
}

// A take-over is not an end, and a claim that loses changes nothing.
func TestWhatIsNoEndIsNotTold(t *testing.T) {
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
	told(t, last, "a settlement")
	select {
	case <-l.told:
		t.Error("a take-over was told as an end")
	default:
	}
}

func TestWaitWithoutNotifySaysSoAtOnce(t *testing.T) {
	s := openNew(t, nil)
	if err := s.Wait(t.Context(), seenOf(claim(t, s, "k"))); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("got %v, want ErrUnsupported", err)
	}
	if n := ask[int](t, s.own, "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN %'||$1||'%'", s.opt.channel()); n != 0 {
		t.Errorf("%d connections listen", n)
	}
}

func TestWaitSeesWhatCameBeforeIt(t *testing.T) {
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

// waiters is how many wait at a store's ear.
func waiters(s *Store) (n int) {
	s.ear.mu.Lock()
	defer s.ear.mu.Unlock()
	for _, l := range s.ear.by {
		n += l.n
	}
	return n
}

func proposalSeen(value string) store.Seen {
	p := proposal(value)
	r := p.Insert(time.Now(), 1)
	return r.Seen()
}
