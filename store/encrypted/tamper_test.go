package encrypted_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/encrypted"
	"github.com/semel-go/semel/store/memstore"
)

func TestGet_AnyByteOfResultChanged_Refused(t *testing.T) {
	inner := &changed{Store: memstore.New(nil)}
	st := (&encrypted.Cipher{Keys: newRing("new")}).Store(inner)
	k := ann("order-4711")
	complete(t, st, k, owner(1), store.Completed)
	f, err := inner.Store.Get(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	n := len(f.Record.Outcome.Body)
	get := func(what string, change func(*store.Record)) {
		t.Helper()
		inner.record = change
		_, err := st.Get(t.Context(), k)
		wantRefused(t, what, err, k)
	}
	for i := range n {
		for _, bit := range []byte{1, 0x80} {
			get(fmt.Sprint("byte ", i), func(r *store.Record) { r.Outcome.Body[i] ^= bit })
		}
		get(fmt.Sprint("cut to ", i), func(r *store.Record) { r.Outcome.Body = r.Outcome.Body[:i] })
	}
	get("one byte more", func(r *store.Record) { r.Outcome.Body = append(r.Outcome.Body, 0) })
	get("the code", func(r *store.Record) { r.Outcome.Code = 200 })
	get("gone", func(r *store.Record) { r.Outcome.Gone = true })
	get("a header", func(r *store.Record) { r.Outcome.Header = []store.Header{{Name: "X", Value: "y"}} })
	get("failed", func(r *store.Record) { r.State = store.Failed })
	get("the owner", func(r *store.Record) { r.Owner = owner(2) })

	inner.record = nil
	if f, err := st.Get(t.Context(), k); err != nil || !f.Record.Outcome.Equal(result(1)) {
		t.Errorf("unchanged: %+v, %v", f.Record.Outcome, err)
	}
}

func TestSteps_AnyByteOfStepChanged_Refused(t *testing.T) {
	inner := &changed{Store: memstore.New(nil)}
	st := (&encrypted.Cipher{Keys: newRing("new"), RequireEncrypted: true}).Store(inner)
	k := ann("order-4711")
	l := claim(t, st, k, owner(1))
	step := store.Step{Name: "charge", Attempt: 2, Outcome: result(1), Fingerprint: store.Fingerprint{Alg: "a", Sum: "s"}}
	if err := journalOf(t, st).RecordStep(t.Context(), l, step); err != nil {
		t.Fatal(err)
	}
	raw, err := inner.Store.Steps(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	steps := func(what string, change func(*store.Step)) {
		t.Helper()
		inner.step = change
		got, err := journalOf(t, st).Steps(t.Context(), l)
		if wantRefused(t, what, err, k); got != nil {
			t.Errorf("%s: %d steps", what, len(got))
		}
	}
	for i := range raw[0].Outcome.Body {
		steps(fmt.Sprint("byte ", i), func(s *store.Step) { s.Outcome.Body[i] ^= 4 })
	}
	steps("failed", func(s *store.Step) { s.Failed = true })
	steps("the attempt", func(s *store.Step) { s.Attempt++ })
	steps("the hash of the payload", func(s *store.Step) { s.Fingerprint.Sum = "t" })
	steps("the name", func(s *store.Step) { s.Name = "ship" })
	steps("nothing but done", func(s *store.Step) { s.Outcome = store.Outcome{} })
	steps("in the clear", func(s *store.Step) { s.Outcome = result(2) })

	inner.step = nil
	if got, err := journalOf(t, st).Steps(t.Context(), l); err != nil || !got[0].Equal(&step) || got[0].Attempt != 2 {
		t.Errorf("unchanged: %+v, %v", got, err)
	}
}

// The text of an error decides nothing, so the record stays readable.
func TestGet_AnyByteOfErrorTextChanged_NotShown(t *testing.T) {
	inner := &changed{Store: memstore.New(nil)}
	st := (&encrypted.Cipher{Keys: newRing("new")}).Store(inner)
	k := ann("order-4711")
	complete(t, st, k, owner(1), store.Completed)
	f, err := inner.Store.Get(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	encoded, ok := strings.CutPrefix(f.Record.LastError, encrypted.Codec+":")
	sealed, err := base64.RawStdEncoding.DecodeString(encoded)
	if !ok || err != nil {
		t.Fatalf("the text is %q, %v", f.Record.LastError, err)
	}
	for i := range sealed {
		inner.record = func(r *store.Record) {
			b := append([]byte(nil), sealed...)
			b[i] ^= 16
			r.LastError = encrypted.Codec + ":" + base64.RawStdEncoding.EncodeToString(b)
		}
		f, err := st.Get(t.Context(), k)
		if err != nil || strings.Contains(f.Record.LastError, canary) || !strings.Contains(f.Record.LastError, "cannot be shown") || !f.Record.Outcome.Equal(result(1)) {
			t.Fatalf("byte %d: %q, %v", i, f.Record.LastError, err)
		}
	}
}

// A ciphertext is refused in any place but its own.
func TestGet_CiphertextOfAnotherPlace_Refused(t *testing.T) {
	inner := &changed{Store: memstore.New(nil)}
	st := (&encrypted.Cipher{Keys: newRing("new")}).Store(inner)
	keys := []store.Key{
		{Operation: "pay", Tenant: "ann", Value: "o-17"}, {Operation: "pay", Tenant: "ann", Value: "o-172"}, {Operation: "pay", Tenant: "bob", Value: "o-17"},
		{Operation: "refund", Tenant: "ann", Value: "o-17"}, {Operation: "pay", Tenant: "anno", Value: "-17"}, {Operation: "paya", Tenant: "nn", Value: "o-17"},
	}
	sealed := map[string]store.Outcome{} // of other places
	for i, k := range keys {
		l := claim(t, st, k, owner(1)) // the same owner, so that only the key tells them apart
		if err := journalOf(t, st).RecordStep(t.Context(), l, store.Step{Name: "s", Outcome: result(1)}); err != nil {
			t.Fatal(err)
		}
		if err := st.Settle(t.Context(), l, store.Settlement{State: store.Completed, Attempt: 1, Outcome: result(1), Error: canary, Keep: time.Hour}); err != nil {
			t.Fatal(err)
		}
		f, err := inner.Store.Get(t.Context(), k)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := inner.Store.Steps(t.Context(), l)
		if err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			sealed[fmt.Sprintf("the result of %+v", k)] = f.Record.Outcome
		}
		sealed[fmt.Sprintf("the step of %+v", k)] = raw[0].Outcome
		text, err := base64.RawStdEncoding.DecodeString(strings.TrimPrefix(f.Record.LastError, encrypted.Codec+":"))
		if err != nil {
			t.Fatal(err)
		}
		sealed[fmt.Sprintf("the error of %+v", k)] = store.Outcome{Code: 201, Codec: encrypted.Codec, Body: text}
	}
	for what, o := range sealed {
		inner.record = func(r *store.Record) { r.Outcome = o }
		_, err := st.Get(t.Context(), keys[0])
		wantRefused(t, what, err, keys[0])
	}
	inner.record = nil
	if f, err := st.Get(t.Context(), keys[0]); err != nil || !f.Record.Outcome.Equal(result(1)) {
		t.Errorf("its own: %+v, %v", f.Record.Outcome, err)
	}
}

// A result of an earlier claim of the same key is refused, unless the whole record is
// put back.
func TestGet_ResultOfEarlierClaim_Refused(t *testing.T) {
	inner := &changed{Store: memstore.New(nil)}
	st := (&encrypted.Cipher{Keys: newRing("new")}).Store(inner)
	k := ann("order-4711")
	complete(t, st, k, owner(1), store.Completed) // the same state as the later one
	earlier, err := inner.Store.Get(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	seen := earlier.Record.Seen()
	f, err := st.Swap(t.Context(), seen, store.Proposal{Key: k, State: store.Completed, Owner: owner(2), Attempt: 1, Keep: time.Hour, Outcome: result(2)})
	if err != nil || !f.Won || !f.Record.Outcome.Equal(result(2)) {
		t.Fatalf("%+v, %v", f, err)
	}
	inner.record = func(r *store.Record) { r.Outcome = earlier.Record.Outcome }
	_, err = st.Get(t.Context(), k)
	wantRefused(t, "the earlier result", err, k)

	// This is the limit: nothing tells a record that was put back from itself.
	inner.record = func(r *store.Record) { *r = earlier.Record }
	if f, err := st.Get(t.Context(), k); err != nil || !f.Record.Outcome.Equal(result(1)) {
		t.Errorf("the earlier record: %+v, %v", f.Record, err)
	}
}

// A result is refused as a step, also as one whose name is like the place of the result.
func TestSteps_MadeOfResult_Refused(t *testing.T) {
	inner := &changed{Store: memstore.New(nil)}
	st := (&encrypted.Cipher{Keys: newRing("new")}).Store(inner)
	k, o := ann("order-4711"), owner(1)
	complete(t, st, k, o, store.Completed)
	done, err := inner.Store.Get(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	held := claim(t, st, ann("order-4712"), owner(2))
	name := string(o[:]) + string([]byte{byte(store.Completed)})
	if err := inner.RecordStep(t.Context(), held, store.Step{Name: name, Outcome: done.Record.Outcome}); err != nil {
		t.Fatal(err)
	}
	inner.lease = func(store.Lease) store.Lease { return held } // the store answers with the steps of the other record
	_, err = journalOf(t, st).Steps(t.Context(), done.Record.Lease())
	wantRefused(t, "a result as a step", err, k)
}

// A store may put a tombstone in the place of a ciphertext that it cannot keep. So a writer of
// the database can refuse a result, and cannot give another one, or a failure.
func TestGet_TombstoneInPlaceOfResult_DoneAndNothingElse(t *testing.T) {
	inner := &changed{Store: memstore.New(nil)}
	st := (&encrypted.Cipher{Keys: newRing("new"), RequireEncrypted: true}).Store(inner)
	k := ann("order-4711")
	complete(t, st, k, owner(1), store.Completed)
	tombstone := store.Outcome{Code: 201, Codec: encrypted.Codec, Gone: true}
	replace := func(change func(*store.Record)) (store.Found, error) {
		inner.record = func(r *store.Record) {
			r.Outcome = tombstone
			change(r)
		}
		return st.Get(t.Context(), k)
	}
	f, err := replace(func(*store.Record) {})
	if want := (store.Outcome{Code: 201, Gone: true}); err != nil || f.Record.State != store.Completed || !f.Record.Outcome.Equal(want) {
		t.Errorf("a tombstone: %v, %+v, %v; want completed and %+v", f.Record.State, f.Record.Outcome, err, want)
	}
	for what, change := range map[string]func(*store.Record){
		"with a body":                  func(r *store.Record) { r.Outcome.Body = []byte("forged") },
		"with a header":                func(r *store.Record) { r.Outcome.Header = []store.Header{{Name: "Location", Value: "/forged"}} },
		"an empty ciphertext":          func(r *store.Record) { r.Outcome.Gone = false },
		"of a failure":                 func(r *store.Record) { r.State = store.Failed },
		"in the clear":                 func(r *store.Record) { r.Outcome.Codec = "json" },
		"in the clear without a codec": func(r *store.Record) { r.Outcome.Codec = "" },
	} {
		_, err := replace(change)
		wantRefused(t, what, err, k)
	}

	l := claim(t, st, ann("steps"), owner(2))
	if err := journalOf(t, st).RecordStep(t.Context(), l, store.Step{Name: "charge", Outcome: result(1)}); err != nil {
		t.Fatal(err)
	}
	inner.step = func(s *store.Step) { s.Outcome = tombstone }
	_, err = journalOf(t, st).Steps(t.Context(), l)
	wantRefused(t, "a step", err, ann("steps"))
}
