package pgstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/erase"
	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

const canaryTenant = "canary-4711"

// canaries is how often the canary is in the files of a directory.
func canaries(t *testing.T, dir string) (hits int) { return inFiles(t, dir, canaryTenant) }

// inFiles is how often a text is in the files of a directory.
func inFiles(t *testing.T, dir, text string) (hits int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		doc, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // the server has removed it
		}
		hits += bytes.Count(doc, []byte(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return hits
}

// fillWithCanaries makes calls of every kind for two tenants. The canary is in the names,
// keys, answers, headers, errors and steps of one of them.
func fillWithCanaries(t *testing.T, st store.Store, n int) {
	t.Helper()
	g, err := semel.New(st, nil)
	if err != nil {
		t.Fatal(err)
	}
	orders, err := saga.New(g, saga.Definition[string, string]{
		Name: "order", Steps: []string{"charge"},
		Run: func(ctx context.Context, r *saga.Run, in string) (string, error) {
			return saga.Step(ctx, r, "charge", func(context.Context, saga.At) (string, error) { return in, nil }, nil)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		for _, text := range []string{"other-0815", canaryTenant} {
			body := []byte(text)
			for j := range i * 40 { // some are so large that they are stored beside the table
				body = fmt.Appendf(body, " %s %d", text, j*j)
			}
			_, _ = g.Run(t.Context(), semel.Call{Operation: "pay", Tenant: text, Key: fmt.Sprint(text, "-", i), Payload: semel.NoPayload()},
				func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
					o := store.Outcome{Code: 200, Body: body, Header: []store.Header{{Name: "Location", Value: text}}}
					switch i % 4 {
					case 0:
						return o, semel.Final(&semel.Failure{Code: "declined", Message: text, Data: body})
					case 1:
						return o, errors.New(text)
					case 2:
						_, err := semel.Do(ctx, g, x.Step("charge "+text), func(context.Context, *semel.Execution) (string, error) { return string(body), nil })
						return o, err
					}
					return o, nil
				})
		}
	}
	if _, err := orders.Do(t.Context(), canaryTenant, canaryTenant, canaryTenant); err != nil {
		t.Fatal(err)
	}
}

func eraseCanary(t *testing.T, s *Store) {
	t.Helper()
	r, err := erase.Run(t.Context(), s, erase.Scope{Tenant: canaryTenant}, nil)
	if err != nil || r.Left() > 0 || r.Erased == 0 {
		t.Fatalf("erased %+v, error %v", r, err)
	}
}

// After a tenant was erased and the tables scrubbed, no byte of the tenant is in the files
// of the database. Its write-ahead log has some until the server writes over it.
func TestScrub_ErasedTenant_NoByteLeftInTables(t *testing.T) {
	t.Parallel()
	for _, partitions := range []int{0, 3} {
		server := pgtest.Start(t)
		s := openAt(t, server.URL(), &Options{Partitions: partitions})
		fillWithCanaries(t, s, 24)
		mustExec(t, s.ownPool, "ANALYZE") // the statistics have samples of values
		mustExec(t, s.ownPool, "CHECKPOINT")
		base, wal := filepath.Join(server.DataDir(), "base"), filepath.Join(server.DataDir(), "pg_wal")
		if canaries(t, base) == 0 {
			t.Fatal("the canary is not in the files, so the test would find nothing")
		}
		others := func() string {
			return ask[string](t, s.ownPool, `SELECT md5(string_agg(r::text, ',' ORDER BY id)) || ' ' || md5(string_agg(s::text, ',' ORDER BY n)) || ' ' || count(*)
				FROM semel.semel_record r LEFT JOIN semel.semel_step s ON s.record = r.id WHERE tenant = 'other-0815'`)
		}
		before := others()
		eraseCanary(t, s)
		mustExec(t, s.ownPool, "VACUUM")
		mustExec(t, s.ownPool, "CHECKPOINT")
		t.Logf("partitions %d: after the erasure and a plain VACUUM the canary is in the tables %d times", partitions, canaries(t, base))
		if err := s.Scrub(t.Context()); err != nil {
			t.Fatal(err)
		}
		mustExec(t, s.ownPool, "CHECKPOINT")
		if hits := canaries(t, base); hits > 0 {
			t.Errorf("partitions %d: after Scrub the canary is in the tables %d times", partitions, hits)
		}
		mustExec(t, s.ownPool, "SELECT pg_switch_wal()")
		mustExec(t, s.ownPool, "CHECKPOINT")
		t.Logf("partitions %d: after a checkpoint and a switch of the write-ahead log the canary is there %d times, and elsewhere %d times",
			partitions, canaries(t, wal), canaries(t, server.DataDir())-canaries(t, wal))
		if after := others(); after != before || !strings.HasSuffix(after, " 24") {
			t.Errorf("the records of the other tenant were %s and are %s", before, after)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A transaction from before the erasure can still read the rows, so VACUUM FULL copies
// them. Scrub does not claim that they are gone.
func TestScrub_OldTransaction_IsBusyUntilItEnds(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	s := openAt(t, server.URL(), &Options{LockTimeout: 50 * time.Millisecond})
	fillWithCanaries(t, s, 4)
	tx, err := application(t, s).BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	if n := ask[int](t, tx, "SELECT count(*) FROM semel.semel_record"); n == 0 {
		t.Fatal("there are no records")
	}
	eraseCanary(t, s)
	if err := s.Scrub(t.Context()); !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), "process ") {
		t.Errorf("Scrub beside an old transaction: error %v, want ErrBusy and the process", err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Scrub(t.Context()); err != nil {
		t.Errorf("Scrub after it: %v", err)
	}
	mustExec(t, s.ownPool, "CHECKPOINT")
	if hits := canaries(t, filepath.Join(server.DataDir(), "base")); hits > 0 {
		t.Errorf("the canary is in the tables %d times", hits)
	}

	// A later transaction that has used a table stops no other call for longer than
	// LockTimeout: VACUUM FULL gives up.
	later, err := application(t, s).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_ = ask[int](t, later, "SELECT count(*) FROM semel.semel_record")
	if err := s.Scrub(t.Context()); !errors.Is(err, ErrBusy) {
		t.Errorf("Scrub while a table is in use: error %v, want ErrBusy", err)
	}
	if err := later.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}

	// A role that may not write the tables anew is told so.
	mustExec(t, s.ownPool, `CREATE ROLE operator LOGIN; GRANT USAGE ON SCHEMA semel TO operator; GRANT ALL ON ALL TABLES IN SCHEMA semel TO operator`)
	weak := openAt(t, strings.Replace(server.URL(), "postgres@", "operator@", 1), &Options{NoMigrate: true})
	for _, right := range []string{"pg_read_all_stats", "own the tables"} {
		if err := weak.Scrub(t.Context()); err == nil || !strings.Contains(err.Error(), right) {
			t.Errorf("Scrub by a role without rights: error %v, want one that names %s", err, right)
		}
		mustExec(t, s.ownPool, "GRANT pg_read_all_stats TO operator")
	}
}
