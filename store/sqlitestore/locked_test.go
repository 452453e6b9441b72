package sqlitestore

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"modernc.org/sqlite"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// holdLock takes the write lock as another process would. The lock is given
// back by calling what is returned.
func holdLock(t *testing.T, s *Store) (release func()) {
	t.Helper()
	tx, err := application(t, s, immediate).Begin()
	if err != nil {
		t.Fatal(err)
	}
	return func() { _ = tx.Rollback() }
}

func TestLockedFile_ChangesAreErrBusy_ReplaysSucceed(t *testing.T) {
	t.Parallel()
	s := openNew(t, &Options{BusyTimeout: 30 * time.Millisecond})
	complete(t, s, "newer", "result")
	mustExec(t, application(t, s, immediate), "UPDATE semel_record SET format = 2")
	complete(t, s, "done", "result")
	held := claim(t, s, "held")
	release := holdLock(t, s)
	ctx := context.Background()
	_, claimErr := s.Claim(ctx, proposal("new"))
	_, swapErr := s.Swap(ctx, held.Seen(), proposal("held"))
	_, renewErr := s.Renew(ctx, []store.Lease{held.Lease()}, time.Minute)
	for what, err := range map[string]error{
		"Claim": claimErr, "Swap": swapErr, "Renew": renewErr, "Settle": s.Settle(ctx, held.Lease(), completion("x")),
	} {
		if _, raw := errors.AsType[*sqlite.Error](err); !errors.Is(err, ErrBusy) || !raw {
			t.Errorf("%s beside another's lock: %v, want ErrBusy around SQLite's error", what, err)
		}
	}
	replays(t, s, "done", "result")
	if f, err := s.Claim(ctx, proposal("newer")); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("a record of a newer version: %v, %v; want ErrCorrupt", f.Record.State, err)
	}
	if r := get(t, s, "held"); r.State != store.Processing {
		t.Errorf("the held record is %v", r.State)
	}
	release()
	claim(t, s, "new")
	if err := s.Settle(ctx, held.Lease(), completion("x")); err != nil {
		t.Errorf("after the lock was given back: %v", err)
	}
}

// With the defaults a Guard gives up a claim at the moment when BusyTimeout is over. The
// claim looks for a record after a second, and three seconds are left for it here.
func TestLockedFile_StoreTimeoutBeforeBusyTimeout_DuplicateIsReplayed(t *testing.T) {
	t.Parallel()
	s := openNew(t, nil)
	g := leased(t, s, &semel.Options{StoreTimeout: 4 * time.Second})
	run := func() (string, error) {
		return semel.Do(t.Context(), g, call("k"), func(context.Context, *semel.Execution) (string, error) { return "done", nil })
	}
	if _, err := run(); err != nil {
		t.Fatal(err)
	}
	defer holdLock(t, s)()
	if got, err := run(); err != nil || got != "done" {
		t.Errorf("the duplicate got %q, %v", got, err)
	}
}

// A claim that has looked for a record in vain waits on for the lock.
func TestLockedFile_ReleasedAfterLook_NewKeyIsClaimed(t *testing.T) {
	t.Parallel()
	looked := make(chan struct{}, 10)
	s := openNew(t, &Options{BusyTimeout: time.Hour, Now: func() time.Time {
		select {
		case looked <- struct{}{}:
		default:
		}
		return time.Now()
	}})
	claim(t, s, "connects")
	release := holdLock(t, s)
	for len(looked) > 0 {
		<-looked
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	got := make(chan error, 1)
	go func() {
		f, err := s.Claim(ctx, proposal("new"))
		if err == nil && !f.Won {
			err = errors.New("the claim was not won")
		}
		got <- err
	}()
	select {
	case <-looked: // without the lock only a look asks for the time
	case <-ctx.Done():
	}
	release()
	if err := <-got; err != nil {
		t.Error(err)
	}
}

func TestLockedFile_ContextEnds_WaitEnds(t *testing.T) {
	t.Parallel()
	s := openNew(t, &Options{BusyTimeout: time.Hour})
	claim(t, s, "connects")
	defer holdLock(t, s)()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if _, err := s.Claim(ctx, proposal("new")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want DeadlineExceeded", err)
	}
}

func TestLockedFile_LockReleasedInTime_ChangeSucceeds(t *testing.T) {
	t.Parallel()
	s := openNew(t, &Options{BusyTimeout: time.Hour})
	release := holdLock(t, s)
	got := make(chan error)
	go func() {
		_, err := s.Claim(context.Background(), proposal("new"))
		got <- err
	}()
	select {
	case err := <-got:
		t.Fatalf("claimed beside another's lock: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	release()
	if err := <-got; err != nil {
		t.Error(err)
	}
}

// The caller of a change that is in a batch leaves before the batch has the lock. With -race
// it shows that the caller does not read what the batch writes later.
func TestLockedFile_CallerOfTimerLeaves_TimerIsSetLater(t *testing.T) {
	t.Parallel()
	s := openNew(t, &Options{BusyTimeout: time.Hour})
	claim(t, s, "connects")
	release := holdLock(t, s)
	set := func(ctx context.Context, key string) error {
		_, err := s.SetTimer(ctx, testKey(key), store.Owner{}, newOwner(), time.Minute)
		return err
	}
	queued := func(n int) {
		for s.writer.batcher.Queued() != n {
			runtime.Gosched()
		}
	}
	alone, endAlone := context.WithCancel(t.Context())
	leaving, leave := context.WithCancel(t.Context())
	left, released := make(chan error, 1), make(chan struct{})
	var others sync.WaitGroup
	others.Go(func() { _ = set(alone, "first") })
	until(t, true, "untilFree(", "SetTimer(")
	go func() {
		err := set(leaving, "leaves")
		pause(released)
		left <- err
	}()
	queued(1)
	others.Go(func() {
		if err := set(t.Context(), "stays"); err != nil {
			t.Error(err)
		}
	})
	queued(2)
	endAlone()
	queued(0) // both are in a batch
	leave()
	until(t, true, "sqlitestore.pause(")
	release()
	others.Wait()
	close(released)
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("the caller that left got %v", err)
	}
	due, _, err := s.DueTimers(t.Context(), testKey("").Operation, time.Hour, 10)
	if err != nil || len(due) != 2 {
		t.Errorf("%d timers, error %v; want the two of the batch", len(due), err)
	}
}

// pause waits for c. A test finds it on the stack: a signal would order the accesses to
// memory, and the race detector would see no race.
//
//go:noinline
func pause(c <-chan struct{}) { <-c }
