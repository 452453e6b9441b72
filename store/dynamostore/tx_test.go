package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// A handler can neither commit its transaction nor add to it after it has returned,
// and a call inside of the handler joins the transaction.
func TestAtomic_HandlersTransaction_EndsWithHandler(t *testing.T) {
	t.Parallel()
	s := openNew(t, nil)
	a := atomicOf(t, s)
	var left *Tx
	own := s.NewTx()
	_, err := a.In(own).Run(t.Context(), testCall("own"), func(ctx context.Context, _ *semel.Execution) (store.Outcome, error) {
		left, _ = TxFrom(ctx)
		return store.Outcome{}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := left.Add(s.count("late")); err == nil {
		t.Error("a write after the handler has returned, before the commit, is no error")
	}
	if err := errors.Join(own.Add(s.count("own")), own.Commit(t.Context())); err != nil {
		t.Errorf("the caller's own write and commit: %v", err)
	}
	err = Once(t.Context(), a, testCall("k"), func(ctx context.Context, _ *semel.Execution, tx *Tx) error {
		left = tx
		if err := tx.Commit(ctx); err == nil {
			t.Error("the handler has committed its transaction")
		}
		inner := Once(ctx, a, testCall("inner"), func(_ context.Context, _ *semel.Execution, tx *Tx) error { return tx.Add(s.count("inner")) })
		return errors.Join(inner, tx.Add(s.count("k")))
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := left.Add(s.count("late")); err == nil {
		t.Error("a write after the commit is no error")
	}
	for name, want := range map[string]int64{"own": 1, "k": 1, "inner": 1, "late": 0} {
		if n := s.counted(t, name); n != want {
			t.Errorf("the effect %s happened %d times, want %d", name, n, want)
		}
	}
}

func TestTx_TooManyWrites_Refused(t *testing.T) {
	t.Parallel()
	s := openNew(t, nil)
	tx := s.NewTx()
	for i := range maxWrites - 1 {
		if err := tx.Add(s.count(fmt.Sprint(i))); err != nil {
			t.Fatalf("write %d: %v", i+1, err)
		}
	}
	if err := tx.Add(s.count("more")); err == nil || !strings.Contains(err.Error(), "100") {
		t.Errorf("write 100 beside a record: %v, want an error that names the limit", err)
	}
	if _, err := tx.Claim(t.Context(), proposal("k")); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Errorf("a transaction with 99 writes and a record: %v", err)
	}
	if err := tx.Commit(t.Context()); err == nil {
		t.Error("a second Commit is no error")
	}
	if err := tx.Add(s.count("late")); err == nil {
		t.Error("Add after Commit is no error")
	}
}
