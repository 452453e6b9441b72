package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// A refusal that was too large to keep must not read as a success, and NoEffect
// around a Failure says that nothing happened.
func TestCrash_ProcessKilledInAtomic_EffectMatchesRecord(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), t.TempDir()+"/x.db", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	a, err := NewAtomic(s, &semel.Options{MaxOutcome: 1000})
	if err != nil {
		t.Fatal(err)
	}
	h := func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
		return store.Outcome{Code: 422, Body: make([]byte, 5000)}, nil
	}
	c := func(k string) semel.Call {
		return semel.Call{Operation: "pay", Tenant: "ann", Key: k, Payload: semel.NoPayload()}
	}
	_, _ = a.Run(t.Context(), c("k"), h)
	res, err := a.Run(t.Context(), c("k"), h)
	if res.Outcome.Code != 422 {
		t.Errorf("the duplicate's status is %d, %v", res.Outcome.Code, err)
	}
	g, err := semel.New(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = g.Run(t.Context(), c("m"), func(context.Context, *semel.Execution) (store.Outcome, error) {
		return store.Outcome{}, errors.New("x")
	})
	if err == nil {
		t.Fatal("the handler's error is not told")
	}
	_, err = Do(t.Context(), a, c("m"), func(ctx context.Context, x *semel.Execution, tx *sql.Tx) (string, error) {
		return "", semel.NoEffect(&semel.Failure{Code: "y"})
	})
	if err == nil {
		t.Error("the failure is not told")
	}
	_, err = Do(t.Context(), a, c("m"), func(ctx context.Context, x *semel.Execution, tx *sql.Tx) (string, error) { return "", nil })
	if err != nil {
		t.Errorf("NoEffect(Failure): %v", err)
	}
}
