package pgstore

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// With HashKeys no byte of a tenant or key is in the server's files, its write-ahead log
// included, whichever way the record was made: a Guard, Do, In, DoSQL,
// batches, prefetched batches, and records about transactions that were rolled back.
func TestHashKeys_EveryWay_NoByteInTheServersFiles(t *testing.T) {
	t.Parallel()
	const control = "control-0815"
	server := pgtest.Start(t)
	s := openAt(t, server.URL(), nil)
	secret := []byte("0123456789abcdef0123456789abcdef")
	call := func(key string) semel.Call {
		return semel.Call{Operation: "pay", Tenant: canaryTenant, Key: canaryTenant + key, Payload: semel.NoPayload()}
	}
	app := application(t, s)
	db := stdlib.OpenDB(*app.Config().ConnConfig)
	t.Cleanup(func() { _ = db.Close() })
	runs := 0
	count := func(_ context.Context, x *semel.Execution) error {
		if runs++; x.Tenant() != (store.Key{Tenant: canaryTenant}).Hashed(secret).Tenant {
			t.Errorf("a run has the tenant %q", x.Tenant())
		}
		return nil
	}
	work := func(_ context.Context, newCalls []*PendingCall) error {
		runs += len(newCalls)
		return nil
	}
	for range 2 { // two processes
		a, err := NewAtomic(s, &semel.Options{HashKeys: secret, MaxAttempts: 1})
		if err != nil {
			t.Fatal(err)
		}
		g, err := semel.New(s, &semel.Options{HashKeys: secret})
		if err != nil {
			t.Fatal(err)
		}
		tx, err := app.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		errs := []error{
			semel.Once(t.Context(), g, call("leased"), func(ctx context.Context, x *semel.Execution) error {
				return Once(ctx, a, x.Step("charge"), func(ctx context.Context, x *semel.Execution, _ pgx.Tx) error { return count(ctx, x) })
			}),
			semel.Once(t.Context(), a, call("run"), count),
			semel.Once(t.Context(), a.In(tx), call("in"), count),
			tx.Commit(t.Context()),
		}
		_, err = DoSQL(t.Context(), a, db, call("sql"), func(ctx context.Context, x *semel.Execution, _ *sql.Tx) (int, error) { return 0, count(ctx, x) })
		errs = append(errs, err)
		for _, e := range a.RunBatch(t.Context(), []semel.Call{call("batch1"), call("batch2")}, work) {
			errs = append(errs, e.Err)
		}
		for _, e := range a.Prefetcher().Prefetch(t.Context(), []semel.Call{call("prefetched1"), call("prefetched2"), call("batch1")}).Run(t.Context(), work) {
			errs = append(errs, e.Err)
		}
		if err := errors.Join(errs...); err != nil {
			t.Error(err)
		}
		if err := Once(t.Context(), a, call("failed"), func(context.Context, *semel.Execution, pgx.Tx) error { return errors.New("boom") }); err == nil {
			t.Error("no error")
		}
	}
	if runs != 8 {
		t.Errorf("%d effects, want 8", runs)
	}
	clear, err := semel.New(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := call("clear")
	c.Tenant, c.Key = control, control
	if err := semel.Once(t.Context(), clear, c, func(context.Context, *semel.Execution) error { return nil }); err != nil {
		t.Fatal(err)
	}
	mustExec(t, s.ownPool, "ANALYZE") // the statistics have samples of values
	mustExec(t, s.ownPool, "CHECKPOINT")
	if inFiles(t, server.DataDir(), control) == 0 {
		t.Error("a call without the hash is not in the files, so the test would find nothing")
	}
	if hits := canaries(t, server.DataDir()); hits > 0 {
		t.Errorf("the canary is in the files %d times", hits)
	}
	if n := ask[int](t, s.ownPool, "SELECT count(*) FROM semel.semel_record"); n != 10 {
		t.Errorf("%d records, want 10", n)
	}
}
