package pgstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/internal/table"
)

// holdRows locks the rows of keys for as long as a test says, as an operator's
// open transaction does.
func holdRows(t *testing.T, s *Store, keys ...string) (release func()) {
	t.Helper()
	tx, err := s.appPool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range keys {
		tag, err := tx.Exec(t.Context(), "SELECT FROM "+s.quoted()+".semel_record WHERE id = $1 FOR UPDATE", table.ID(testKey(k)))
		if err != nil || tag.RowsAffected() != 1 {
			t.Fatalf("lock %s: %v, %v", k, tag, err)
		}
	}
	done := false
	release = func() {
		if !done {
			done = true
			if err := tx.Rollback(context.Background()); err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(release)
	return release
}

func TestLockedRow_OtherKeys_NotDelayed(t *testing.T) {
	t.Parallel()
	s := openNew(t, &Options{Flushers: 1, LockTimeout: 10 * time.Minute})
	stuck := claim(t, s, "stuck")
	records := map[string]store.Record{}
	for i := range 64 {
		records[itoa(i)] = claim(t, s, itoa(i))
	}
	release := holdRows(t, s, "stuck")
	slow := make(chan error, 1)
	go func() { slow <- s.Settle(t.Context(), stuck.Lease(), completion("late")) }()
	start := time.Now()
	var all sync.WaitGroup
	for k, r := range records {
		all.Go(func() {
			if err := s.Settle(t.Context(), r.Lease(), completion(k)); err != nil {
				t.Errorf("settle of %s: %v", k, err)
			}
			if f, err := s.Claim(t.Context(), proposal("new "+k)); err != nil || !f.Won {
				t.Errorf("claim beside a locked row: %v", err)
			}
			if f, err := s.Claim(t.Context(), proposal("stuck")); err != nil || f.Won {
				t.Errorf("a duplicate of a locked row: won %v, error %v", f.Won, err)
			}
		})
	}
	all.Wait()
	if took := time.Since(start); took > time.Minute {
		t.Errorf("strangers took %v", took)
	}
	select {
	case err := <-slow:
		t.Fatalf("the settlement of the locked row was answered: %v", err)
	default:
	}
	release()
	if err := <-slow; err != nil {
		t.Errorf("the settlement of the locked row, once it is free: %v", err)
	}
}

// A claim that hangs in its batch, longer than it ever may, takes one flusher.
func TestClaim_Hangs_OtherKeysNotDelayed(t *testing.T) {
	for _, relaxed := range []bool{false, true} {
		t.Run(fmt.Sprint("relaxed ", relaxed), func(t *testing.T) {
			s := openNew(t, &Options{RelaxedClaims: relaxed})
			s.shortWaitSession = s.newSession("10min")
			tx := beginTx(t, s, txDefaults)
			if f, err := s.Tx(tx).Claim(t.Context(), proposal("stuck")); err != nil || !f.Won {
				t.Fatalf("won %v, error %v", f.Won, err)
			}
			hung := make(chan error, 1)
			go func() {
				_, err := s.Claim(context.Background(), proposal("stuck"))
				hung <- err
			}()
			waitFor(t, "the claim waits", func() bool {
				return ask[int](t, s.appPool, "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%semel_record%'") > 0
			})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var all sync.WaitGroup
			for i := range 64 {
				all.Go(func() {
					for round := range 4 {
						if f, err := s.Claim(ctx, proposal(fmt.Sprint(i, " ", round))); err != nil || !f.Won {
							t.Errorf("a stranger: won %v, error %v", f.Won, err)
						}
					}
				})
			}
			all.Wait()
			if len(hung) > 0 {
				t.Errorf("the claim did not hang: %v", <-hung)
			}
			if err := tx.Commit(ctx); err != nil {
				t.Fatal(err)
			}
			if err := <-hung; err != nil {
				t.Error(err)
			}
		})
	}
}

// Many want a key that a transaction has open: they must not take all of the
// store's connections.
func TestLockedRow_ManyWaiters_OtherKeysNotDelayed(t *testing.T) {
	s := openNew(t, &Options{Connections: 4, LockTimeout: 10 * time.Minute})
	tx := beginTx(t, s, txDefaults)
	if f, err := s.Tx(tx).Claim(t.Context(), proposal("hot")); err != nil || !f.Won {
		t.Fatalf("won %v, error %v", f.Won, err)
	}
	var crowd sync.WaitGroup
	for range 16 {
		crowd.Go(func() {
			if f, err := s.Claim(context.Background(), proposal("hot")); err != nil || f.Won {
				t.Errorf("one of the crowd: won %v, error %v", f.Won, err)
			}
		})
	}
	const stuck = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%semel_record%'"
	waitFor(t, "the crowd waits", func() bool { return len(s.waitSlots) == cap(s.waitSlots) && ask[int](t, s.appPool, stuck) > 0 })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for i := range 10 {
		if f, err := s.Claim(ctx, proposal(itoa(i))); err != nil || !f.Won {
			t.Fatalf("a stranger: won %v, error %v", f.Won, err)
		}
		if _, err := s.Get(ctx, testKey(itoa(i))); err != nil {
			t.Fatalf("a read: %v", err)
		}
	}
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	crowd.Wait()
}

func TestLockedRow_LockTimeout_ErrBusy(t *testing.T) {
	t.Parallel()
	s := openNew(t, &Options{LockTimeout: 50 * time.Millisecond})
	r := claim(t, s, "k")
	release := holdRows(t, s, "k")
	if err := s.Settle(t.Context(), r.Lease(), completion("x")); !errors.Is(err, ErrBusy) || errors.Is(err, store.ErrLeaseLost) {
		t.Errorf("settle: %v, want ErrBusy", err)
	}
	if _, err := s.Swap(t.Context(), r.Seen(), proposal("k")); !errors.Is(err, ErrBusy) {
		t.Errorf("swap: %v, want ErrBusy", err)
	}
	if n := len(s.waitSlots); n != 0 {
		t.Errorf("%d places of those who wait are left taken", n)
	}
	release()
	if err := s.Settle(t.Context(), r.Lease(), completion("x")); err != nil {
		t.Errorf("settle once it is free: %v", err)
	}
}

func TestRenew_RowLocked_ErrBusyAtOnce(t *testing.T) {
	t.Parallel()
	s := openNew(t, nil)
	a, b := claim(t, s, "a"), claim(t, s, "b")
	lost := store.Lease{Key: testKey("a"), Owner: newOwner(), Fence: a.Fence}
	defer holdRows(t, s, "a")()
	errs, err := s.Renew(t.Context(), []store.Lease{a.Lease(), b.Lease(), lost, b.Lease()}, time.Hour)
	if err != nil || len(errs) != 4 {
		t.Fatalf("Renew: %v, %v", errs, err)
	}
	if !errors.Is(errs[0], ErrBusy) || errs[1] != nil || !errors.Is(errs[2], store.ErrLeaseLost) || errs[3] != nil {
		t.Errorf("Renew of a locked, a free, a lost lease and the free one again: %v", errs)
	}
	if r := get(t, s, "b"); r.Until.Sub(b.Until) < 50*time.Minute {
		t.Errorf("the free lease was not renewed: until %v", r.Until)
	}
}

// A statement that was refused when it committed has renewed nothing, whatever
// rows it had given. (The triggers let it change the row, do not let that
// commit, and let it change no row when it is sent again.)
func TestRenew_CommitRefused_RenewsAgain(t *testing.T) {
	t.Parallel()
	s := openNew(t, nil)
	r := claim(t, s, "k")
	mustExec(t, s.ownPool, fmt.Sprintf(`CREATE SEQUENCE %[1]s.tries;
		CREATE FUNCTION %[1]s.once() RETURNS trigger LANGUAGE plpgsql AS $$
			BEGIN IF nextval(%[2]s) > 1 THEN RETURN NULL; END IF; RETURN NEW; END $$;
		CREATE FUNCTION %[1]s.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
			BEGIN RAISE EXCEPTION 'met another' USING ERRCODE = '40001'; END $$;
		CREATE TRIGGER once BEFORE UPDATE ON %[1]s.semel_record FOR EACH ROW EXECUTE FUNCTION %[1]s.once();
		CREATE CONSTRAINT TRIGGER refuse AFTER UPDATE ON %[1]s.semel_record DEFERRABLE INITIALLY DEFERRED
			FOR EACH ROW EXECUTE FUNCTION %[1]s.refuse()`, s.quoted(), table.Literal(s.quoted()+".tries")))
	errs, err := s.Renew(t.Context(), []store.Lease{r.Lease()}, time.Hour)
	if err != nil || !errors.Is(errs[0], ErrBusy) {
		t.Errorf("Renew: %v, %v, want ErrBusy", errs, err)
	}
	if is := get(t, s, "k"); !is.Until.Equal(r.Until) {
		t.Errorf("it ends at %v, and ended at %v", is.Until, r.Until)
	}
	if n := ask[int](t, s.ownPool, "SELECT last_value::int FROM "+s.quoted()+".tries"); n != 2 {
		t.Errorf("it was sent %d times, want 2", n)
	}
}

// A renewal that comes too late ends a run.
func TestRenew_BatchersBusy_NotDelayed(t *testing.T) {
	t.Parallel()
	s := openNew(t, &Options{Connections: 3})
	r := claim(t, s, "k")
	for range s.options.Connections {
		c, err := s.ownPool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Release()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if errs, err := s.Renew(ctx, []store.Lease{r.Lease()}, time.Hour); err != nil || errs[0] != nil {
		t.Errorf("Renew while requests hold the store's connections: %v, %v", errs, err)
	}
}

func TestPool_HeldByHandlers_StoreContinues(t *testing.T) {
	t.Parallel()
	s := openNew(t, nil)
	r := claim(t, s, "k")
	app := application(t, s)
	mine, err := New(t.Context(), app, &Options{Schema: s.options.Schema})
	if err != nil {
		t.Fatal(err)
	}
	defer mine.Close()
	var held []interface{ Release() }
	for range app.Config().MaxConns {
		c, err := app.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, c)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if errs, err := mine.Renew(ctx, []store.Lease{r.Lease()}, time.Hour); err != nil || errs[0] != nil {
		t.Errorf("Renew while handlers hold the pool: %v, %v", errs, err)
	}
	if err := mine.Settle(ctx, r.Lease(), completion("x")); err != nil {
		t.Errorf("Settle while handlers hold the pool: %v", err)
	}
	for _, c := range held {
		c.Release()
	}
}

func TestSweep_RowLocked_Skipped(t *testing.T) {
	t.Parallel()
	s := openFixedClock(t)
	for i := range 5 {
		complete(t, s, itoa(i), "result")
	}
	advance(t, s, 2*time.Hour)
	release := holdRows(t, s, "3")
	if n := sweepAll(t, s); n != 4 {
		t.Errorf("a pass deleted %d, want 4", n)
	}
	release()
	if n := sweepAll(t, s); n != 1 {
		t.Errorf("the next deleted %d, want 1", n)
	}
}

// A claim meets one that another transaction has inserted and not committed.
func TestClaim_InsertInFlight_Waits(t *testing.T) {
	for name, end := range map[string]func(pgx.Tx) error{
		"commit":   func(tx pgx.Tx) error { return tx.Commit(context.Background()) },
		"rollback": func(tx pgx.Tx) error { return tx.Rollback(context.Background()) },
	} {
		t.Run(name, func(t *testing.T) {
			s := openNew(t, nil)
			tx, err := s.appPool.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = tx.Rollback(context.Background()) }()
			if f, err := s.Tx(tx).Claim(t.Context(), proposal("k")); err != nil || !f.Won {
				t.Fatalf("claim in a transaction: %v", err)
			}
			got := make(chan store.Found, 1)
			go func() {
				f, err := s.Claim(t.Context(), proposal("k"))
				if err != nil {
					t.Error(err)
				}
				got <- f
			}()
			waitFor(t, "the claim waits", func() bool {
				return ask[int](t, s.ownPool, "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%semel_record%'") > 0
			})
			if err := end(tx); err != nil {
				t.Fatal(err)
			}
			if f := <-got; f.Won != (name == "rollback") {
				t.Errorf("after a %s the claim won: %v", name, f.Won)
			}
		})
	}
}

// A claim's statement may return no row: neither its own nor another's. Sent
// again it has one (see above); if it never has, that is an error, and neither
// a win nor an endless loop.
func TestClaim_NoRowReturned_IsError(t *testing.T) {
	t.Parallel()
	s := openNew(t, nil)
	mustExec(t, s.ownPool, "DELETE FROM "+s.quoted()+".semel_meta")
	if f, err := s.Claim(t.Context(), proposal("k")); !errors.Is(err, ErrSchema) || f.Won {
		t.Errorf("won %v, error %v, want ErrSchema", f.Won, err)
	}
	a, b := proposal("a"), proposal("b")
	for _, it := range claimBatch(s, &a, &b) {
		if !errors.Is(it.Err, errSendAlone) {
			t.Errorf("in a batch: %v, want to be sent alone", it.Err)
		}
	}
}
