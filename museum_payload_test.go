package semel_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/sweep"
)

// Rule 12: without the secret a small payload could be guessed from its hash.
func TestTheSecretKeysTheHash(t *testing.T) {
	one, two := secret("a"), secret("a")
	two.Key = secret("b").Key
	keyed := func(s ...semel.Secret) *semel.Options { return &semel.Options{Secrets: s} }
	sums := map[string]bool{}
	for _, o := range []*semel.Options{keyed(), keyed(one), keyed(two)} {
		sums[hashed(t, o, semel.JSON("1234")).Sum] = true
	}
	if len(sums) != 3 {
		t.Errorf("no secret and two secrets make %d hashes of one payload", len(sums))
	}
}

// Rule 12: short and long payloads are hashed in different ways, and so are
// those with and without a secret.
func TestPartsStayApartHoweverTheyAreHashed(t *testing.T) {
	long := bytes.Repeat([]byte("x"), 4096)
	for name, o := range map[string]*semel.Options{"plain": nil, "keyed": {Secrets: []semel.Secret{secret("a")}}} {
		for _, tail := range [][]byte{nil, long} {
			sums := map[string]bool{}
			for _, p := range []semel.Payload{
				semel.Bytes([]byte("a"), []byte("bc"), tail), semel.Bytes([]byte("ab"), []byte("c"), tail), semel.Bytes([]byte("abc"), tail), semel.Bytes([]byte("abc"), nil, tail),
			} {
				sums[hashed(t, o, p).Sum] = true
			}
			if len(sums) != 4 {
				t.Errorf("%s, %d bytes more: 4 ways to cut the same bytes have %d hashes", name, len(tail), len(sums))
			}
		}
	}
}

// Rule 12: parking, sweeping and an operator's verdict keep what the key was
// used with.
func TestARecordKeepsItsPayloadThroughDoubt(t *testing.T) {
	st, advance := clocked()
	g := guard(t, st, &semel.Options{OnDoubt: semel.Park})
	was, is := semel.JSON(10), semel.JSON(90)
	p := store.Proposal{State: store.Processing, Policy: store.Park, Owner: store.Owner{1}, Attempt: 1, Lease: time.Second, Fingerprint: hashed(t, nil, was)}
	for _, key := range []string{"by a call", "by a sweep"} {
		p.Key = store.Key{Operation: "pay", Tenant: "ann", Value: key}
		if f, err := st.Claim(t.Context(), p); err != nil || !f.Won {
			t.Fatal(f, err)
		}
	}
	advance(time.Second)
	_, err := g.Run(t.Context(), paying("by a call", was), never(t))
	wantErr(t, err, semel.ErrParked)
	if stats, err := sweep.Once(t.Context(), st, nil); err != nil || stats.Parked != 1 {
		t.Errorf("swept %+v, %v", stats, err)
	}
	for _, key := range []string{"by a call", "by a sweep"} {
		parked := wantState(t, g, key, store.Unknown)
		_, err := g.Run(t.Context(), paying(key, is), never(t))
		wantErr(t, err, semel.ErrMismatch)
		if err := g.Resolve(t.Context(), parked, semel.DidNotHappen()); err != nil {
			t.Fatal(err)
		}
		_, err = g.Run(t.Context(), paying(key, is), never(t))
		wantErr(t, err, semel.ErrMismatch)
	}
}

// Section 2: who was strict once stays so, also when an operator frees the key.
func TestWhatWasParkedStaysStrict(t *testing.T) {
	st, advance := clocked()
	retry, park := guard(t, st, nil), guard(t, st, &semel.Options{OnDoubt: semel.Park})
	crash(t, st, semel.Retry, "k", time.Second)
	advance(time.Second)
	_, err := park.Run(t.Context(), ann("k"), never(t))
	wantErr(t, err, semel.ErrParked)
	if err := park.Resolve(t.Context(), record(t, park, "k"), semel.DidNotHappen()); err != nil {
		t.Fatal(err)
	}
	_, err = retry.Run(t.Context(), ann("k"), fail(errBoom))
	wantErr(t, err, semel.ErrParked)
	wantState(t, guard(t, st, nil), "k", store.Unknown)
}

// Rule 13: under park, what has no attempt left is not known to have failed.
func TestUnderParkAKeyWithoutAttemptsIsUnknown(t *testing.T) {
	st := memstore.New(nil)
	g := parking(t, st, says(semel.DidNotHappen(), nil))
	_, err := g.Run(t.Context(), ann("k"), fail(errBoom))
	wantErr(t, err, semel.ErrParked)
	if n, err := g.Reconcile(t.Context(), pay, 1); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if r := wantState(t, g, "k", store.Released); r.Attempt != 1 {
		t.Fatalf("attempt %d", r.Attempt)
	}
	_, err = guard(t, st, &semel.Options{OnDoubt: semel.Park, MaxAttempts: 1}).Run(t.Context(), ann("k"), never(t))
	wantErr(t, err, semel.ErrParked)
	wantState(t, g, "k", store.Unknown)
}
