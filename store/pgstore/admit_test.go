package pgstore

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// admitIn admits keys in a transaction, does the work of the fresh ones, and
// commits if it is told to.
func admitIn(t *testing.T, p *shop, commit bool, calls ...semel.Call) []Admission {
	t.Helper()
	tx := beginTx(t, p.s, txDefaults)
	got, err := p.a.Admit(t.Context(), tx, calls)
	if err != nil {
		t.Fatal(err)
	}
	for i, is := range got {
		if is.Fresh {
			mustExec(t, tx, "INSERT INTO "+p.table+" VALUES ($1)", calls[i].Key)
		}
	}
	if commit {
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	} else if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	return got
}

func wantFresh(t *testing.T, got []Admission, want ...bool) {
	t.Helper()
	for i, is := range got {
		if is.Fresh != want[i] || is.Err != nil || is.Result.Replayed == want[i] {
			t.Errorf("call %d: %+v, want fresh %v", i, is, want[i])
		}
	}
}

func TestAdmitTellsWhatIsFresh(t *testing.T) {
	p := newShop(t, openNew(t, nil), nil)
	if _, err := Do(t.Context(), p.a, call("old"), p.pay("old", nil)); err != nil {
		t.Fatal(err)
	}
	wantFresh(t, admitIn(t, p, false, poll("a", "old", "b", "a")...), true, false, true, false)
	p.want(t, "old") // it was rolled back, and so nothing was recorded
	wantFresh(t, admitIn(t, p, true, poll("a", "old", "b", "a")...), true, false, true, false)
	wantFresh(t, admitIn(t, p, true, poll("a", "old", "b", "c")...), false, false, false, true)
	p.want(t, "a", "b", "c", "old")
	if r, err := p.record(t, "a"); err != nil || r.State != store.Completed || r.Attempt != 1 {
		t.Errorf("the record is %v, attempt %d, error %v", r.State, r.Attempt, err)
	}
	if got, err := p.a.Admit(t.Context(), beginTx(t, p.s, txDefaults), nil); err != nil || len(got) != 0 {
		t.Errorf("no calls: %v, %v", got, err)
	}
}

func TestAdmitSaysWhyNot(t *testing.T) {
	p := newShop(t, openNew(t, nil), nil)
	declined := &semel.Failure{Code: "declined"}
	if _, err := Do(t.Context(), p.a, call("no"), p.pay("no", declined)); !errors.Is(err, declined) {
		t.Fatal(err)
	}
	other := beginTx(t, p.s, txDefaults)
	if _, err := p.a.Admit(t.Context(), other, poll("hot")); err != nil {
		t.Fatal(err)
	}
	got := admitIn(t, p, true, append(poll("no", "hot", "a"), semel.Call{})...)
	for i, want := range []error{declined, semel.ErrInProgress, nil, semel.ErrInvalid} {
		if !errors.Is(got[i].Err, want) || got[i].Fresh != (want == nil) {
			t.Errorf("call %d: %+v, want %v", i, got[i], want)
		}
	}
	p.want(t, "a")
}

// A leased call has taken a key after it was looked for: the others go on, and
// so does the transaction.
func TestAdmitLosesOneKeyAndNotTheOthers(t *testing.T) {
	p := newShop(t, openNew(t, nil), nil)
	calls := poll("a", "k", "b", "k")
	tx := beginTx(t, p.s, txDefaults)
	y := p.a.newInbox(p.s.newTx(tx, true), false)
	if err := y.gather(t.Context(), all(4), calls); err != nil {
		t.Fatal(err)
	}
	r := claimCall(t, p, "k")
	got, err := y.admitAll(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !got[0].Fresh || !got[2].Fresh || !errors.Is(got[1].Err, semel.ErrInProgress) || !errors.Is(got[3].Err, semel.ErrInProgress) {
		t.Errorf("%+v", got)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if is, err := p.record(t, "k"); err != nil || is.Owner != r.Owner {
		t.Errorf("the leased call's record is %v, %v", is.State, err)
	}
}

// claimCall claims the key of a call, leased.
func claimCall(t *testing.T, p *shop, key string) store.Record {
	t.Helper()
	c := proposal(key)
	c.Key, c.Fingerprint = store.Key{Operation: "pay", Tenant: "ann", Value: key}, store.Fingerprint{}
	f, err := p.s.Claim(t.Context(), c)
	if err != nil || !f.Won {
		t.Fatalf("won %v, error %v", f.Won, err)
	}
	return f.Record
}

func TestAdmitInRepeatableReadIsASerializationFailure(t *testing.T) {
	p := newShop(t, openNew(t, nil), nil)
	tx := beginTx(t, p.s, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	mustExec(t, tx, "SELECT 1 FROM "+p.table) // takes the snapshot
	admitIn(t, p, true, poll("a", "k")...)
	if _, err := p.a.Admit(t.Context(), tx, poll("k", "b")); code(err) != serializationFailure {
		t.Errorf("got %v, want 40001", err)
	}
	p.want(t, "a", "k")
}

func TestAdmitWithDatabaseSQL(t *testing.T) {
	p := newShop(t, openNew(t, nil), nil)
	db := stdlib.OpenDBFromPool(p.s.app)
	defer db.Close()
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := p.a.AdmitSQL(t.Context(), conn, poll("a")); err == nil {
		t.Error("without a transaction: no error")
	}
	for _, fresh := range []bool{true, false} {
		tx, err := conn.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := p.a.AdmitSQL(t.Context(), conn, poll("a", "b"))
		if err != nil {
			t.Fatal(err)
		}
		wantFresh(t, got, fresh, fresh)
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAdmitInAForeignTransactionIsRefused(t *testing.T) {
	p, q := newShop(t, openNew(t, nil), nil), openNew(t, nil)
	tx := beginTx(t, q, txDefaults)
	mustExec(t, q.app, "DROP TABLE "+p.s.quoted()+".semel_record CASCADE")
	if _, err := p.a.Admit(t.Context(), tx, poll("a")); !errors.Is(err, ErrForeign) {
		t.Errorf("got %v, want ErrForeign", err)
	}
}
