package encrypted_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/encrypted"
	"github.com/semel-go/semel/store/memstore"
)

func TestReceive_Result_IsEncrypted(t *testing.T) {
	source := memstore.New(nil)
	complete(t, source, ann("order-4711"), owner(1), store.Completed)
	f, err := source.Get(t.Context(), ann("order-4711"))
	if err != nil {
		t.Fatal(err)
	}
	inner := memstore.New(nil)
	st := (&encrypted.Cipher{Keys: newRing("new"), RequireEncrypted: true}).Store(inner)
	to, ok := store.As[store.Receiver](st)
	if !ok {
		t.Fatal("the encrypted store cannot receive records")
	}
	step := store.Step{Name: "charge", Outcome: result(2), Recorded: time.Unix(1, 0).UTC()}
	got, err := to.Receive(t.Context(), f.Record, []store.Step{step})
	if err != nil || !got.Won || !got.Record.Outcome.Equal(result(1)) || got.Record.LastError != f.Record.LastError {
		t.Errorf("the answer is %+v, %v", got, err)
	}
	raw, err := inner.Get(t.Context(), ann("order-4711"))
	if err != nil || raw.Record.Outcome.Codec != encrypted.Codec || bytes.Contains(raw.Record.Outcome.Body, result(1).Body) || raw.Record.LastError == f.Record.LastError {
		t.Errorf("the store keeps %+v, %v", raw.Record, err)
	}
	steps, err := journalOf(t, st).Steps(t.Context(), f.Record.Lease())
	if err != nil || len(steps) != 1 || !steps[0].Equal(&step) {
		t.Errorf("the steps are %+v, %v", steps, err)
	}
	kept, err := inner.Steps(t.Context(), f.Record.Lease())
	if err != nil || len(kept) != 1 || kept[0].Outcome.Codec != encrypted.Codec {
		t.Errorf("the store keeps the steps %+v, %v", kept, err)
	}
	if again, err := st.Get(t.Context(), ann("order-4711")); err != nil || !again.Record.Outcome.Equal(result(1)) {
		t.Errorf("%+v, %v", again.Record, err)
	}
}

// A source that is read without its keys gives ciphertexts. A second encryption would hide
// that nobody can read them, until a duplicate comes.
func TestReceive_EncryptedAlready_Refused(t *testing.T) {
	raw, inner := memstore.New(nil), memstore.New(nil)
	complete(t, (&encrypted.Cipher{Keys: newRing("old")}).Store(raw), ann("order-4711"), owner(1), store.Completed)
	f, err := raw.Get(t.Context(), ann("order-4711"))
	if err != nil {
		t.Fatal(err)
	}
	done, released := f.Record, f.Record
	done.LastError = ""
	released.State, released.Outcome = store.Released, store.Outcome{}
	step := released
	step.LastError = ""
	to, _ := store.As[store.Receiver]((&encrypted.Cipher{Keys: newRing("new")}).Store(inner))
	for name, c := range map[string]struct {
		record store.Record
		steps  []store.Step
	}{
		"the result":     {record: done},
		"the error text": {record: released},
		"the step":       {step, []store.Step{{Name: "clear", Outcome: result(2)}, {Name: "charge", Outcome: f.Record.Outcome}}},
	} {
		_, err := to.Receive(t.Context(), c.record, c.steps)
		if !errors.Is(err, store.ErrCorrupt) || !strings.Contains(err.Error(), name+" ") || !strings.Contains(err.Error(), "is encrypted already") || !strings.Contains(err.Error(), "--from-encryption-keys") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := inner.Get(t.Context(), c.record.Key); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: the store has the record, %v", name, err)
		}
	}
}
