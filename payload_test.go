package semel_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/sweep"
)

// Rule 12: short and long payloads are hashed in different ways, with a secret and
// without. In each way the parts stay apart.
func TestBytes_ShortOrLongKeyedOrNot_PartsStayApart(t *testing.T) {
	long := bytes.Repeat([]byte("x"), 4096)
	for name, o := range map[string]*semel.Options{"plain": nil, "keyed": {Secrets: []semel.Secret{secret("a")}}} {
		for _, tail := range [][]byte{nil, long} {
			sums := map[string]bool{}
			for _, p := range []semel.Payload{
				semel.Bytes([]byte("a"), []byte("bc"), tail), semel.Bytes([]byte("ab"), []byte("c"), tail), semel.Bytes([]byte("abc"), tail), semel.Bytes([]byte("abc"), nil, tail),
			} {
				sums[fingerprintOf(t, o, p).Sum] = true
			}
			if len(sums) != 4 {
				t.Errorf("%s, with %d more bytes: 4 ways to cut the same bytes have %d hashes, want 4", name, len(tail), len(sums))
			}
		}
	}
}

// Rule 12: a record keeps its fingerprint when it is parked, swept or resolved.
func TestPayload_ParkedOrResolved_StaysCompared(t *testing.T) {
	st, advance := newClockedStore()
	g := guard(t, st, &semel.Options{OnDoubt: semel.Park})
	was, is := semel.JSON(10), semel.JSON(90)
	p := store.Proposal{State: store.Processing, Policy: store.Park, Owner: store.Owner{1}, Attempt: 1, Lease: time.Second, Fingerprint: fingerprintOf(t, nil, was)}
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
		t.Errorf("the sweep did %+v, %v; want 1 parked record", stats, err)
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

// Rule 12: the fingerprint is checked in every state of the record.
func TestPayload_Differs_IsMismatchInEveryState(t *testing.T) {
	st, advance := newClockedStore()
	retry, park := guard(t, st, nil), guard(t, st, &semel.Options{OnDoubt: semel.Park})
	was, is := semel.Bytes([]byte("10 EUR")), semel.Bytes([]byte("90 EUR"))
	for state, bring := range map[store.State]func(key string){
		store.Started: func(k string) { _, _ = retry.Reserve(t.Context(), paying(k, was)) },
		store.Released: func(k string) {
			_, _ = retry.Run(t.Context(), paying(k, was), fail(errBoom))
		},
		store.Completed: func(k string) { _, _ = retry.Run(t.Context(), paying(k, was), answer("")) },
		store.Failed:    func(k string) { _, _ = retry.Run(t.Context(), paying(k, was), fail(semel.Final(errBoom))) },
		store.Unknown:   func(k string) { _, _ = park.Run(t.Context(), paying(k, was), fail(errBoom)) },
		store.Processing: func(k string) {
			_, _ = st.Claim(t.Context(), store.Proposal{
				Key: store.Key{Operation: "pay", Tenant: "ann", Value: k}, State: store.Processing, Owner: store.Owner{1}, Attempt: 1,
				Lease: time.Second, Fingerprint: record(t, retry, store.Completed.String()).Fingerprint,
			})
		},
	} {
		if state == store.Processing { // takes the fingerprint of another record
			_, _ = retry.Run(t.Context(), paying(store.Completed.String(), was), answer(""))
		}
		key := state.String()
		bring(key)
		before := wantState(t, retry, key, state)
		for _, g := range []*semel.Guard{retry, park} {
			_, err := g.Run(t.Context(), paying(key, is), never(t))
			wantErr(t, err, semel.ErrMismatch)
		}
		if state == store.Processing {
			advance(time.Second) // the lease has expired: still a mismatch, and never a take-over
			_, err := retry.Run(t.Context(), paying(key, is), never(t))
			wantErr(t, err, semel.ErrMismatch)
		}
		if after := record(t, retry, key); after.Seen() != before.Seen() {
			t.Errorf("%v: a mismatch changed the record", state)
		}
	}
}

func TestPayload_OtherKind_IsUnverifiable(t *testing.T) {
	g := guard(t, memstore.New(nil), nil)
	_, err := g.Run(t.Context(), paying("k", semel.Bytes([]byte("1"))), answer("one"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []semel.Payload{semel.JSON(1), semel.NoPayload(), semel.JSON(json.RawMessage([]byte("1"))), semel.Digest("sha1", []byte("1"))} {
		_, err := g.Run(t.Context(), paying("k", p), never(t))
		wantErr(t, err, semel.ErrUnverifiable)
		if !strings.Contains(err.Error(), "by another algorithm: use the same one in all processes") {
			t.Errorf("the error does not say what to do: %v", err)
		}
	}
}

func TestBytes_CutDifferently_Differ(t *testing.T) {
	b := func(parts ...string) semel.Payload {
		var bs [][]byte
		for _, p := range parts {
			bs = append(bs, []byte(p))
		}
		return semel.Bytes(bs...)
	}
	if samePayload(t, b("a", "bc"), b("ab", "c")) || samePayload(t, b("a", ""), b("a")) || samePayload(t, b(), b("")) {
		t.Error("two ways to cut the same bytes are equal payloads")
	}
	if !samePayload(t, b("a", "bc"), b("a", "bc")) {
		t.Error("equal parts differ")
	}
	secret := &semel.Options{Secrets: []semel.Secret{{ID: "1", Key: bytes.Repeat([]byte("k"), 32)}}}
	if fingerprintOf(t, secret, semel.Digest("a", []byte("bc"))).Sum == fingerprintOf(t, secret, semel.Digest("ab", []byte("c"))).Sum {
		t.Error("bytes moved from the sum to the alg change nothing")
	}
}

func TestDigest_AlgAndSum_AreCompared(t *testing.T) {
	sum := sha256.Sum256([]byte("a"))
	d := func(alg string, sum []byte) semel.Payload { return semel.Digest(alg, sum) }
	if !samePayload(t, d("a", sum[:]), d("a", sum[:])) || samePayload(t, d("a", sum[:]), d("a", sum[:31])) {
		t.Error("equal digests differ, or different ones are equal")
	}
	g := guard(t, memstore.New(nil), nil)
	for name, p := range map[string]semel.Payload{
		"no alg": d("", sum[:]), "long alg": d(strings.Repeat("a", 65), sum[:]), "no sum": d("a", nil), "long sum": d("a", make([]byte, 65)),
		"our alg": d("bytes/sha256", sum[:]), "our keyed alg": d("rfc8785/hmac-sha256", sum[:]),
		"alg of imported keys, whose payloads are all the same": d(store.AnyPayload, sum[:]),
	} {
		if _, err := g.Run(t.Context(), paying("k", p), never(t)); !errors.Is(err, semel.ErrInvalid) || !strings.Contains(err.Error(), "digest") {
			t.Errorf("%s: got error %v, want ErrInvalid that names the digest", name, err)
		}
	}
	if _, err := g.Run(t.Context(), paying("k", d(strings.Repeat("a", 64), make([]byte, 64))), answer("")); err != nil {
		t.Errorf("the largest digest: %v", err)
	}
}

// Two payloads are equal only if their parts are equal.
func FuzzFingerprint(f *testing.F) {
	f.Add([]byte("a"), []byte("bc"), []byte("ab"), []byte("c"))
	f.Add([]byte(""), []byte(""), []byte(""), []byte(""))
	f.Fuzz(func(t *testing.T, a, b, c, d []byte) {
		equal := string(a) == string(c) && string(b) == string(d)
		if got := samePayload(t, semel.Bytes(a, b), semel.Bytes(c, d)); got != equal {
			t.Errorf("(%q,%q) and (%q,%q): equal is %v", a, b, c, d, got)
		}
	})
}

// textual marshals itself as text.
type textual struct{ s string }

func (t textual) MarshalText() ([]byte, error) { return []byte(t.s), nil }

// encoding/json writes U+FFFD for each invalid byte. Strings with different bytes must
// be different payloads all the same.
func TestJSON_StringsNotUTF8_StayApart(t *testing.T) {
	type inner struct{ ID string }
	type order struct {
		inner
		Skipped string `json:"-"`
		Any     any
		Data    []byte
	}
	deep := func(s string) order { return order{Any: []any{1, map[string]*inner{"a": {s}, "b": nil}}} }
	for name, pair := range map[string][2]any{
		"a string":                   {"a\xff", "a\xfe"},
		"strings in another order":   {[]string{"\xff", "\xfe"}, []string{"\xfe", "\xff"}},
		"invalid, and U+FFFD":        {"a\xff", "a\ufffd"},
		"nested deeply":              {deep("\xff"), deep("\xfe")},
		"an embedded struct":         {order{inner: inner{"\xff"}}, order{inner: inner{"\xfe"}}},
		"a pointer":                  {&inner{"\xff"}, &inner{"\xfe"}},
		"a map key":                  {map[string]int{"\xff": 1}, map[string]int{"\xfe": 1}},
		"an array":                   {[1]string{"\xff"}, [1]string{"\xfe"}},
		"a TextMarshaler":            {textual{"\xff"}, textual{"\xfe"}},
		"a TextMarshaler as map key": {map[textual]int{{"\xff"}: 1}, map[textual]int{{"\xfe"}: 1}},
	} {
		if samePayload(t, semel.JSON(pair[0]), semel.JSON(pair[1])) {
			t.Errorf("%s: two different payloads are equal", name)
		}
		for range 20 { // the order of a map is random
			if !samePayload(t, semel.JSON(pair[0]), semel.JSON(pair[0])) {
				t.Fatalf("%s: a payload differs from itself", name)
			}
		}
	}
	many := map[string]string{"\xff": "\xfe", "\xfe": "\xff", "\xfd": "\xfd"}
	for range 20 {
		if !samePayload(t, semel.JSON(many), semel.JSON(many)) {
			t.Fatal("a map differs from itself")
		}
	}
	skipped := order{Skipped: "\xff", Any: "\ufffd", Data: []byte("\xff")}
	if !samePayload(t, semel.JSON(skipped), semel.JSON(order{Any: "\ufffd", Data: []byte("\xff")})) {
		t.Error("fields that JSON omits, or bytes, make a difference")
	}
}

func TestFields_AllAbsent_IsInvalid(t *testing.T) {
	g := guard(t, memstore.New(nil), nil)
	_, err := g.Run(t.Context(), semel.Call{Operation: pay, Tenant: "ann", Key: "k", Payload: semel.Fields([]byte(`{"items":[{"id":1}]}`), "items.0.id")}, answer("one"))
	if err != nil {
		return
	}
	_, err = g.Run(t.Context(), semel.Call{Operation: pay, Tenant: "ann", Key: "k", Payload: semel.Fields([]byte(`{"items":[{"id":2}]}`), "items.0.id")}, never(t))
	if err == nil {
		t.Error("a call with another payload got the result of the first")
	}
}
