package store_test

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/semel-go/semel/store"
)

// The digest is the primary key of each stored record, so it must never change.
func TestDigest_KnownKey_NeverChanges(t *testing.T) {
	k := store.Key{Operation: "charge", Tenant: "ann", Value: "order-7"}
	want := sha256.Sum256([]byte("\x00\x00\x00\x06charge\x00\x00\x00\x03ann\x00\x00\x00\x07order-7"))
	if got := k.Digest(); got != want {
		t.Errorf("Digest is %x, want %x", got, want)
	}
	if got, want := k.Short(), hex.EncodeToString(want[:4]); got != want {
		t.Errorf("Short is %q, want %q", got, want)
	}
	long := store.Key{Operation: strings.Repeat("o", 300), Tenant: strings.Repeat("t", 300), Value: strings.Repeat("v", 255)}
	want = sha256.Sum256([]byte("\x00\x00\x01\x2c" + long.Operation + "\x00\x00\x01\x2c" + long.Tenant + "\x00\x00\x00\xff" + long.Value))
	if got := long.Digest(); got != want {
		t.Errorf("Digest of a long key is %x, want %x", got, want)
	}
}

func TestDigest_DifferentKeys_Differ(t *testing.T) {
	texts := []string{"", "a", "b", "ab", "ba", "a:b", ":", "::", "\x00", "\x00\x00\x00\x01", "\x00\x00\x00\x01a", "A", "a ", " a", strings.Repeat("a", 255), strings.Repeat("a", 256)}
	seen := map[[sha256.Size]byte]store.Key{}
	for _, op := range texts {
		for _, tenant := range texts {
			for _, value := range texts {
				k := store.Key{Operation: op, Tenant: tenant, Value: value}
				if other, twice := seen[k.Digest()]; twice {
					t.Fatalf("%+q and %+q have the same digest", k, other)
				}
				seen[k.Digest()] = k
			}
		}
	}
}

func TestDigest_AllocatesNothing(t *testing.T) {
	k := store.Key{Operation: "POST /payments/{id}", Tenant: "account-12345", Value: "8e03978e-40d5-43dd-bc93-6894a57f9324"}
	if n := testing.AllocsPerRun(100, func() { _ = k.Digest() }); n > 0 {
		t.Errorf("Digest allocates %v times, want 0", n)
	}
}

func FuzzKeyDigest(f *testing.F) {
	f.Add("a", "b", "c", "ab", "", "c")
	f.Add("a\x00", "", "b", "a", "\x00", "b")
	f.Add("", "\x00\x00\x00\x01", "", "\x00\x00\x00\x01", "", "")
	f.Fuzz(func(t *testing.T, o1, t1, v1, o2, t2, v2 string) {
		a, b := store.Key{Operation: o1, Tenant: t1, Value: v1}, store.Key{Operation: o2, Tenant: t2, Value: v2}
		if (a == b) != (a.Digest() == b.Digest()) {
			t.Errorf("%+q and %+q: equal %v, equal digests %v", a, b, a == b, a.Digest() == b.Digest())
		}
		// The same bytes, cut into other fields, are another key.
		if all := o1 + t1 + v1; len(all) > 0 {
			moved := store.Key{Operation: all[:len(o1)/2], Tenant: all[len(o1)/2 : len(o1)], Value: all[len(o1):]}
			if moved != a && moved.Digest() == a.Digest() {
				t.Errorf("%+q and %+q have the same digest", moved, a)
			}
		}
	})
}
