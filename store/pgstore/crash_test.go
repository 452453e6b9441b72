package pgstore

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// writeEvidence is what the evidence command collects.
func writeEvidence(t *testing.T, claim string, control bool, trials, failures int64, detail string) {
	t.Helper()
	b, err := json.Marshal(map[string]any{
		"claim": claim, "where": "PostgreSQL", "trials": trials, "failures": failures, "control": control, "detail": detail,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("evidence: %s", b)
}

// kills is how often a server is killed.
func kills() int {
	if os.Getenv("SEMEL_EVIDENCE") == "1" {
		return 200
	}
	return 2
}

// goroutineCount is how many settlements are confirmed before a kill.
func goroutineCount() int {
	if os.Getenv("SEMEL_EVIDENCE") == "1" {
		return 1500
	}
	return 150
}

// workerCount is how many work at a time, in pairs.
func workerCount() int {
	if os.Getenv("SEMEL_EVIDENCE") == "1" {
		return 256
	}
	return 64
}

// crash kills the server while claims and settlements go on, n times or until
// enough is lost, and returns the ledger.
func crash(t *testing.T, srv *pgtest.Server, n int, enough func(*ledger) bool) (l *ledger, kills int) {
	l = newLedger()
	s := openAt(t, srv.URL(), nil)
	mustExec(t, s.ownPool, "CHECKPOINT") // the tables stay, also without synchronous_commit
	for round := range n {
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for g := range workerCount() {
			all.Go(func() { l.work(ctx, s, fmt.Sprint(round, "/", g/2)) })
		}
		l.grow(t, goroutineCount())
		srv.Kill()
		if err := srv.Start(); err != nil {
			t.Fatal(err)
		}
		l.grow(t, goroutineCount()/3) // the same handle goes on
		cancel()
		all.Wait()
		if kills++; enough != nil && enough(l) {
			break
		}
	}
	return l, kills
}

func TestStore_ServerKilled_ConfirmedRecordsStay(t *testing.T) {
	t.Parallel()
	srv := pgtest.Start(t, pgtest.Durable...)
	l, n := crash(t, srv, kills(), nil)
	lost, doubles := l.lost(t, openAt(t, srv.URL(), nil))
	writeEvidence(t, "a confirmed claim or outcome survives kill -9 of the server", false, l.trials(), lost, l.detail(n))
	writeEvidence(t, "no key has two owners or two outcomes after kill -9 of the server", false, int64(len(l.won)), doubles, "two callers want each key")
	if lost != 0 || doubles != 0 || l.resent.Load() == 0 {
		t.Errorf("%d lost, %d doubles; %d requests met a crash", lost, doubles, l.resent.Load())
	}
}

// The harness must be able to see a loss, and its sequel.
func TestStore_SynchronousCommitOff_CrashLoses(t *testing.T) {
	t.Parallel()
	srv := pgtest.Start(t, "fsync=on", "synchronous_commit=off", "wal_writer_delay=500ms")
	l, n := crash(t, srv, max(10, kills()/10), func(l *ledger) bool {
		lost, doubles := l.lost(t, openAt(t, srv.URL(), nil))
		return lost > 0 && doubles > 0
	})
	lost, doubles := l.lost(t, openAt(t, srv.URL(), nil))
	writeEvidence(t, "with synchronous_commit=off a crash of the server loses what it confirmed", true, l.trials(), lost, fmt.Sprintf("%d doubles; %s", doubles, l.detail(n)))
	if lost == 0 {
		t.Error("nothing was lost: the harness is blind")
	}
}

// Relaxed claims may be lost in a crash; a confirmed outcome may not.
func TestRelaxedClaims_ServerKilled_OutcomesStay(t *testing.T) {
	t.Parallel()
	srv := pgtest.Start(t, append([]string{"wal_writer_delay=500ms"}, pgtest.Durable...)...)
	l := newLedger()
	s := openAt(t, srv.URL(), &Options{RelaxedClaims: true})
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for g := range 32 {
		all.Go(func() { l.work(ctx, s, fmt.Sprint(g)) })
	}
	l.grow(t, 300)
	srv.Kill()
	cancel()
	all.Wait()
	if err := srv.Start(); err != nil {
		t.Fatal(err)
	}
	l.won, l.gone = nil, 0
	if lost, doubles := l.lost(t, openAt(t, srv.URL(), nil)); lost+doubles != 0 {
		t.Errorf("%d outcomes of %d were lost, %d are others", lost, l.settled, doubles)
	}
	park := proposal("park")
	park.Policy = store.Park
	if _, err := openAt(t, srv.URL(), &Options{RelaxedClaims: true}).Claim(t.Context(), park); err == nil {
		t.Error("a relaxed claim with policy park was taken")
	}
}

// Atomic: the business rows are there exactly once, whenever the server dies.
func TestAtomic_ServerKilled_EffectsOnce(t *testing.T) {
	t.Parallel()
	srv := pgtest.Start(t, pgtest.Durable...)
	p := newShop(t, openAt(t, srv.URL(), nil), nil)
	n := kills()
	var confirmed, resent atomic.Int64
	for round := range n {
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for g := range 8 {
			all.Go(func() {
				for i := 0; ctx.Err() == nil; i++ {
					key := fmt.Sprint(round, "/", g, "/", i)
					_, ok, _ := persist(ctx, &resent, func() (string, error) { return Do(ctx, p.a, call(key), p.pay(key, nil)) })
					if ok {
						confirmed.Add(1)
					}
				}
			})
		}
		grow := func(n int64) {
			from := confirmed.Load()
			waitFor(t, "transactions are confirmed", func() bool { return confirmed.Load() >= from+n })
		}
		grow(100)
		srv.Kill()
		if err := srv.Start(); err != nil {
			t.Fatal(err)
		}
		grow(20)
		cancel()
		all.Wait()
	}
	rows, keys, records := p.count(t, srv.URL())
	writeEvidence(t, "an Atomic effect is there exactly once after kill -9 of the server", false, confirmed.Load(), rows-keys+max(0, confirmed.Load()-rows),
		fmt.Sprintf("%d kills, %d rows, %d tries sent again", n, rows, resent.Load()))
	if rows != keys || rows != records || rows < confirmed.Load() {
		t.Errorf("%d confirmed, %d rows of %d keys, %d records", confirmed.Load(), rows, keys, records)
	}
}

// count opens connections of its own, because those of the shop may have died with the
// server.
func (p *shop) count(t *testing.T, url string) (rows, keys, records int64) {
	t.Helper()
	db := openAt(t, url, &p.s.options).ownPool
	rows = ask[int64](t, db, "SELECT count(*) FROM "+p.table)
	keys = ask[int64](t, db, "SELECT count(DISTINCT key) FROM "+p.table)
	records = ask[int64](t, db, "SELECT count(*) FROM "+p.s.quoted()+".semel_record WHERE state = 4")
	return rows, keys, records
}

// A backend that dies takes every session with it; the server comes back by
// itself, and so does the store.
func TestStore_BackendTerminated_WorkContinues(t *testing.T) {
	s := openNew(t, nil)
	l := newLedger()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for g := range 16 {
		all.Go(func() { l.work(ctx, s, fmt.Sprint(g)) })
	}
	for range 5 {
		l.grow(t, 50)
		conn, err := pgx.Connect(ctx, pgtest.URL(t))
		if err != nil {
			t.Fatal(err)
		}
		mustExec(t, conn, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND query LIKE '%semel_record%'")
		_ = conn.Close(ctx)
	}
	l.grow(t, 50)
	cancel()
	all.Wait()
	if lost, doubles := l.lost(t, openAt(t, pgtest.URL(t), &s.options)); lost+doubles != 0 || l.resent.Load() == 0 {
		t.Errorf("%d lost, %d doubles; %d requests met the death of their connection", lost, doubles, l.resent.Load())
	}
}
