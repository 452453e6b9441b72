package pgstore

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
	"github.com/semel-go/semel/store/pgstore/pgtest"
	"github.com/semel-go/semel/store/storetest"
)

// The suite with records in partitions, through a PgBouncer that hands each transaction
// to another connection, with the server's clock, and transactions as Atomic uses them.
func TestConformance_PgBouncer(t *testing.T) {
	t.Parallel()
	at := pgtest.URL(t)
	through := pgtest.Bouncer(t, at)
	storetest.Run(t, storetest.Harness{
		Open: func(t testing.TB) store.Store {
			return openAt(t, through, &Options{Schema: newSchema(t, at), Partitions: 3})
		},
		Reopen: func(t testing.TB, st store.Store) store.Store {
			o := st.(*Store).options
			return openAt(t, through, &o)
		},
		Begin:     beginDeferred,
		Histories: 20,
	})
}

func TestPgBouncer_SharedSession_NoStateLeft(t *testing.T) {
	at := pgtest.URL(t)
	through := pgtest.Bouncer(t, at)
	p := newShop(t, openAt(t, through, &Options{Schema: newSchema(t, at), RelaxedClaims: true}), nil)
	if p.s.hasPlannerSettings {
		t.Error("the store takes a pooler's sessions for its own")
	}
	const settings = `SELECT concat_ws(' ', current_setting('synchronous_commit'), current_setting('lock_timeout'), current_setting('enable_seqscan'),
		current_setting('jit'), current_setting('plan_cache_mode'), current_setting('idle_in_transaction_session_timeout'))`
	before := ask[string](t, p.s.ownPool, settings)
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			complete(t, p.s, itoa(i), "result")
			if _, err := Do(t.Context(), p.a, call(itoa(i)), p.pay(itoa(i), nil)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for range 8 {
		if after := ask[string](t, p.s.ownPool, settings); after != before {
			t.Errorf("a session was left with %q, it had %q", after, before)
		}
	}
	waitFor(t, "no advisory lock is left, of an earlier test's sessions neither", func() bool {
		return ask[int](t, p.s.ownPool, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") == 0
	})
}

// A PgBouncer before 1.21 in transaction mode shares the prepared statements of its
// clients. The store says so at its first start, and at each later one.
func TestOpen_PoolerSharesPreparedStatements_ErrUnsafe(t *testing.T) {
	at := pgtest.URL(t)
	through := pgtest.Bouncer(t, at)
	if !strings.Contains(through, "default_query_exec_mode=exec") {
		t.Skip("this PgBouncer keeps the prepared statements of its clients apart")
	}
	through = strings.Replace(through, "&default_query_exec_mode=exec", "", 1)
	schema := newSchema(t, at)
	for start := range 3 {
		s, err := Open(t.Context(), through, &Options{Schema: schema})
		if err == nil {
			_ = s.Close()
		}
		if !errors.Is(err, ErrUnsafe) || !strings.Contains(fmt.Sprint(err), "default_query_exec_mode=exec") {
			t.Errorf("start %d: got %v, want ErrUnsafe with the cure", start, err)
		}
	}
}

// Nothing has failed before: the check itself finds that two clients share a statement.
func TestCheckPrepared_PoolerShares_FirstPoolRefused(t *testing.T) {
	through := pgtest.Bouncer(t, pgtest.URL(t))
	if !strings.Contains(through, "default_query_exec_mode=exec") {
		t.Skip("this PgBouncer keeps the prepared statements of its clients apart")
	}
	if err := pgwire.CheckPrepared(t.Context(), pool(t, through)); err != nil {
		t.Errorf("without prepared statements: %v", err)
	}
	shared := pool(t, strings.Replace(through, "&default_query_exec_mode=exec", "", 1))
	if err := pgwire.CheckPrepared(t.Context(), shared); !errors.Is(err, ErrUnsafe) {
		t.Errorf("got %v, want ErrUnsafe", err)
	}
}
