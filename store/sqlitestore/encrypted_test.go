package sqlitestore

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/encrypted"
	"github.com/semel-go/semel/store/storetest"
)

// oneKey is a key whose ID is "a".
type oneKey struct{}

func (oneKey) Current(context.Context) (string, []byte, error)   { return "a", make([]byte, 32), nil }
func (oneKey) Key(context.Context, string) (key []byte, _ error) { return make([]byte, 32), nil }

// encryptedTx is a transaction of a test, encrypted as an Atomic encrypts it.
type encryptedTx struct {
	store.Tx
	store.Journal
	*businessTx
}

func (e encryptedTx) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
	return e.Tx.Claim(ctx, p)
}

func (e encryptedTx) Swap(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
	return e.Tx.Swap(ctx, seen, p)
}

func (e encryptedTx) Settle(ctx context.Context, l store.Lease, s store.Settlement) error {
	return e.Tx.Settle(ctx, l, s)
}

func (e encryptedTx) Nested(ctx context.Context, fn func() error) error {
	return e.Tx.Nested(ctx, fn)
}

func (e encryptedTx) RecordStep(ctx context.Context, l store.Lease, s store.Step) error {
	return e.Journal.RecordStep(ctx, l, s)
}

func (e encryptedTx) Steps(ctx context.Context, l store.Lease) ([]store.Step, error) {
	return e.Journal.Steps(ctx, l)
}

func TestConformance_Encrypted(t *testing.T) {
	c := &encrypted.Cipher{Keys: oneKey{}, RequireEncrypted: true}
	h := harness()
	inner := func(s store.Store) *Store {
		st, _ := store.As[*Store](s)
		return st
	}
	open, advance, reopen := h.Open, h.Advance, h.Reopen
	h.Open = func(t testing.TB) store.Store { return c.Store(open(t)) }
	h.Advance = func(t testing.TB, s store.Store, d time.Duration) { advance(t, inner(s), d) }
	h.Reopen = func(t testing.TB, s store.Store) store.Store { return c.Store(reopen(t, inner(s))) }
	h.Begin = func(t testing.TB, s store.Store) storetest.Tx {
		tx := begin(t, inner(s)).(*businessTx)
		in := c.Tx(struct {
			store.Tx
			store.Journal
		}{tx.Tx, tx.Journal})
		return encryptedTx{in, in.(store.Journal), tx}
	}
	h.Histories = 20 // the store itself plays more
	storetest.Run(t, h)
}

func TestEncryption_LeasedAndAtomic_NoResultInTheFiles(t *testing.T) {
	const canary = "canary-4711"
	s := openNew(t, nil)
	o := &semel.Options{Encryption: &encrypted.Cipher{Keys: oneKey{}, RequireEncrypted: true}}
	g, err := semel.New(s, o)
	if err != nil {
		t.Fatal(err)
	}
	a, err := NewAtomic(s, o)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		got, err := semel.Do(t.Context(), g, call("leased"), func(ctx context.Context, x *semel.Execution) (string, error) {
			return semel.Do(ctx, g, x.Step("s"), func(context.Context, *semel.Execution) (string, error) { return canary, nil })
		})
		if err != nil || got != canary {
			t.Errorf("leased: %q, %v", got, err)
		}
		got, err = Do(t.Context(), a, call("atomic"), func(context.Context, *semel.Execution, *sql.Tx) (string, error) { return canary, nil })
		if err != nil || got != canary {
			t.Errorf("atomic: %q, %v", got, err)
		}
		err = Once(t.Context(), a, call("failed"), func(context.Context, *semel.Execution, *sql.Tx) error {
			return semel.Final(errors.New(canary))
		})
		if f, ok := errors.AsType[*semel.Failure](err); !ok || f.Message != canary {
			t.Errorf("failed: %v", err)
		}
	}
	if err := semel.Once(t.Context(), g, call("released"), func(context.Context, *semel.Execution) error { return errors.New(canary) }); err == nil {
		t.Error("no error")
	}
	records := 0
	for _, end := range []string{"", "-wal"} {
		doc, err := os.ReadFile(s.path + end)
		if err != nil {
			t.Fatal(err)
		}
		records += bytes.Count(doc, []byte(encrypted.Codec))
		if n := bytes.Count(doc, []byte(canary)); n > 0 {
			t.Errorf("the canary is %d times in %s", n, fmt.Sprint("semel.db", end))
		}
	}
	if records == 0 {
		t.Error("no encrypted record is in the files, so the test would find nothing")
	}
}
