package storetest

import (
	"fmt"
	"strings"

	"github.com/semel-go/semel/store"
)

var keysChecks = []check{
	{"equal values in two scopes are different keys", keysScopes},
	{"the fields of a key are kept apart", keysConcatenation},
	{"similar texts are different keys", keysExact},
	{"a value may hold any bytes", keysBytes},
	{"all of 255 bytes count", keysLong},
	{"each method acts on its key only", keysMethods},
}

// apart claims each key and fails unless each is a record of its own that
// comes back with its key as it was given.
func (b *bed) apart(keys ...store.Key) {
	b.Helper()
	made := map[store.Key]store.Record{}
	for _, k := range keys {
		f, err := b.st.Claim(b.Context(), proposal(k, store.Processing))
		if err != nil || !f.Won {
			b.Errorf("claim of %+q: won %v, error %v; it met the record of %+q", k, f.Won, err, f.Record.Key)
			continue
		}
		made[k] = f.Record
	}
	for k, r := range made {
		f, err := b.st.Get(b.Context(), k)
		if err != nil {
			b.Errorf("Get(%+q): %v", k, err)
		} else if d := diff(r, f.Record); d != "" || f.Record.Key != k {
			b.Errorf("the record of %+q is another: %s", k, d)
		}
	}
}

func keysScopes(b *bed) {
	var keys []store.Key
	for _, op := range []string{"charge", "refund"} {
		for _, tenant := range []string{"", "t1", "t2"} {
			for _, value := range []string{"k1", "k2"} {
				keys = append(keys, store.Key{Operation: op, Tenant: tenant, Value: value})
			}
		}
	}
	b.apart(keys...)
}

func keysConcatenation(b *bed) {
	var keys []store.Key
	for _, sep := range []string{"", ":", "/", "#", "|", "\x1f", "{", "}", ".", " ", "\\", "%", "'", "\""} {
		s := sep
		keys = append(keys,
			store.Key{Operation: "a" + s + "b", Tenant: "c", Value: "d" + s},
			store.Key{Operation: "a", Tenant: "b" + s + "c", Value: "d" + s},
			store.Key{Operation: "a", Tenant: "b", Value: s + "c" + s + "d" + s},
			store.Key{Operation: "a" + s, Tenant: s + "b", Value: "c" + s + "d" + s},
		)
	}
	keys = append(keys,
		store.Key{Operation: "x", Tenant: "y", Value: "z"}, store.Key{Operation: "xy", Value: "z"},
		store.Key{Operation: "x", Value: "yz"}, store.Key{Tenant: "x", Value: "yz"}, store.Key{Tenant: "xy", Value: "z"}, store.Key{Value: "xyz"})
	seen := map[store.Key]bool{}
	distinct := keys[:0]
	for _, k := range keys {
		if !seen[k] {
			seen[k], distinct = true, append(distinct, k)
		}
	}
	b.apart(distinct...)
}

func keysExact(b *bed) {
	var keys []store.Key
	for _, text := range []string{
		"key", "KEY", "Key", " key", "key ", "key  ", "key\t", "key\n", // case, blanks
		"é", "e\u0301", "É", "ß", "ss", "ı", "i", "İ", // one letter in two forms; letters that fold
		"日本語", "🔑", "ключ", "\u202ekey", "\ufeffkey", "k\u200bey",
		"%", "_", "*", "?", "'; drop table x; --", "\\", "\\\\", "null", "NULL", "0", "00", "1e3", "1000", "true",
	} {
		keys = append(keys, store.Key{Operation: "exact", Tenant: "t", Value: text},
			store.Key{Operation: "exact", Tenant: text, Value: "v"}, store.Key{Operation: text, Tenant: "t", Value: "v"})
	}
	b.apart(keys...)
}

func keysBytes(b *bed) {
	var keys []store.Key
	for _, v := range []string{"\x00", "a", "a\x00", "a\x00b", "a\x00\x00b", "\xff", "\xfe", "\xef\xbf\xbd", "caf\xe9", "caf\xc3\xa9", "\x80", "\xc0\x80"} {
		keys = append(keys, store.Key{Operation: "bytes", Tenant: "t", Value: v})
	}
	b.apart(keys...)
}

func keysLong(b *bed) {
	prefix := strings.Repeat("x", 254)
	keys := []store.Key{{Operation: "long", Tenant: "t", Value: prefix}}
	for _, last := range []string{"a", "b", "A", "\x00", " "} {
		keys = append(keys, store.Key{Operation: "long", Tenant: "t", Value: prefix + last},
			store.Key{Operation: "POST /" + prefix + last, Tenant: prefix + last, Value: prefix + last})
	}
	b.apart(keys...)
}

func keysMethods(b *bed) {
	// Neighbours of the key that is changed must not change with it.
	k := store.Key{Operation: "op", Tenant: "tenant", Value: "value"}
	var others []store.Record
	for i, n := range []store.Key{
		{Operation: "op2", Tenant: "tenant", Value: "value"}, {Operation: "op", Tenant: "tenant2", Value: "value"},
		{Operation: "op", Value: "value"}, {Operation: "op", Tenant: "tenant", Value: "value2"}, {Operation: "op", Tenant: "tenant", Value: "Value"},
	} {
		others = append(others, b.put(n, states[i], long))
	}
	calm := func(what string) {
		b.Helper()
		for _, r := range others {
			if d := diff(r, b.get(r.Key).Record); d != "" {
				b.Errorf("%s of %+v changed %+v: %s", what, k, r.Key, d)
			}
		}
	}
	r := b.claim(proposal(k, store.Processing)).Record
	calm("Claim")
	b.renew(2*long, r.Lease())
	calm("Renew")
	r = b.get(k).Record
	r = b.swap(r.Seen(), proposal(k, store.Processing)).Record
	calm("Swap")
	b.settle(r.Lease(), settlement(store.Completed, b.short()))
	calm("Settle")
	b.outlive(k)
	b.sweepAll(100)
	b.absent(k)
	for i, o := range others { // a lease names the key too
		l := store.Lease{Key: k, Owner: o.Owner, Fence: o.Fence}
		if err := b.st.Settle(b.Context(), l, settlement(store.Completed, long)); err == nil {
			b.Errorf("the lease of %s settled under another key", fmt.Sprint(others[i].Key))
		}
	}
	calm("Sweep")
}
