package erase_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/erase"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/encrypted"
	"github.com/semel-go/semel/store/memstore"
)

func TestRun_AnswersOnly_DuplicatesDoNotRunAndGetNoAnswer(t *testing.T) {
	st := memstore.New(nil)
	everyState(t, st, "ann")
	g := guard(t, st, nil)
	_, err := g.Run(t.Context(), call("ann", "steps"), func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
		res, err := semel.Do(ctx, g, x.Step("charge"), func(context.Context, *semel.Execution) (string, error) { return canary, nil })
		return store.Outcome{Body: []byte(res)}, err
	})
	if err != nil {
		t.Fatal(err)
	}
	o := &erase.Options{AnswersOnly: true}
	if r := mustRun(t, st, erase.Scope{Tenant: "ann"}, o); r != (erase.Report{Erased: 3, Running: 2, InDoubt: 1, Unfinished: 1}) {
		t.Errorf("erased %+v", r)
	}
	if r := mustRun(t, st, erase.Scope{Tenant: "ann"}, o); r.Erased != 0 {
		t.Errorf("once more: %+v", r)
	}
	for key, want := range map[string]string{"completed": semel.ErrNotKept.Error(), "steps": semel.ErrNotKept.Error(), "failed": "declined"} {
		runs, err := run(t, g, call("ann", key), nil)
		got := fmt.Sprint(err)
		if f, ok := errors.AsType[*semel.Failure](err); ok {
			got = f.Code
		}
		if runs != 0 || !strings.HasPrefix(got, want) {
			t.Errorf("%s: a duplicate ran %d times, error %v; want none, and %q", key, runs, err, want)
		}
		f, err := st.Get(t.Context(), store.Key{Operation: "pay", Tenant: "ann", Value: key})
		if err != nil {
			t.Fatal(err)
		}
		steps, err := st.Steps(t.Context(), f.Record.Lease())
		if kept := fmt.Sprintf("%+v %s", f.Record, f.Record.Outcome.Body); err != nil || len(steps) > 0 || strings.Contains(kept, canary) {
			t.Errorf("%s: %d steps, error %v, and the record is %s", key, len(steps), err, kept)
		}
	}
}

// A message with a token is redelivered after the answer of its call was erased.
func TestRun_AnswersOnly_TokenDeliveredAgain_IsNotKept(t *testing.T) {
	st := memstore.New(nil)
	g := guard(t, st, nil)
	ticket, err := g.Reserve(t.Context(), call("ann", "k"))
	if err != nil {
		t.Fatal(err)
	}
	redeemed, err := g.Redeem(ticket.Token)
	if err != nil {
		t.Fatal(err)
	}
	if runs, err := run(t, g, redeemed, nil); runs != 1 || err != nil {
		t.Fatalf("ran %d times, error %v", runs, err)
	}
	if r := mustRun(t, st, erase.Scope{Tenant: "ann"}, &erase.Options{AnswersOnly: true}); r.Erased != 1 {
		t.Errorf("erased %+v", r)
	}
	if runs, err := run(t, g, redeemed, nil); runs != 0 || !errors.Is(err, semel.ErrNotKept) {
		t.Errorf("the token delivered again: ran %d times, error %v; want ErrNotKept", runs, err)
	}
	f, err := st.Get(t.Context(), store.Key{Operation: "pay", Tenant: "ann", Value: "k"})
	if err != nil {
		t.Fatal(err)
	}
	if kept := fmt.Sprintf("%+v %s", f.Record, f.Record.Outcome.Body); strings.Contains(kept, canary) || len(f.Record.FormerOwners) > 0 {
		t.Errorf("the record is %s", kept)
	}
}

// oneKey is a key whose ID is "a".
type oneKey struct{}

func (oneKey) Current(context.Context) (string, []byte, error) {
	return "a", bytes.Repeat([]byte("k"), 32), nil
}

func (oneKey) Key(context.Context, string) ([]byte, error) {
	return bytes.Repeat([]byte("k"), 32), nil
}

// The tombstone that replaces an encrypted answer is encrypted, too. Without the keys the answer
// stays.
func TestRun_AnswersOnly_EncryptedAnswerNeedsKeys(t *testing.T) {
	st := memstore.New(nil)
	c := &encrypted.Cipher{Keys: oneKey{}, RequireEncrypted: true}
	g := guard(t, st, &semel.Options{Encryption: c})
	_, _ = run(t, g, call("ann", "k"), nil)
	s, o := erase.Scope{Tenant: "ann"}, &erase.Options{AnswersOnly: true}
	count := &erase.Options{AnswersOnly: true, CountOnly: true}
	if r := mustRun(t, st, s, count); r != (erase.Report{Failed: 1}) {
		t.Errorf("counted without the keys: %+v, want the record left", r)
	}
	if r := mustRun(t, c.Store(st), s, count); r != (erase.Report{Erased: 1}) {
		t.Errorf("counted with the keys: %+v, want it erased", r)
	}
	if r := mustRun(t, st, s, o); r != (erase.Report{Failed: 1}) {
		t.Errorf("without the keys: %+v, want the record left", r)
	}
	again := func(context.Context, *semel.Execution) (store.Outcome, error) {
		return store.Outcome{}, errors.New("the duplicate ran")
	}
	if res, err := g.Run(t.Context(), call("ann", "k"), again); err != nil || string(res.Outcome.Body) != canary {
		t.Errorf("a duplicate got %q, error %v; want the answer", res.Outcome.Body, err)
	}
	if r := mustRun(t, c.Store(st), s, o); r != (erase.Report{Erased: 1}) {
		t.Errorf("with the keys: %+v, want it erased", r)
	}
	if runs, err := run(t, g, call("ann", "k"), nil); runs != 0 || !errors.Is(err, semel.ErrNotKept) {
		t.Errorf("a duplicate ran %d times, error %v; want ErrNotKept", runs, err)
	}
	if r := mustRun(t, st, s, nil); r != (erase.Report{Erased: 1}) { // a whole erasure needs no key
		t.Errorf("the record: %+v, want it erased", r)
	}
}
