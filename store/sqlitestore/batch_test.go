package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"modernc.org/sqlite"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/coalesce"
)

// batch flushes changes as one batch, and gives what each got.
func batch(s *Store, changes ...change) []error {
	items := make([]*item, len(changes))
	for i, c := range changes {
		items[i] = &item{Req: c}
	}
	s.writer.flush(context.Background(), items)
	errs := make([]error, len(items))
	for i, it := range items {
		errs[i] = it.Err
	}
	return errs
}

func claiming(value string) change {
	return func(k *lockedTx) error {
		p := proposal(value)
		f, err := k.claim(background, &p)
		if err == nil && !f.Won {
			err = errors.New("lost")
		}
		return err
	}
}

// failing breaks the transaction by an error of SQLite.
func failing(s *Store) change {
	return func(*lockedTx) error {
		_, err := s.writer.conn.ExecContext(background, "INSERT INTO no_such_table VALUES (1)")
		return err
	}
}

func TestBatch_OneRequestBreaksIt_OthersSucceed(t *testing.T) {
	t.Parallel()
	s := openNew(t, nil)
	errs := batch(s, claiming("a"), failing(s), claiming("b"))
	if errs[0] != nil || errs[2] != nil {
		t.Errorf("the neighbours of a broken request got %v and %v", errs[0], errs[2])
	}
	if _, ok := errors.AsType[*sqlite.Error](errs[1]); !ok {
		t.Errorf("the broken request got %v, want SQLite's error", errs[1])
	}
	get(t, s, "a")
	get(t, s, "b")
}

func TestBatch_OnlyRequestBreaksIt_RunsOnce(t *testing.T) {
	t.Parallel()
	s := openNew(t, nil)
	claim(t, s, "connects")
	var runs atomic.Int32
	fail := failing(s)
	if errs := batch(s, func(k *lockedTx) error { runs.Add(1); return fail(k) }); errs[0] == nil || runs.Load() != 1 {
		t.Errorf("it ran %d times, and got %v", runs.Load(), errs[0])
	}
}

func TestBatch_OneRequestRefused_BatchCommits(t *testing.T) {
	t.Parallel()
	s := openNew(t, nil)
	var runs atomic.Int32
	count := func(c change) change {
		return func(k *lockedTx) error { runs.Add(1); return c(k) }
	}
	lost := func(k *lockedTx) error {
		c := completion("x")
		return k.settle(background, store.Lease{Key: testKey("none")}, &c)
	}
	errs := batch(s, count(claiming("a")), count(lost), count(claiming("b")))
	if errs[0] != nil || !errors.Is(errs[1], store.ErrLeaseLost) || errs[2] != nil {
		t.Errorf("got %v", errs)
	}
	if runs.Load() != 3 {
		t.Errorf("3 requests ran %d times", runs.Load())
	}
}

func TestBatch_CommitFails_EachRunsAlone(t *testing.T) {
	t.Parallel()
	s := openNew(t, nil)
	claim(t, s, "first") // the writer is connected now
	app := application(t, s, immediate)
	mustExec(t, app, "CREATE TABLE parent (id INTEGER PRIMARY KEY)")
	mustExec(t, app, "CREATE TABLE child (parent INTEGER REFERENCES parent DEFERRABLE INITIALLY DEFERRED)")
	if _, err := s.writer.conn.ExecContext(background, "PRAGMA foreign_keys = on"); err != nil {
		t.Fatal(err)
	}
	violating := func(*lockedTx) error {
		_, err := s.writer.conn.ExecContext(background, "INSERT INTO child VALUES (1)")
		return err
	}
	lost := func(k *lockedTx) error {
		c := completion("x")
		return k.settle(background, store.Lease{Key: testKey("none")}, &c)
	}
	errs := batch(s, claiming("a"), violating, lost)
	if errs[0] != nil || !errors.Is(errs[2], store.ErrLeaseLost) {
		t.Errorf("the others of the batch: %v and %v, want no error and ErrLeaseLost", errs[0], errs[2])
	}
	if e, ok := errors.AsType[*sqlite.Error](errs[1]); !ok || e.Code()&0xff != 19 {
		t.Errorf("the request whose commit fails: %v, want SQLITE_CONSTRAINT", errs[1])
	}
	if f, err := s.Get(context.Background(), testKey("a")); err != nil || f.Record.State != store.Processing {
		t.Errorf("the claim of the batch: %v, %v", f.Record.State, err)
	}
	claim(t, s, "b") // and the writer works on
}

func TestBatch_Panics_NoTransactionStaysOpen(t *testing.T) {
	t.Parallel()
	s := openNew(t, nil)
	err := s.writer.do(context.Background(), func(k *lockedTx) error {
		if err := claiming("half")(k); err != nil {
			return err
		}
		panic("a bug")
	})
	if _, ok := errors.AsType[*coalesce.PanicError](err); !ok {
		t.Errorf("got %v, want a PanicError", err)
	}
	if _, err := s.Get(context.Background(), testKey("half")); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("what a request did before it panicked: %v, want ErrNotFound", err)
	}
	claim(t, s, "half")
}

func TestWriter_ConnectionLost_IsReplaced(t *testing.T) {
	t.Parallel()
	s := openNew(t, nil)
	claim(t, s, "before")
	if err := s.writer.conn.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Claim(context.Background(), proposal("fails")); err == nil {
		t.Error("a claim on a closed connection succeeded")
	}
	claim(t, s, "after")
}

func TestBatch_ConcurrentChanges_ShareCommit(t *testing.T) {
	t.Parallel()
	var transactions atomic.Int64
	s := openNew(t, &Options{Now: func() time.Time { transactions.Add(1); return time.Now() }})
	const n = 50
	var leases [n]store.Lease
	for i := range leases {
		r := claim(t, s, fmt.Sprint(i))
		leases[i] = r.Lease()
	}
	if err := s.gate.enter(context.Background()); err != nil { // the first flush waits here, and the others gather
		t.Fatal(err)
	}
	transactions.Store(0)
	var all sync.WaitGroup
	for _, l := range leases {
		all.Go(func() {
			if err := s.Settle(context.Background(), l, completion("done")); err != nil {
				t.Error(err)
			}
		})
	}
	queued(t, s, n-1)
	s.gate.leave()
	all.Wait()
	if got := transactions.Load(); got != 2 {
		t.Errorf("%d settlements at once took %d transactions, want 2: the first, and all others", n, got)
	}
}

func TestRenew_ChangesQueued_GoesFirst(t *testing.T) {
	t.Parallel()
	c := newClock()
	step := func() time.Time { c.advance(time.Millisecond); return c.Now() } // the order of transactions
	s := openNew(t, &Options{Now: step, MaxBatch: 1})
	held := claim(t, s, "held")
	var leases []store.Lease
	for i := range 4 {
		r := claim(t, s, itoa(i))
		leases = append(leases, r.Lease())
	}
	if err := s.gate.enter(context.Background()); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for _, l := range leases {
		all.Go(func() {
			if err := s.Settle(context.Background(), l, completion("done")); err != nil {
				t.Error(err)
			}
		})
	}
	queued(t, s, len(leases)-1)
	all.Go(func() {
		if _, err := s.Renew(context.Background(), []store.Lease{held.Lease()}, time.Minute); err != nil {
			t.Error(err)
		}
	})
	queued(t, s, len(leases))
	s.gate.leave()
	all.Wait()
	renewed, earlier := get(t, s, "held").Updated, 0
	for i := range leases {
		if get(t, s, itoa(i)).Updated.Before(renewed) {
			earlier++
		}
	}
	if earlier > 1 {
		t.Errorf("%d settlements came before a renewal, want only the one in flight", earlier)
	}
}

// queued waits until n changes are queued while one is in flight.
func queued(t *testing.T, s *Store, n int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); s.writer.batcher.Queued() < n; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("%d changes are queued, want %d", s.writer.batcher.Queued(), n)
		}
	}
}
