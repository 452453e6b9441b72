package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/encrypted"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/store/moved"
)

// oneKey is a key whose ID is "a".
type oneKey struct{}

func (oneKey) Current(context.Context) (string, []byte, error)   { return "a", make([]byte, 32), nil }
func (oneKey) Key(context.Context, string) (key []byte, _ error) { return make([]byte, 32), nil }

// Atomic calls, leased calls and steps are encrypted. A step and a result that are too
// large leave an encrypted tombstone.
func TestEncryption_AtomicLeasedAndSteps_NothingInTheClear(t *testing.T) {
	t.Parallel()
	const canary = "canary-4711"
	s := openNew(t, nil)
	o := &semel.Options{StoreTimeout: time.Minute, Encryption: &encrypted.Cipher{Keys: oneKey{}, RequireEncrypted: true}}
	a, err := NewAtomic(s, o)
	if err != nil {
		t.Fatal(err)
	}
	g, err := semel.New(s, o)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		got, err := Do(t.Context(), a, testCall("atomic"), func(_ context.Context, _ *semel.Execution, tx *Tx) (string, error) {
			return canary, tx.Add(s.count("k"))
		})
		if err != nil || got != canary {
			t.Errorf("atomic: %q, %v", got, err)
		}
		got, err = semel.Do(t.Context(), g, testCall("leased"), func(ctx context.Context, x *semel.Execution) (string, error) {
			return semel.Do(ctx, g, x.Step("s"), func(context.Context, *semel.Execution) (string, error) { return canary, nil })
		})
		if err != nil || got != canary {
			t.Errorf("leased: %q, %v", got, err)
		}
	}
	large := strings.Repeat(canary, 50_000) // over 400 KB
	if got, err := semel.Do(t.Context(), g, testCall("large"), func(context.Context, *semel.Execution) (string, error) { return large, nil }); err != nil || got != large {
		t.Errorf("large: %d bytes, %v", len(got), err)
	}
	_, err = semel.Do(t.Context(), g, testCall("large"), func(context.Context, *semel.Execution) (string, error) { return "", errors.New("it ran again") })
	if !errors.Is(err, semel.ErrNotKept) {
		t.Errorf("a duplicate of the large one: %v", err)
	}
	n := 0
	for f, err := range s.List(t.Context(), store.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		steps, err := s.Steps(t.Context(), f.Record.Lease())
		if err != nil {
			t.Fatal(err)
		}
		n++
		all := fmt.Sprintf("%+v %s", f.Record, f.Record.Outcome.Body)
		for i := range steps {
			all += fmt.Sprintf("%+v %s", steps[i], steps[i].Outcome.Body)
		}
		if strings.Contains(all, canary) || f.Record.Outcome.Codec != encrypted.Codec {
			t.Errorf("the table has %s", all)
		}
	}
	if n != 3 || s.counted(t, "k") != 1 {
		t.Errorf("%d records and %d effects, want 3 and 1", n, s.counted(t, "k"))
	}
}

// The tombstone that is left of an object has no ciphertext.
func TestEncryption_ObjectNotThere_IsNotKept(t *testing.T) {
	t.Parallel()
	s, b, _ := openObjects(t, Options{})
	o := &semel.Options{StoreTimeout: time.Minute, SettleTimeout: time.Minute, Encryption: &encrypted.Cipher{Keys: oneKey{}, RequireEncrypted: true}}
	g, err := semel.New(s, o)
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	if _, err := runLarge(t, g, "k", noise(50_000), &ran); err != nil {
		t.Fatal(err)
	}
	without := openAgain(t, s, &Options{IndexShards: 1})
	other, err := semel.New(without, o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := runLarge(t, other, "k", nil, &ran); !errors.Is(err, semel.ErrNotKept) || ran != 1 {
		t.Errorf("a process without Objects: %d runs, %v; want ErrNotKept after one", ran, err)
	}
	stats, err := moved.Copy(t.Context(), memstore.New(nil), o.Encryption.Store(without), nil)
	if err != nil || stats.Copied != 1 || stats.Unreadable != 0 {
		t.Errorf("a copy by a process without Objects: %+v, %v; want a record copied", stats, err)
	}
	if _, err := b.send(t.Context(), http.MethodDelete, b.made()[0], nil); err != nil {
		t.Fatal(err)
	}
	if _, err := runLarge(t, g, "k", nil, &ran); !errors.Is(err, semel.ErrNotKept) || ran != 1 {
		t.Errorf("the object is missing: %d runs, %v; want ErrNotKept after one", ran, err)
	}
}

// A copy without keys leaves a tombstone of a ciphertext that is too large.
func TestEncryption_CopyTooLargeForItem_IsNotKept(t *testing.T) {
	t.Parallel()
	from, to := memstore.New(nil), openNew(t, nil)
	o := &semel.Options{StoreTimeout: time.Minute, SettleTimeout: time.Minute, Encryption: &encrypted.Cipher{Keys: oneKey{}, RequireEncrypted: true}}
	before, err := semel.New(from, o)
	if err != nil {
		t.Fatal(err)
	}
	after, err := semel.New(to, o)
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	if _, err := runLarge(t, before, "k", noise(500_000), &ran); err != nil {
		t.Fatal(err)
	}
	stats, err := moved.Copy(t.Context(), to, from, nil)
	if err != nil || stats.Copied != 1 || stats.Tombstones != 1 {
		t.Fatalf("%+v, %v", stats, err)
	}
	if _, err := runLarge(t, after, "k", nil, &ran); !errors.Is(err, semel.ErrNotKept) || ran != 1 {
		t.Errorf("%d runs, %v; want ErrNotKept after one", ran, err)
	}
}
