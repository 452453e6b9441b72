package pgstore

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/internal/notify"
	"github.com/semel-go/semel/store/pgstore/internal/table"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// staleStore is a store whose reads return the first version of a record until a
// notification comes. A caller that only polls never sees the end.
type staleStore struct {
	*Store
	first store.Found
	told  atomic.Bool
}

func (f *staleStore) Get(ctx context.Context, k store.Key) (store.Found, error) {
	if f.told.Load() {
		return f.Store.Get(ctx, k)
	}
	return f.first, nil
}

func (f *staleStore) Wait(ctx context.Context, seen store.Seen) error {
	err := f.Store.Wait(ctx, seen)
	f.told.Store(err == nil)
	return err
}

// startRun runs a call that ends when it is told to.
func startRun(t *testing.T, s *Store, key string) (end func(), done chan error) {
	t.Helper()
	started, over := make(chan struct{}), make(chan struct{})
	g := newGuard(t, s)
	done = make(chan error, 1)
	go func() {
		_, err := g.Run(t.Context(), call(key), func(context.Context, *semel.Execution) (store.Outcome, error) {
			close(started)
			<-over
			return store.Outcome{Body: []byte("one")}, nil
		})
		done <- err
	}()
	<-started
	return func() { close(over) }, done
}

// startDuplicate is a call that waits for the end of a run.
func startDuplicate(t *testing.T, s store.Store, key string) (got chan error) {
	t.Helper()
	g := newGuard(t, s)
	got = make(chan error, 1)
	go func() {
		c := call(key)
		c.Wait = 5 * time.Minute
		res, err := g.Run(t.Context(), c, func(context.Context, *semel.Execution) (store.Outcome, error) {
			return store.Outcome{}, errors.New("it ran twice")
		})
		if err == nil && (!res.Replayed || string(res.Body) != "one") {
			err = errors.New("another answer")
		}
		got <- err
	}()
	return got
}

// wantSuccess fails the test unless all end without an error.
func wantSuccess(t *testing.T, all ...chan error) {
	t.Helper()
	for _, c := range all {
		select {
		case err := <-c:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(time.Minute):
			t.Fatal("a call does not end")
		}
	}
}

func TestWait_Notified_BeforePollSeesIt(t *testing.T) {
	t.Parallel()
	s := openNew(t, &Options{Notify: true})
	far := openOther(t, s)
	for i := range 5 {
		end, ran := startRun(t, s, itoa(i))
		first, err := s.Get(t.Context(), store.Key{Operation: "pay", Tenant: "ann", Value: itoa(i)})
		if err != nil {
			t.Fatal(err)
		}
		got := startDuplicate(t, &staleStore{Store: far, first: first}, itoa(i))
		waitFor(t, "somebody waits", func() bool { return waiters(far) == 1 })
		end()
		wantSuccess(t, ran, got)
	}
	if n := waiters(far); n != 0 {
		t.Errorf("%d places are left", n)
	}
}

func newGuard(t *testing.T, s store.Store) *semel.Guard {
	t.Helper()
	g, err := semel.New(s, &semel.Options{Lease: 10 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// endListeners ends the connections that listen on a store's channel, and is how
// many there were.
func endListeners(t *testing.T, s *Store) int {
	t.Helper()
	return ask[int](t, s.ownPool, `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = $1`, s.options.channel())
}

// A listener whose connection is lost, and cannot be made again.
func TestWait_ListenerBroken_Polls(t *testing.T) {
	t.Parallel()
	first := openNew(t, nil)
	cfg := sized(first.ownPool.Config(), 4)
	var cut atomic.Bool
	cfg.BeforeConnect = func(_ context.Context, to *pgx.ConnConfig) error {
		if cut.Load() && to.RuntimeParams["application_name"] == first.options.channel() {
			return errors.New("the network is down")
		}
		return nil
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	s, err := New(t.Context(), pool, &Options{Schema: first.options.Schema, Notify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()

	end, ran := startRun(t, first, "k")
	found, err := first.Get(t.Context(), store.Key{Operation: "pay", Tenant: "ann", Value: "k"})
	if err != nil {
		t.Fatal(err)
	}
	got := startDuplicate(t, s, "k")
	waitFor(t, "somebody waits", func() bool { return waiters(s) == 1 })
	cut.Store(true)
	waitFor(t, "the listener is gone", func() bool {
		endListeners(t, first)
		return errors.Is(s.Wait(t.Context(), found.Record.Seen()), notify.ErrListenerClosed)
	})
	end()
	wantSuccess(t, ran, got)
	cut.Store(false)
	waitFor(t, "it listens again", func() bool {
		l, err := s.listener.Join(table.ID(testKey("later")))
		if err == nil {
			defer s.listener.Leave(l)
		}
		return err == nil
	})
	l := join(t, s, "later")
	s.notifyEnd(table.ID(testKey("later")))
	wantNotified(t, l, "an end after the listener came back")
}

func TestClose_WaitersEnd(t *testing.T) {
	t.Parallel()
	s := openNew(t, &Options{Notify: true})
	far := openOther(t, s)
	r, last := claim(t, s, "k"), join(t, far, "last")
	got := make(chan error, 1)
	go func() { got <- s.Wait(t.Context(), r.Seen()) }()
	waitFor(t, "somebody waits", func() bool { return waiters(s) == 1 })
	complete(t, s, "last", "result")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-got:
		if err == nil {
			t.Error("Close was told as an end")
		}
	case <-time.After(30 * time.Second):
		t.Error("Wait does not end")
	}
	wantNotified(t, last, "what ended before Close")
	if err := s.Wait(t.Context(), r.Seen()); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

func TestOpen_NotifyThroughPgBouncer_Refused(t *testing.T) {
	t.Parallel()
	at := pgtest.URL(t)
	through := pgtest.Bouncer(t, at)
	s, err := Open(t.Context(), through, &Options{Schema: newSchema(t, at), Notify: true, echo: time.Second})
	if !errors.Is(err, ErrUnsafe) || !strings.Contains(err.Error(), "PgBouncer") {
		t.Errorf("got %v, want ErrUnsafe", err)
	}
	if err == nil {
		_ = s.Close()
	}
}

// A transaction notifies after its commit. Before that, a waiter sees no record.
func TestWait_TransactionEnds_Notified(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, &Options{Notify: true, notifiedPoll: time.Hour}), nil)
	far, err := NewAtomic(openOther(t, p.s), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, fails := range map[string]error{"it commits": nil, "it fails": errors.New("boom"), "nothing happened": semel.NoEffect(errors.New("boom"))} {
		t.Run(name, func(t *testing.T) {
			started, end, ran := make(chan struct{}), make(chan struct{}), make(chan struct{})
			before := far.store.appPool.Stat().AcquireCount()
			go func() {
				defer close(ran)
				_, err := p.a.Run(t.Context(), call(name), func(context.Context, *semel.Execution) (store.Outcome, error) {
					close(started)
					<-end
					return store.Outcome{Body: []byte("one")}, fails
				})
				if !errors.Is(err, fails) {
					t.Error(err)
				}
			}()
			<-started
			got := make(chan error, 1)
			go func() {
				c := call(name)
				c.Wait = 2 * time.Hour
				res, err := far.Run(t.Context(), c, func(context.Context, *semel.Execution) (store.Outcome, error) {
					return store.Outcome{Body: []byte("two")}, nil
				})
				if err == nil {
					err = errors.New(string(res.Body))
				}
				got <- err
			}()
			waitFor(t, "somebody sleeps after his second try", func() bool {
				is := far.store.appPool.Stat()
				return is.AcquireCount() == before+2 && is.AcquiredConns() == 0 && waiters(far.store) == 1
			})
			close(end)
			<-ran
			want := map[string]string{"it commits": "one", "nothing happened": "two"}[name]
			select {
			case err := <-got:
				if name == "it fails" && !errors.Is(err, semel.ErrReleased) || name != "it fails" && err.Error() != want {
					t.Errorf("got %v", err)
				}
			case <-time.After(time.Minute):
				t.Fatal("nobody was woken")
			}
		})
	}
}
