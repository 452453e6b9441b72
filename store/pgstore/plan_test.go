package pgstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/driver"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
	"github.com/semel-go/semel/store/pgstore/internal/table"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// The plan of a batch statement that was made for an empty table must use the index
// for each row of a large one, without statistics.
func TestPlan_MadeForEmptyTable_UsesIndex(t *testing.T) {
	t.Parallel()
	bothTables(t, func(t *testing.T, partitions int) {
		s := openNew(t, &Options{Flushers: 1, Connections: 1, Partitions: partitions})
		if !s.hasPlannerSettings {
			t.Error("its connections are not steady")
		}
		planStaysGoodFromEmpty(t, s)
	})
}

// So it must where the connections are not as the store asks for, here because
// the user does: then each batch brings its settings.
func TestPlan_UserSettings_UsesIndex(t *testing.T) {
	t.Parallel()
	at := pgtest.URL(t)
	url := at + "&enable_hashjoin=on&enable_seqscan=on&plan_cache_mode=auto"
	s := openAt(t, url, &Options{Schema: newSchema(t, at), Flushers: 1, Connections: 1})
	if s.hasPlannerSettings {
		t.Error("the store takes its connections for steady")
	}
	planStaysGoodFromEmpty(t, s)
	if is := ask[string](t, s.ownPool, "SELECT current_setting('enable_seqscan')"); is != "on" {
		t.Errorf("enable_seqscan is %s in the user's session", is)
	}
}

// bothTables runs a test with one table, and with partitions.
func bothTables(t *testing.T, test func(t *testing.T, partitions int)) {
	t.Helper()
	for _, n := range []int{0, 4} {
		t.Run(fmt.Sprint(n, " partitions"), func(t *testing.T) { test(t, n) })
	}
}

// noVacuum turns autovacuum off for the records.
func noVacuum(t *testing.T, s *Store) {
	t.Helper()
	mustExec(t, s.ownPool, `DO $$ DECLARE one regclass; BEGIN
		FOR one IN SELECT c.oid FROM pg_class c WHERE c.relnamespace = to_regnamespace(`+table.Literal(s.quoted())+`) AND c.relkind = 'r' AND c.relname LIKE 'semel\_record%' LOOP
			EXECUTE 'ALTER TABLE ' || one || ' SET (autovacuum_enabled = off)';
		END LOOP;
	END $$`)
}

func planStaysGoodFromEmpty(t *testing.T, s *Store) {
	t.Helper()
	noVacuum(t, s)
	step := func(round int) {
		var ps []*store.Proposal
		for i := range 64 {
			p := proposal(fmt.Sprint(round, " ", i))
			ps = append(ps, &p)
		}
		var settles []*settleItem
		for _, it := range claimBatch(s, ps...) {
			if it.Err != nil || !it.Res.Won {
				t.Fatalf("claim: won %v, error %v", it.Res.Won, it.Err)
			}
			l, c := it.Res.Record.Lease(), completion("result")
			r, _ := newSettleRequest(&l, &c)
			settles = append(settles, &settleItem{Req: r})
		}
		s.flushSettles(t.Context(), settles)
		var looks []*replayItem
		for _, it := range settles {
			if it.Err != nil {
				t.Fatal(it.Err)
			}
			looks = append(looks, &replayItem{Req: replayRequest{it.Req.id, it.Req.lease.Key}})
		}
		s.flushReplays(t.Context(), looks)
		for _, it := range looks {
			if it.Err != nil || !replayable(&it.Res) {
				t.Fatalf("%+v, error %v", it.Res, it.Err)
			}
		}
	}
	for round := range 8 { // by now the plans are kept
		step(round)
	}
	fill(t, s.ownPool, s.quoted()+".semel_record")
	before := scans(t, s)
	for round := range 8 {
		step(100 + round)
	}
	if n := scans(t, s) - before; n != 0 {
		t.Errorf("8 batches read the whole table %d times", n)
	}
}

// The same of single statements, and with the statistics of a small table.
func TestPlan_MadeForSmallTable_UsesIndex(t *testing.T) {
	t.Parallel()
	bothTables(t, func(t *testing.T, partitions int) {
		planStaysGoodFromSmall(t, openNew(t, &Options{Flushers: 1, Connections: 1, Partitions: partitions}))
	})
}

func planStaysGoodFromSmall(t *testing.T, s *Store) {
	t.Helper()
	table := s.quoted() + ".semel_record"
	noVacuum(t, s)
	for i := range 20 {
		complete(t, s, fmt.Sprint("first ", i), "result")
	}
	app := application(t, s)
	mustExec(t, app, "ANALYZE "+table)
	for i := range 8 { // by now the plans are kept
		complete(t, s, fmt.Sprint("small ", i), "result")
	}
	fill(t, app, table)
	before := scans(t, s)
	for i := range 8 {
		complete(t, s, fmt.Sprint("large ", i), "result")
	}
	if n := scans(t, s) - before; n != 0 {
		t.Errorf("8 claims, settlements and reads read the whole table %d times", n)
	}
}

// scans is how often the table was read as a whole.
func scans(t *testing.T, s *Store) int {
	t.Helper()
	mustExec(t, s.ownPool, "SELECT pg_stat_force_next_flush()")
	return ask[int](t, s.ownPool, "SELECT sum(seq_scan)::int FROM pg_stat_user_tables WHERE schemaname = $1 AND relname LIKE 'semel\\_record%'", s.options.Schema)
}

// fill makes a table large, without statistics of that.
func fill(t *testing.T, db pgwire.Execer, table string) {
	t.Helper()
	mustExec(t, db, `INSERT INTO `+table+` (id, owner, state, policy, attempt, until, expires, created, updated, format, fence,
		operation, tenant, key, holder, fingerprint_alg, fingerprint_key, fingerprint, last_error)
		SELECT gen_random_uuid(), gen_random_uuid(), 4, 0, 1, 0, 1, 1, 1, 1, 1, '', '', '', '', '', '', '', '' FROM generate_series(1, 50000)`)
}

// The same of a batch, which goes through the application's connections, with
// their settings.
func TestPlan_BatchMadeForSmallTable_UsesIndex(t *testing.T) {
	t.Parallel()
	bothTables(t, func(t *testing.T, partitions int) {
		planOfABatchStaysGood(t, newShop(t, openNew(t, &Options{Partitions: partitions}), nil))
	})
}

// batchPlans are the settings that a batch changes while it looks up its keys.
const batchPlans = "SELECT concat_ws(' ', current_setting('plan_cache_mode'), current_setting('enable_seqscan'), current_setting('jit'))"

// The lookup of a batch is not compiled, however expensive the settings of the application make
// its plan look: here any plan.
func TestPlan_LookupOfBatch_NotCompiled(t *testing.T) {
	t.Parallel()
	tx, err := application(t, openNew(t, nil)).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	mustExec(t, tx, "SET LOCAL jit = on")
	mustExec(t, tx, "SET LOCAL jit_above_cost = 0")
	compiled := func() bool {
		plan, err := tx.Query(t.Context(), "EXPLAIN SELECT one + 1 FROM generate_series(1, 1000) AS one")
		if err != nil {
			t.Fatal(err)
		}
		lines, err := pgx.CollectRows(plan, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		return slices.Contains(lines, "JIT:")
	}
	if !compiled() {
		t.Skip("this server has no JIT")
	}
	mustExec(t, tx, useGenericPlans)
	if compiled() {
		t.Error("the server compiles the statements of a batch")
	}
	mustExec(t, tx, restorePlans)
	if !compiled() {
		t.Error("later statements of the transaction are not compiled")
	}
}

func planOfABatchStaysGood(t *testing.T, p *shop) {
	t.Helper()
	noVacuum(t, p.s)
	conn, err := p.s.appPool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	step := func(round int) {
		tx, err := conn.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		before := ask[string](t, tx, batchPlans)
		y, n := p.a.newBatchTry(p.s.newTx(tx, true), false), 0
		if err := y.lookUpCalls(t.Context(), all(64), poll(numbered(fmt.Sprint(round, "/"), 64)...)); err != nil {
			t.Fatal(err)
		}
		for i := range y.calls {
			y.calls[i].events = &driver.TxEvents{}
		}
		err = y.runCalls(t.Context(), func(newCalls []*PendingCall) error { n = len(newCalls); return nil })
		y.tx.queueInserts()
		if err = errors.Join(err, y.tx.pipeline.Flush(t.Context())); err != nil || n != 64 {
			t.Fatalf("%d calls of 64 are new, error %v", n, err)
		}
		if after := ask[string](t, tx, batchPlans); after != before {
			t.Errorf("the settings of the handler were %q, and are %q", before, after)
		}
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	step(0)
	mustExec(t, p.s.ownPool, "ANALYZE "+p.s.quoted()+".semel_record")
	for round := range 8 {
		step(1 + round)
	}
	fill(t, p.s.ownPool, p.s.quoted()+".semel_record")
	mustExec(t, conn, "SELECT pg_stat_force_next_flush()")
	before := scans(t, p.s)
	for round := range 8 {
		step(100 + round)
	}
	mustExec(t, conn, "SELECT pg_stat_force_next_flush()")
	if n := scans(t, p.s) - before; n != 0 {
		t.Errorf("8 batches read the whole table %d times", n)
	}
}
