package store_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/semel-go/semel/store"
)

func idOf(value string) [16]byte {
	return store.Key{Operation: "charge", Tenant: "ann", Value: value}.ID()
}

// IDs are the primary keys of stored records, so they must never change.
func TestID_KnownKey_IsPositionAndDigest(t *testing.T) {
	for value, position := range map[string]string{
		// A UUID of version 7, as in RFC 9562, appendix A.6, and the ULID of its text.
		"017F22E2-79B0-7CC3-98C4-DC0C0C07398F":         "017f22e279b0",
		"017f22e2-79b0-7cc3-98c4-dc0c0c07398f":         "017f22e279b0",
		"order/017f22e2-79b0-7cc3-98c4-dc0c0c07398f":   "017f22e279b0",
		"01ARZ3NDEKTSV4RRFFQ69G5FAV":                   "01563e3ab5d3",
		"01arz3ndektsv4rrffq69g5fav":                   "01563e3ab5d3",
		"order:01ARZ3NDEKTSV4RRFFQ69G5FAV":             "01563e3ab5d3",
		"7ZZZZZZZZZZZZZZZZZZZZZZZZZ":                   "ffffffffffff",
		"1":                                            "000000000001",
		"order-000123":                                 "00000000007b",
		"order123":                                     "00000000007b",
		"orders/3/4294967296":                          "000100000000",
		"281474976710655":                              "ffffffffffff",
		"281474976710656":                              "800000000000", // too long for 48 bits: the highest 48
		"1541815603606036480":                          "ab2d08fb10bd", // a Snowflake ID
		"9999999999999999999":                          "8ac7230489e7",
		"99999999999999999999999":                      "8ac7230489e7", // the first 19 digits
		"20261124003207123456789":                      "e0f193f2410a",
		"naïve-7":                                      "000000000007",
		"":                                             "",
		"order-":                                       "",
		"8e03978e-40d5-43dd-bc93-6894a57f9324":         "", // a UUID of version 4
		"017f22e2-79b0-4cc3-98c4-dc0c0c07398f":         "", // a UUID of version 4, too
		"017f22e2279b0-7cc3-98c4-dc0c0c07398f":         "",
		"017f22e2-79b017cc3-98c4-dc0c0c07398f":         "",
		"017f22e2-79b0-7cc3098c4-dc0c0c07398f":         "",
		"017f22e2-79b0-7cc3-98c45dc0c0c07398f":         "",
		"x17f22e2-79b0-7cc3-98c4-dc0c0c07398f":         "",
		"0017f22e2-79b0-7cc3-98c4-dc0c0c07398f":        "", // 37 characters
		"8ZZZZZZZZZZZZZZZZZZZZZZZZZ":                   "", // more than 128 bits
		"01ARZ3NDEUTSV4RRFFQ69G5FAV":                   "", // U is not a digit of a ULID
		"01ARZ3NDEKTSV4RRFFQ69G5FA":                    "",
		"1a2":                                          "", // digits before letters: random
		"order-1a2":                                    "",
		"5d41402abc4b2a76b9719d911017c592":             "",
		"\x10\x117f22e2-79b0-7cc3-98c4-dc0c0c07398f12": "",
	} {
		k := store.Key{Operation: "charge", Tenant: "ann", Value: value}
		d := k.Digest()
		want := d[:16:16]
		if position != "" {
			head, err := hex.DecodeString(position)
			if err != nil {
				t.Fatal(err)
			}
			want = append(head, d[6:16]...)
		}
		if got := k.ID(); !bytes.Equal(got[:], want) {
			t.Errorf("%q: the ID is %x, want %x", value, got, want)
		}
	}
}

func TestID_ValuesInOrder_AreInOrder(t *testing.T) {
	const n = 2000
	for name, of := range map[string]func(i int) string{
		"numbers":    func(i int) string { return fmt.Sprint("order-", i) },
		"snowflakes": func(i int) string { return fmt.Sprint(1541815603606036480 + i<<22) },
		"offsets":    func(i int) string { return fmt.Sprintf("orders/3/%d", i) },
		"UUIDs":      func(i int) string { return fmt.Sprintf("017f22e2-%04x-7%03x-98c4-dc0c0c07398f", i, rand.IntN(1<<12)) },
		"ULIDs": func(i int) string {
			const digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
			return fmt.Sprintf("01ARZ3N%c%c%cTSV4RRFFQ69G%c%cAV", digits[i>>10], digits[i>>5&31], digits[i&31], digits[rand.IntN(32)], digits[rand.IntN(32)])
		},
	} {
		last := idOf(of(0))
		for i := 1; i < n; i++ {
			id := idOf(of(i))
			if bytes.Compare(last[:6], id[:6]) >= 0 {
				t.Fatalf("%s: the IDs of %q and of %q are not in order: %x and %x", name, of(i-1), of(i), last, id)
			}
			last = id
		}
	}
}

// Keys with the same position differ in the rest of the ID.
func TestID_SamePosition_Differs(t *testing.T) {
	seen := map[[16]byte]store.Key{}
	for _, k := range []store.Key{
		{Operation: "charge", Value: "order-7"}, {Operation: "charge", Value: "order-07"}, {Operation: "charge", Value: "7"},
		{Operation: "refund", Value: "order-7"}, {Operation: "charge", Tenant: "ann", Value: "order-7"},
		{Operation: "charge", Tenant: "bob", Value: "order-7"}, {Operation: "charge", Value: "a/order-7"},
	} {
		id := k.ID()
		if other, twice := seen[[16]byte(append(make([]byte, 6), id[6:]...))]; twice {
			t.Errorf("the IDs of %+v and %+v differ only in the position", k, other)
		}
		seen[[16]byte(append(make([]byte, 6), id[6:]...))] = k
	}
}

func TestID_AllocatesNothing(t *testing.T) {
	for _, value := range []string{"8e03978e-40d5-43dd-bc93-6894a57f9324", "017f22e2-79b0-7cc3-98c4-dc0c0c07398f", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "order-1234"} {
		k := store.Key{Operation: "POST /payments/{id}", Tenant: "account-12345", Value: value}
		if n := testing.AllocsPerRun(100, func() { _ = k.ID() }); n > 0 {
			t.Errorf("the ID of %q allocates %v times, want 0", value, n)
		}
	}
}

func FuzzKeyID(f *testing.F) {
	for _, v := range []string{"", "1", "order-1234", "017f22e2-79b0-7cc3-98c4-dc0c0c07398f", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "\xff-7", "99999999999999999999"} {
		f.Add("charge", v)
	}
	f.Fuzz(func(t *testing.T, op, v string) {
		k := store.Key{Operation: op, Value: v}
		id, d := k.ID(), k.Digest()
		if !bytes.Equal(id[6:], d[6:16]) {
			t.Errorf("%q: the ID is %x, want the end of the digest %x", v, id, d)
		}
	})
}

func BenchmarkKeyID(b *testing.B) {
	for _, value := range []string{"8e03978e-40d5-43dd-bc93-6894a57f9324", "017f22e2-79b0-7cc3-98c4-dc0c0c07398f", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "order-1234"} {
		b.Run(value, func(b *testing.B) {
			k := store.Key{Operation: "POST /payments/{id}", Tenant: "account-12345", Value: value}
			for b.Loop() {
				_ = k.ID()
			}
		})
	}
	b.Run("digest", func(b *testing.B) {
		k := store.Key{Operation: "POST /payments/{id}", Tenant: "account-12345", Value: "order-1234"}
		for b.Loop() {
			_ = k.Digest()
		}
	})
}
