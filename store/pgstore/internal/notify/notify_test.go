package notify

import (
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/store/pgstore/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

func idOf(n int) pgtype.UUID {
	return pgtype.UUID{Bytes: [16]byte{1: byte(n >> 8), 2: byte(n)}, Valid: true} //nolint:gosec // its bits
}

func join(t *testing.T, l *Listener, id pgtype.UUID) *Waiter {
	t.Helper()
	w, err := l.Join(id)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func isDone(w *Waiter) bool {
	select {
	case <-w.Done():
		return true
	default:
		return false
	}
}

// The first caller leaves after it was woken, when another waits for the same key.
func TestListener_LateLeave_KeepsTheNextWaiter(t *testing.T) {
	l := &Listener{listening: true, waiters: map[pgtype.UUID]*Waiter{}}
	id := idOf(1)
	first := join(t, l, id)
	l.wake(id, nil)
	second := join(t, l, id)
	l.Leave(first)
	l.wake(id, nil)
	if !isDone(first) || !isDone(second) {
		t.Errorf("woken: first %v, second %v", isDone(first), isDone(second))
	}
	l.Leave(second)
	if l.Waiting() != 0 || len(l.waiters) != 0 {
		t.Errorf("%d callers wait, for %d keys", l.Waiting(), len(l.waiters))
	}
}

func TestNotifier_ServerHangs_QueueIsBounded(t *testing.T) {
	n := &notifier{wake: make(chan struct{}, 1)}
	for range maxQueued + 10 {
		n.add(pgtype.UUID{})
	}
	if got := len(n.ended) / idSize; got != maxQueued {
		t.Errorf("%d ids are queued, want %d", got, maxQueued)
	}
}

// More ids than one notification can hold are sent in several.
func TestNotifier_ManyEndsAtOnce_AllWaitersAreWoken(t *testing.T) {
	var listeners [2]*Listener
	for i := range listeners {
		cfg, err := pgxpool.ParseConfig(pgtest.URL(t))
		if err != nil {
			t.Fatal(err)
		}
		l, err := Listen(t.Context(), cfg, "semel_many_ends", time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(l.Close)
		listeners[i] = l
	}
	from, to := listeners[0], listeners[1]
	var crowd []*Waiter
	var ids []byte
	for i := range 3*perNotification + 1 {
		id := idOf(i)
		crowd, ids = append(crowd, join(t, to, id)), append(ids, id.Bytes[:]...)
	}
	from.notifier.mu.Lock()
	from.notifier.ended = append(from.notifier.ended, ids...)
	from.notifier.mu.Unlock()
	from.Notify(idOf(0))
	for i, w := range crowd {
		select {
		case <-w.Done():
			if w.Err() != nil {
				t.Fatal(w.Err())
			}
		case <-time.After(time.Minute):
			t.Fatalf("%d of %d were woken", i, len(crowd))
		}
	}
}
