package pgstore

import (
	"context"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/encrypted"
)

// oneKey is a key whose ID is "a".
type oneKey struct{}

func (oneKey) Current(context.Context) (string, []byte, error)   { return "a", make([]byte, 32), nil }
func (oneKey) Key(context.Context, string) (key []byte, _ error) { return make([]byte, 32), nil }

// Every way to an Atomic encrypts: Run, In, batches, prefetched batches, and the records
// about transactions that were rolled back.
func TestAtomic_Encryption_NothingInTheClear(t *testing.T) {
	t.Parallel()
	const canary = "canary-4711"
	s := openNew(t, nil)
	c := &encrypted.Cipher{Keys: oneKey{}, RequireEncrypted: true}
	a, err := NewAtomic(s, &semel.Options{Encryption: c, MaxAttempts: 2})
	if err != nil {
		t.Fatal(err)
	}
	app := application(t, s)
	result := store.Outcome{Code: 201, Body: []byte(canary), Header: []store.Header{{Name: "X", Value: canary}}}
	wantResult := func(what string, res semel.Result, err error, replayed bool) {
		t.Helper()
		if err != nil || !res.Outcome.Equal(result) || res.Replayed != replayed {
			t.Errorf("%s: %+v, %v; want the result, replayed %v", what, res, err, replayed)
		}
	}
	for i := range 2 {
		again := i > 0
		res, err := a.Run(t.Context(), call("run"), func(context.Context, *semel.Execution) (store.Outcome, error) { return result, nil })
		wantResult("Run", res, err, again)

		tx, err := app.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		res, err = a.In(tx).Run(t.Context(), call("in"), func(context.Context, *semel.Execution) (store.Outcome, error) { return result, nil })
		wantResult("In", res, err, again)
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}

		work := func(_ context.Context, newCalls []*PendingCall) error {
			for _, f := range newCalls {
				f.Outcome = result
			}
			return nil
		}
		for _, e := range a.RunBatch(t.Context(), []semel.Call{call("batch1"), call("batch2")}, work) {
			wantResult("RunBatch", e.Result, e.Err, again)
		}
		calls := []semel.Call{call("prefetched1"), call("prefetched2")}
		for _, e := range a.Prefetcher().Prefetch(t.Context(), calls).Run(t.Context(), work) {
			wantResult("Prefetch", e.Result, e.Err, again)
		}
		err = Once(t.Context(), a, call("failed"), func(context.Context, *semel.Execution, pgx.Tx) error {
			return semel.Final(errors.New(canary))
		})
		if f, ok := errors.AsType[*semel.Failure](err); !ok || f.Message != canary {
			t.Errorf("a failure: %v", err)
		}
	}
	if err := Once(t.Context(), a, call("noted"), func(context.Context, *semel.Execution, pgx.Tx) error { return errors.New(canary) }); err == nil {
		t.Error("no error")
	}
	f, err := c.Store(s).Get(t.Context(), store.Key{Operation: "pay", Tenant: "ann", Value: "noted"})
	if err != nil || f.Record.State != store.Released || f.Record.LastError != canary {
		t.Errorf("the record of a failed attempt: %v %q, %v", f.Record.State, f.Record.LastError, err)
	}
	rows := ask[[]string](t, s.ownPool, "SELECT array_agg(t::text) FROM "+s.quoted()+".semel_record t")
	if len(rows) != 8 {
		t.Errorf("%d rows, want 8", len(rows))
	}
	for _, row := range rows { // a column of bytes is in hexadecimal
		if strings.Contains(row, canary) || strings.Contains(row, hex.EncodeToString([]byte(canary))) {
			t.Errorf("a row has %s", row)
		}
	}
}

// A call without a result is stored as it is, so that a prefetch need not run again.
func TestPrefetch_Encryption_RecordsAreConfirmed(t *testing.T) {
	t.Parallel()
	s := openNew(t, nil)
	a, err := NewAtomic(s, &semel.Options{Encryption: &encrypted.Cipher{Keys: oneKey{}, RequireEncrypted: true}})
	if err != nil {
		t.Fatal(err)
	}
	runs := 0
	calls := []semel.Call{call("a"), call("b")}
	for i := range 2 {
		batch := a.Prefetcher().Prefetch(t.Context(), calls)
		for _, e := range batch.Run(t.Context(), func(context.Context, []*PendingCall) error { runs++; return nil }) {
			if e.Err != nil || e.Replayed != (i > 0) {
				t.Errorf("replayed %v, %v", e.Replayed, e.Err)
			}
		}
	}
	if runs != 1 {
		t.Errorf("the handler ran %d times", runs)
	}
	if n := a.savepointBatches.Load(); n > 0 {
		t.Error("the records of the prefetch were not confirmed, and the batch ran again")
	}
}
