package encrypted_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/encrypted"
	"github.com/semel-go/semel/store/memstore"
)

func TestStore_ResultsAndErrors_NotInTheRecord(t *testing.T) {
	inner := memstore.New(nil)
	st := (&encrypted.Cipher{Keys: newRing("new")}).Store(inner)
	l := claim(t, st, ann("order-4711"), owner(1))
	if err := journalOf(t, st).RecordStep(t.Context(), l, store.Step{Name: "s", Outcome: result(1)}); err != nil {
		t.Fatal(err)
	}
	for i, state := range []store.State{store.Completed, store.Failed, store.Released, store.Unknown} {
		complete(t, st, ann(state.String()), owner(byte(i+2)), state)
	}
	steps, err := inner.Steps(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for f, err := range inner.List(t.Context(), store.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
		if all := stored(&f.Record, steps); strings.Contains(all, canary) || strings.Contains(all, "X-Receipt") {
			t.Errorf("the store has %s", all)
		}
	}
	if n != 5 {
		t.Errorf("%d records, want 5", n)
	}
	l2, _ := store.As[store.Lister](st)
	for f, err := range l2.List(t.Context(), store.Filter{}) {
		if r := &f.Record; err != nil || r.State.Terminal() && !strings.HasPrefix(string(r.Outcome.Body), canary) || r.State != store.Processing && r.LastError != canary {
			t.Errorf("listed %+v, %v", r, err)
		}
	}
}

// No two ciphertexts have the same nonce, also of the same text.
func TestSettle_SameResult_EachNonceIsNew(t *testing.T) {
	inner := memstore.New(nil)
	st := (&encrypted.Cipher{Keys: newRing("n")}).Store(inner)
	const header = 1 + 1 + len("n")
	seen := map[string]bool{}
	for i := range 200 {
		k := ann(fmt.Sprint(i))
		if err := st.Settle(t.Context(), claim(t, st, k, owner(1)), store.Settlement{State: store.Completed, Outcome: result(1), Keep: time.Hour}); err != nil {
			t.Fatal(err)
		}
		f, err := inner.Get(t.Context(), k)
		if err != nil {
			t.Fatal(err)
		}
		body := f.Record.Outcome.Body
		nonce := string(body[header : header+12])
		if seen[nonce] || bytes.Equal(body[header:header+12], make([]byte, 12)) {
			t.Fatalf("the nonce %x is used again", nonce)
		}
		seen[nonce] = true
	}
}

func TestGet_KeyWasRotated_OldResultsAreRead(t *testing.T) {
	keys := newRing("old")
	st := (&encrypted.Cipher{Keys: keys}).Store(memstore.New(nil))
	complete(t, st, ann("first"), owner(1), store.Completed)
	keys.set(nil, "new", "old")
	complete(t, st, ann("second"), owner(2), store.Completed)
	keys.set(nil, "new")
	if f, err := st.Get(t.Context(), ann("second")); err != nil || !f.Record.Outcome.Equal(result(2)) {
		t.Errorf("with the new key: %+v, %v", f.Record.Outcome, err)
	}
	for name, read := range map[string]func() (store.Found, error){
		"Get": func() (store.Found, error) { return st.Get(t.Context(), ann("first")) },
		"Claim": func() (store.Found, error) {
			return st.Claim(t.Context(), store.Proposal{Key: ann("first"), State: store.Processing, Owner: owner(3), Lease: time.Hour})
		},
	} {
		f, err := read()
		if wantRefused(t, name, err, ann("first")); f.Won || !errors.Is(err, encrypted.ErrUnknownKey) || !strings.Contains(err.Error(), `"old"`) {
			t.Errorf("%s: won %v, %v", name, f.Won, err)
		}
	}
	listed, unreadable := 0, 0
	l, _ := store.As[store.Lister](st)
	for _, err := range l.List(t.Context(), store.Filter{}) {
		if errors.Is(err, store.ErrCorrupt) {
			unreadable++
		} else if err == nil {
			listed++
		}
	}
	if listed != 1 || unreadable != 1 {
		t.Errorf("listed %d records and %d errors, want one of each", listed, unreadable)
	}
}

func TestGet_InTheClear_ReadUnlessRefused(t *testing.T) {
	inner := memstore.New(nil)
	complete(t, inner, ann("order-4711"), owner(1), store.Completed)
	keys := newRing("new")
	f, err := (&encrypted.Cipher{Keys: keys}).Store(inner).Get(t.Context(), ann("order-4711"))
	if err != nil || !f.Record.Outcome.Equal(result(1)) || f.Record.LastError != canary {
		t.Errorf("%+v, %v", f.Record, err)
	}
	_, err = (&encrypted.Cipher{Keys: keys, RequireEncrypted: true}).Store(inner).Get(t.Context(), ann("order-4711"))
	wantRefused(t, "RequireEncrypted", err, ann("order-4711"))

	complete(t, inner, ann("released"), owner(2), store.Released)
	f, err = (&encrypted.Cipher{Keys: keys, RequireEncrypted: true}).Store(inner).Get(t.Context(), ann("released"))
	if err != nil || strings.Contains(f.Record.LastError, canary) || f.Record.LastError == "" {
		t.Errorf("the error of a record in the clear: %q, %v", f.Record.LastError, err)
	}
}

// refuses counts how often a store gets a request.
type counts struct {
	store.Store
	claims, settles int
}

func (c *counts) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
	c.claims++
	return c.Store.Claim(ctx, p)
}

func (c *counts) Settle(ctx context.Context, l store.Lease, s store.Settlement) error {
	c.settles++
	return c.Store.Settle(ctx, l, s)
}

func TestClaim_NoKey_NotSent(t *testing.T) {
	inner, keys := &counts{Store: memstore.New(nil)}, newRing("new")
	st := (&encrypted.Cipher{Keys: keys}).Store(inner)
	l := claim(t, st, ann("held"), owner(1))
	complete(t, st, ann("done"), owner(2), store.Completed)
	keys.set(errDown, "new")

	_, err := st.Claim(t.Context(), store.Proposal{Key: ann("order-4711"), State: store.Processing, Owner: owner(3), Lease: time.Hour})
	if !errors.Is(err, errDown) || store.Affects(err) != store.ExtentPart || inner.claims != 2 {
		t.Errorf("claim: %v, extent %v, %d claims sent", err, store.Affects(err), inner.claims)
	}
	held := store.Proposal{Key: ann("held"), State: store.Processing, Owner: owner(3), Lease: time.Hour}
	if f, err := st.Claim(t.Context(), held); err != nil || f.Won || f.Record.Owner != owner(1) {
		t.Errorf("a claim of a held key: %+v, %v; want the record", f, err)
	}
	held.Owner = owner(1) // its reply was lost, so it must not look like another's claim
	if f, err := st.Claim(t.Context(), held); !errors.Is(err, errDown) || f.Record.Key != (store.Key{}) || inner.claims != 2 {
		t.Errorf("a claim that is sent again: %+v, %v", f, err)
	}
	_, err = st.Get(t.Context(), ann("done"))
	if !errors.Is(err, errDown) || store.Affects(err) != store.ExtentPart || errors.Is(err, store.ErrCorrupt) {
		t.Errorf("read: %v, extent %v", err, store.Affects(err))
	}
	if err := st.Settle(t.Context(), l, store.Settlement{State: store.Completed, Outcome: result(1)}); !errors.Is(err, errDown) || inner.settles != 1 {
		t.Errorf("settle: %v, %d sent", err, inner.settles)
	}
	if err := st.Settle(t.Context(), l, store.Settlement{State: store.Released, Error: canary}); err != nil {
		t.Errorf("a claim is not given back: %v", err)
	}
	f, err := st.Get(t.Context(), ann("held"))
	if err != nil || f.Record.State != store.Released || strings.Contains(f.Record.LastError, canary) {
		t.Errorf("%v with the error %q, %v", f.Record.State, f.Record.LastError, err)
	}
}

// unfit is keys of a wrong form.
type unfit struct {
	id  string
	key []byte
}

func (u unfit) Current(context.Context) (string, []byte, error)     { return u.id, u.key, nil }
func (u unfit) Key(context.Context, string) (key []byte, err error) { return u.key, nil }

func TestSettle_KeyOfWrongForm_Refused(t *testing.T) {
	for name, keys := range map[string]unfit{
		"16 bytes":  {"a", make([]byte, 16)},
		"no key":    {"a", nil},
		"no ID":     {"", make([]byte, 32)},
		"a long ID": {strings.Repeat("a", 256), make([]byte, 32)},
	} {
		inner := memstore.New(nil)
		l := claim(t, inner, ann("order-4711"), owner(1))
		err := (&encrypted.Cipher{Keys: keys}).Store(inner).Settle(t.Context(), l, store.Settlement{State: store.Completed, Outcome: result(1)})
		f, getErr := inner.Get(t.Context(), ann("order-4711"))
		if err == nil || getErr != nil || f.Record.State != store.Processing {
			t.Errorf("%s: %v; the record is %v, %v", name, err, f.Record.State, getErr)
		}
	}
}
