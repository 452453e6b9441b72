package semel_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/driver"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/encrypted"
	"github.com/semel-go/semel/store/memstore"
)

// keyRing is the IDs of keys, the current one first.
type keyRing []string

func (r keyRing) Current(ctx context.Context) (string, []byte, error) {
	key, err := r.Key(ctx, r[0])
	return r[0], key, err
}

func (r keyRing) Key(_ context.Context, id string) ([]byte, error) {
	for _, known := range r {
		if id == known {
			return bytes.Repeat([]byte(id), 32)[:32], nil
		}
	}
	return nil, fmt.Errorf("%w %q", encrypted.ErrUnknownKey, id)
}

func withKeys(ids ...string) *semel.Options {
	return &semel.Options{Encryption: &encrypted.Cipher{Keys: keyRing(ids)}}
}

const canary = "canary-4711"

// stored is all that a store has of a record and its steps, as text.
func stored(r *store.Record, steps []store.Step) string {
	text := fmt.Sprintf("%+v %s %+v", r, r.Outcome.Body, steps) // %+v shows bytes as numbers
	for i := range steps {
		text += string(steps[i].Outcome.Body)
	}
	return text
}

// noCanary fails if a record or a step of the store has the canary, or if there are not n
// records.
func noCanary(t *testing.T, st *memstore.Store, n int) {
	t.Helper()
	for f, err := range st.List(t.Context(), store.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		n--
		steps, err := st.Steps(t.Context(), f.Record.Lease())
		if err != nil {
			t.Fatal(err)
		}
		if all := stored(&f.Record, steps); strings.Contains(all, canary) {
			t.Errorf("the store has %s", all)
		}
	}
	if n != 0 {
		t.Errorf("%d records are missing", n)
	}
}

func TestEncryption_EachEndOfACall_IsEncryptedAndReplayed(t *testing.T) {
	st := memstore.New(nil)
	g := guard(t, st, withKeys("a"))
	declined := &semel.Failure{Code: "declined", Message: canary, Data: []byte(canary)}
	for range 2 {
		got, err := semel.Do(t.Context(), g, ann("done"), func(ctx context.Context, x *semel.Execution) (string, error) {
			return semel.Do(ctx, g, x.Step("charge"), func(context.Context, *semel.Execution) (string, error) { return canary, nil })
		})
		if err != nil || got != canary {
			t.Errorf("a result: %q, %v", got, err)
		}
		_, err = g.Run(t.Context(), ann("failed"), fail(declined))
		if f, ok := errors.AsType[*semel.Failure](err); !ok || f.Message != canary || string(f.Data) != canary {
			t.Errorf("a failure: %v", err)
		}
	}
	if _, err := g.Run(t.Context(), ann("released"), fail(errors.New(canary))); err == nil {
		t.Error("no error")
	}
	wantState(t, g, "released", store.Released)
	if r := record(t, g, "released"); r.LastError != canary {
		t.Errorf("the error is %q", r.LastError)
	}
	noCanary(t, st, 3)
}

func TestEncryption_Decides_OperatorsVerdict(t *testing.T) {
	st := memstore.New(nil)
	o := withKeys("a")
	o.OnDoubt, o.Reconcile = semel.Park, reconcilerOf(semel.Happened(canary), nil)
	g := guard(t, st, o)
	_, _ = g.Run(t.Context(), ann("asked"), fail(errors.New(canary))) // it is parked
	if n, err := g.Reconcile(t.Context(), pay, 10); n != 1 || err != nil {
		t.Fatalf("%d decided, %v", n, err)
	}
	_, _ = g.Run(t.Context(), ann("told"), fail(errors.New(canary)))
	if err := g.Resolve(t.Context(), record(t, g, "told"), semel.Happened(canary)); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"asked", "told"} {
		res, err := g.Run(t.Context(), ann(key), never(t))
		wantBody(t, res, err, `"`+canary+`"`, true)
	}
	noCanary(t, st, 2)
}

// The lost reply of a settlement: it is sent again, with another ciphertext.
func TestEncryption_SettlementSentAgain_IsTheSame(t *testing.T) {
	inner := memstore.New(nil)
	sent := 0
	st := &hooks{Store: inner, settle: func(ctx context.Context, l store.Lease, s store.Settlement) error {
		if sent++; sent == 1 {
			return errors.Join(errBoom, inner.Settle(ctx, l, s))
		}
		return inner.Settle(ctx, l, s)
	}}
	g := guard(t, st, withKeys("a"))
	res, err := g.Run(t.Context(), ann("k"), answer(canary))
	wantBody(t, res, err, canary, false)
	res, err = g.Run(t.Context(), ann("k"), never(t))
	wantBody(t, res, err, canary, true)
	if sent != 2 {
		t.Errorf("sent %d times", sent)
	}
}

// No handler runs again because its result cannot be read.
func TestEncryption_Unreadable_ErrorAndNoSecondRun(t *testing.T) {
	st := memstore.New(nil)
	old := guard(t, st, withKeys("a"))
	res, err := old.Run(t.Context(), ann("k"), answer(canary))
	wantBody(t, res, err, canary, false)
	_, err = old.Run(t.Context(), ann("failed"), fail(&semel.Failure{Code: "declined"}))
	wantErr(t, err, &semel.Failure{Code: "declined"})
	clear := guard(t, st, nil)
	res, err = clear.Run(t.Context(), ann("clear"), answer(canary))
	wantBody(t, res, err, canary, false)

	unprotected := withKeys("b")
	unprotected.UnprotectedOnOutage = true
	strict := withKeys("b", "a")
	strict.Encryption.RequireEncrypted = true
	for name, c := range map[string]struct {
		options *semel.Options
		keys    []string
		want    string
	}{
		"without the key":                     {withKeys("b"), []string{"k", "failed"}, `unknown key "a"`},
		"without the key, and without a wait": {unprotected, []string{"k", "failed"}, `unknown key "a"`},
		"without encryption":                  {nil, []string{"k", "failed"}, "start it with --encryption-keys (in Go set Options.Encryption)"},
		"in the clear":                        {strict, []string{"clear"}, "RequireEncrypted"},
	} {
		g := guard(t, st, c.options)
		for _, key := range c.keys {
			_, err := g.Run(t.Context(), ann(key), never(t))
			wantReason(t, err, store.ErrCorrupt)
			if store.Affects(err) != store.ExtentCall || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), canary) {
				t.Errorf("%s, key %q: %v", name, key, err)
			}
		}
	}
	res, err = guard(t, st, withKeys("b", "a")).Run(t.Context(), ann("k"), never(t))
	wantBody(t, res, err, canary, true)
	res, err = guard(t, st, withKeys("b")).Run(t.Context(), ann("clear"), never(t))
	wantBody(t, res, err, canary, true)
}

// A step that cannot be read does not run again, either.
func TestEncryption_UnreadableStep_DoesNotRun(t *testing.T) {
	st := memstore.New(nil)
	work := func(g *semel.Guard, charge func() (string, error)) error {
		_, err := semel.Do(t.Context(), g, ann("k"), func(ctx context.Context, x *semel.Execution) (string, error) {
			if _, err := semel.Do(ctx, g, x.Step("charge"), func(context.Context, *semel.Execution) (string, error) { return charge() }); err != nil {
				return "", err
			}
			return "", errBoom
		})
		return err
	}
	wantErr(t, work(guard(t, st, withKeys("a")), func() (string, error) { return canary, nil }), errBoom)
	for name, o := range map[string]*semel.Options{"another key": withKeys("b"), "no key": nil} {
		err := work(guard(t, st, o), func() (string, error) {
			t.Errorf("%s: the step ran again", name)
			return "", nil
		})
		wantErr(t, err, store.ErrCorrupt)
	}
	wantErr(t, work(guard(t, st, withKeys("b", "a")), func() (string, error) { return "", errors.New("the step ran again") }), errBoom)
}

func TestRunIn_Encryption_RecordIsEncrypted(t *testing.T) {
	g, tx := guard(t, clockless{}, withKeys("a")), newTx()
	for i := range 2 {
		res, err := driver.RunIn(t.Context(), g, tx, ann("k"), answer(canary))
		wantBody(t, res, err, canary, i > 0)
		_, err = driver.RunIn(t.Context(), g, tx, ann("failed"), fail(&semel.Failure{Code: "declined", Message: canary}))
		if f, ok := errors.AsType[*semel.Failure](err); !ok || f.Message != canary {
			t.Errorf("a failure: %v", err)
		}
	}
	call, err := driver.NewTxCall(g, ann("batch"))
	if err != nil {
		t.Fatal(err)
	}
	if x, _, err := call.Claim(t.Context(), tx); x == nil || err != nil {
		t.Fatal(err)
	}
	if _, err := call.Settle(t.Context(), store.Outcome{Body: []byte(canary)}, nil); err != nil {
		t.Fatal(err)
	}
	for i, key := range []string{"inserted", "inserted in the clear"} {
		call, err := driver.NewTxCall(g, ann(key))
		if err != nil {
			t.Fatal(err)
		}
		p, _ := call.Proposal(t.Context())
		f, err := tx.Claim(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		call.Inserted(tx, f.Record.Fence)
		o := store.Outcome{Body: []byte(canary)}
		if i == 1 { // so that a store may insert the record before the handler runs
			o = store.Outcome{}
		}
		if _, err := call.Settle(t.Context(), o, nil); err != nil {
			t.Fatal(err)
		}
	}
	if len(tx.records) != 5 {
		t.Errorf("the transaction has %d records", len(tx.records))
	}
	for _, r := range tx.records {
		if all := stored(&r, nil); strings.Contains(all, canary) {
			t.Errorf("the transaction has %s", all)
		}
	}
	if r := tx.records[store.Key{Operation: pay, Tenant: "ann", Value: "inserted in the clear"}]; r.State != store.Completed || !r.Outcome.Equal(store.Outcome{}) {
		t.Errorf("a call without a result is stored as %+v", r)
	}
}

func TestNew_EncryptionWithoutKeys_Refused(t *testing.T) {
	_, err := semel.New(memstore.New(nil), &semel.Options{Encryption: &encrypted.Cipher{}, Retention: time.Hour})
	if err == nil || !strings.Contains(err.Error(), "Encryption.Keys") {
		t.Errorf("%v", err)
	}
}
