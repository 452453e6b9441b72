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

// secretOf is a secret of 32 bytes that begin with first.
func secretOf(first byte) []byte {
	b := make([]byte, 32)
	for i := range b {
		b[i] = first + byte(i)
	}
	return b
}

// The hashes are the keys of stored records, so they must never change.
func TestHashed_KnownKey_NeverChanges(t *testing.T) {
	const tenant = "b41d76da643c8d73156f042639003b7cf067331b170e7e8d40bac3140e9f8bcd"
	for key, want := range map[store.Key]store.Key{
		{Operation: "charge", Tenant: "ann", Value: "order-7"}: {Operation: "charge", Tenant: tenant, Value: "3255b256b87f07ed81b07f1727f153af92206f150a81dd3f744c2c8341f8c2b6"},
		{Operation: "charge", Value: "order-7"}:                {Operation: "charge", Value: "db977dcf66c402814d2abcfb2d29b1db7410746e5fbd0bb800240c28f5e1238c"},
		{Operation: "charge", Tenant: "ann"}:                   {Operation: "charge", Tenant: tenant},
		{}:                                                     {},
	} {
		if got := key.Hashed(secretOf(0)); got != want {
			t.Errorf("%+v: got %+v, want %+v", key, got, want)
		}
		if got := key.Hashed(nil); got != key {
			t.Errorf("%+v without a secret: got %+v", key, got)
		}
	}
}

// Values of two tenants, and fields that are cut in another place, have other hashes; all
// keys of a tenant have the same tenant.
func TestHashed_OtherKeyOrSecret_Differs(t *testing.T) {
	texts := []string{"", "a", "b", "ab", "a\x00\x00\x00\x00", "\x00\x00\x00\x00a", "\x00\x00\x00\x01a"}
	for _, secret := range [][]byte{secretOf(0), secretOf(1)} {
		values, tenants := map[string]bool{}, map[string]bool{}
		for _, tenant := range texts {
			for _, value := range texts[1:] {
				k := store.Key{Operation: "o", Tenant: tenant, Value: value}.Hashed(secret)
				if values[k.Value] || k.Operation != "o" {
					t.Errorf("tenant %q, value %q: the hash is that of another, or the operation is %q", tenant, value, k.Operation)
				}
				values[k.Value], tenants[k.Tenant] = true, true
			}
		}
		if len(tenants) != len(texts) {
			t.Errorf("%d tenants have %d hashes", len(texts), len(tenants))
		}
		for tenant := range tenants {
			if values[tenant] {
				t.Errorf("%s is the hash of a tenant and of a value", tenant)
			}
		}
	}
	k := store.Key{Tenant: "ann", Value: "k"}
	if a, b := k.Hashed(secretOf(0)), k.Hashed(secretOf(1)); a.Tenant == b.Tenant || a.Value == b.Value {
		t.Error("two secrets give the same hash")
	}
}

func BenchmarkHashed(b *testing.B) {
	k, secret := store.Key{Operation: "POST /payments/{id}", Tenant: "account-12345", Value: "8e03978e-40d5-43dd-bc93-6894a57f9324"}, secretOf(0)
	for b.Loop() {
		_ = k.Hashed(secret)
	}
}
