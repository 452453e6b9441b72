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
	"github.com/semel-go/semel/internal/jsontext"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

func paying(key string, p semel.Payload) semel.Call {
	return semel.Call{Operation: pay, Tenant: "ann", Key: key, Payload: p}
}

// Rule 12: the fingerprint is checked in every state of the record.
func TestAnotherPayloadIsAMismatchInEveryState(t *testing.T) {
	st, advance := clocked()
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
		if state == store.Processing { // borrows the fingerprint of another
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
			advance(time.Second) // lapsed: still a mismatch, never a take-over
			_, err := retry.Run(t.Context(), paying(key, is), never(t))
			wantErr(t, err, semel.ErrMismatch)
		}
		if after := record(t, retry, key); after.Seen() != before.Seen() {
			t.Errorf("%v: a mismatch changed the record", state)
		}
	}
}

func secret(id string) semel.Secret {
	return semel.Secret{ID: id, Key: []byte(strings.Repeat(id, 16))}
}

// Rule 12: rotation keeps old ids readable; an unknown id is an error, never a
// mismatch, never an execution.
func TestSecretsRotate(t *testing.T) {
	st := memstore.New(nil)
	with := func(ids ...string) *semel.Guard {
		var ss []semel.Secret
		for _, id := range ids {
			ss = append(ss, secret(id))
		}
		return guard(t, st, &semel.Options{Secrets: ss})
	}
	_, err := with("a").Run(t.Context(), paying("k", semel.JSON(1)), answer("one"))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		g    *semel.Guard
		n    int
		want error
	}{
		"rotated, the same payload":   {with("b", "a"), 1, nil},
		"rotated, another payload":    {with("b", "a"), 2, semel.ErrMismatch},
		"dropped too early":           {with("b"), 1, semel.ErrUnverifiable},
		"dropped, another payload":    {with("b"), 2, semel.ErrUnverifiable},
		"no secrets":                  {with(), 1, semel.ErrUnverifiable},
		"the same secret, mismatched": {with("a"), 2, semel.ErrMismatch},
	} {
		_, err := c.g.Run(t.Context(), paying("k", semel.JSON(c.n)), never(t))
		if !errors.Is(err, c.want) || c.want != semel.ErrMismatch && errors.Is(err, semel.ErrMismatch) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
	if r := record(t, with(), "k"); r.Fingerprint.KeyID != "a" || r.Fingerprint.Alg != "rfc8785/hmac-sha256" {
		t.Errorf("kept %+v", r.Fingerprint)
	}
}

func TestAnUnkeyedRecordStaysReadableOnceSecretsAreSet(t *testing.T) {
	st := memstore.New(nil)
	_, err := guard(t, st, nil).Run(t.Context(), paying("k", semel.JSON(1)), answer("one"))
	if err != nil {
		t.Fatal(err)
	}
	g := guard(t, st, &semel.Options{Secrets: []semel.Secret{secret("a")}})
	res, err := g.Run(t.Context(), paying("k", semel.JSON(1)), never(t))
	wantBody(t, res, err, "one", true)
	_, err = g.Run(t.Context(), paying("k", semel.JSON(2)), never(t))
	wantErr(t, err, semel.ErrMismatch)
}

func TestAnotherWayOfHashingIsUnverifiable(t *testing.T) {
	g := guard(t, memstore.New(nil), nil)
	_, err := g.Run(t.Context(), paying("k", semel.Bytes([]byte("1"))), answer("one"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []semel.Payload{semel.JSON(1), semel.NoPayload(), semel.JSON(json.RawMessage([]byte("1"))), semel.Digest("sha1", []byte("1"))} {
		_, err := g.Run(t.Context(), paying("k", p), never(t))
		wantErr(t, err, semel.ErrUnverifiable)
	}
}

func same(t testing.TB, a, b semel.Payload) bool {
	t.Helper()
	g := guard(t, memstore.New(nil), nil)
	if _, err := g.Run(t.Context(), paying("k", a), answer("")); err != nil {
		t.Fatal(err)
	}
	_, err := g.Run(t.Context(), paying("k", b), answer(""))
	if err != nil && !errors.Is(err, semel.ErrMismatch) {
		t.Fatal(err)
	}
	return err == nil
}

func TestPartsAreLengthPrefixed(t *testing.T) {
	b := func(parts ...string) semel.Payload {
		var bs [][]byte
		for _, p := range parts {
			bs = append(bs, []byte(p))
		}
		return semel.Bytes(bs...)
	}
	if same(t, b("a", "bc"), b("ab", "c")) || same(t, b("a", ""), b("a")) || same(t, b(), b("")) {
		t.Error("two ways to cut the same bytes are one payload")
	}
	if !same(t, b("a", "bc"), b("a", "bc")) {
		t.Error("equal parts differ")
	}
	secret := []semel.Secret{{ID: "1", Key: bytes.Repeat([]byte("k"), 32)}}
	g := guard(t, memstore.New(nil), &semel.Options{Secrets: secret})
	if _, err := g.Run(t.Context(), paying("k", semel.Digest("a", []byte("bc"))), answer("")); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Run(t.Context(), paying("k", semel.Digest("ab", []byte("c"))), never(t)); !errors.Is(err, semel.ErrMismatch) {
		t.Errorf("the name of the algorithm runs into the sum: %v", err)
	}
}

func TestADigestIsComparedAsItIs(t *testing.T) {
	sum := sha256.Sum256([]byte("a"))
	d := func(alg string, sum []byte) semel.Payload { return semel.Digest(alg, sum) }
	if !same(t, d("a", sum[:]), d("a", sum[:])) || same(t, d("a", sum[:]), d("a", sum[:31])) {
		t.Error("a digest is not compared by its bytes")
	}
	g := guard(t, memstore.New(nil), nil)
	for name, p := range map[string]semel.Payload{
		"no alg": d("", sum[:]), "long alg": d(strings.Repeat("a", 65), sum[:]), "no sum": d("a", nil), "long sum": d("a", make([]byte, 65)),
		"our alg": d("bytes/sha256", sum[:]), "our keyed alg": d("rfc8785/hmac-sha256", sum[:]),
	} {
		if _, err := g.Run(t.Context(), paying("k", p), never(t)); !errors.Is(err, semel.ErrInvalid) || !strings.Contains(err.Error(), "digest") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := g.Run(t.Context(), paying("k", d(strings.Repeat("a", 64), make([]byte, 64))), answer("")); err != nil {
		t.Errorf("the largest digest: %v", err)
	}
}

func TestCanonicalComparesWhatADocumentSays(t *testing.T) {
	c := func(s string) semel.Payload { return semel.JSON(json.RawMessage([]byte(s))) }
	for _, eq := range [][2]string{
		{`{"a":1,"b":[true,null]}`, " {\"b\" : [true , null],\n\"a\": 1.0}"},
		{`{"n":1e2}`, `{"n":100}`},
		{`"\u00e9\/"`, `"é/"`},
		{`-0`, `0`},
		{`1000000000000000000000`, `1e21`},
		{`0.10`, `1e-1`}, {`0e9`, `0.00`},
		{`9007199254740993`, `9007199254740993.0`}, {`9007199254740993`, `900719925474099.3e1`}, {`12345678901234567.890`, `1234567890123456789E-2`},
	} {
		if !same(t, c(eq[0]), c(eq[1])) {
			t.Errorf("%s and %s differ", eq[0], eq[1])
		}
	}
	for _, ne := range [][2]string{
		{`{"a":1}`, `{"a":"1"}`}, {`[1,2]`, `[2,1]`}, {`{"a":null}`, `{}`},
		{`9007199254740993`, `9007199254740992`}, // a double holds only the second
		{`12345678901234567.89`, `12345678901234567.90`}, {`12345678901234567.89`, `-12345678901234567.89`},
		{`1.00000000000000000001`, `1`}, {`1e-400`, `0`}, {`1e-400`, `1e-401`}, {`9007199254740993e1`, `9007199254740993`},
	} {
		if same(t, c(ne[0]), c(ne[1])) {
			t.Errorf("%s and %s are equal", ne[0], ne[1])
		}
	}
	g := guard(t, memstore.New(nil), nil)
	for _, bad := range []string{``, `{`, `{"a":1,"a":2}`, `1 2`, "\"\xff\"", `1e999`, `1e-99999999999999999999`, `0.1e-9223372036854775808`, `0.1e-2147483648`, strings.Repeat("[", 2000), `{"\ud800":1}`} {
		_, err := g.Run(t.Context(), paying("k", c(bad)), never(t))
		if !errors.Is(err, semel.ErrInvalid) {
			t.Errorf("%.20q: got %v", bad, err)
		}
	}
}

func TestFieldsCompareOnlyWhatIsNamed(t *testing.T) {
	f := func(s string) semel.Payload { return semel.Fields([]byte(s), "id", "order.total") }
	if !same(t, f(`{"id":1,"at":"09:00","order":{"total":5,"x":1}}`), f(`{"order":{"total":5.0},"at":"09:01","id":1}`)) {
		t.Error("a field that is not named counts")
	}
	for _, other := range []string{`{"id":2,"order":{"total":5}}`, `{"id":1,"order":{"total":6}}`, `{"id":1}`, `{"id":1,"order":{"total":null}}`} {
		if same(t, f(`{"id":1,"order":{"total":5}}`), f(other)) {
			t.Errorf("%s is equal", other)
		}
	}
	if same(t, f(`{"id":1}`), f(`{"id":1,"order":{"total":null}}`)) {
		t.Error("absent equals null")
	}
	g := guard(t, memstore.New(nil), nil)
	_, err := g.Run(t.Context(), paying("k", semel.Fields([]byte("{}"))), never(t))
	wantErr(t, err, semel.ErrInvalid)
}

// FuzzFingerprint: two payloads are one only if they are cut alike.
func FuzzFingerprint(f *testing.F) {
	f.Add([]byte("a"), []byte("bc"), []byte("ab"), []byte("c"))
	f.Add([]byte(""), []byte(""), []byte(""), []byte(""))
	f.Fuzz(func(t *testing.T, a, b, c, d []byte) {
		equal := string(a) == string(c) && string(b) == string(d)
		if got := same(t, semel.Bytes(a, b), semel.Bytes(c, d)); got != equal {
			t.Errorf("(%q,%q) and (%q,%q): same is %v", a, b, c, d, got)
		}
	})
}

// FuzzCanonical: what is canonical stays as it is, and means the same.
func FuzzCanonical(f *testing.F) {
	for _, s := range []string{`{"b":1,"a":[1e3,"\u0001"]}`, `-0.0`, `"\ud83d\ude00"`, `{"":{}}`, `[12345678901234567.89,9007199254740993,1e-400]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		one, err := jsontext.Canonical(doc)
		if err != nil {
			return
		}
		two, err := jsontext.Canonical(one)
		if err != nil || string(one) != string(two) {
			t.Errorf("%q becomes %q, and that %q, %v", doc, one, two, err)
		}
	})
}

type textual struct{ s string }

func (t textual) MarshalText() ([]byte, error) { return []byte(t.s), nil }

// encoding/json writes all that is not UTF-8 as one and the same character:
// identifiers that are kept as raw bytes in strings must stay apart.
func TestJSONTellsTextsApartThatAreNotUTF8(t *testing.T) {
	type inner struct{ ID string }
	type order struct {
		inner
		Skipped string `json:"-"`
		Any     any
		Data    []byte
	}
	deep := func(s string) order { return order{Any: []any{1, map[string]*inner{"a": {s}, "b": nil}}} }
	for name, pair := range map[string][2]any{
		"a text":                   {"a\xff", "a\xfe"},
		"beside what is the same":  {[]string{"\xff", "\xfe"}, []string{"\xfe", "\xff"}},
		"and what stands for them": {"a\xff", "a\ufffd"},
		"deep inside":              {deep("\xff"), deep("\xfe")},
		"in what is embedded":      {order{inner: inner{"\xff"}}, order{inner: inner{"\xfe"}}},
		"a pointer":                {&inner{"\xff"}, &inner{"\xfe"}},
		"a name":                   {map[string]int{"\xff": 1}, map[string]int{"\xfe": 1}},
		"an array":                 {[1]string{"\xff"}, [1]string{"\xfe"}},
		"a text of its own making": {textual{"\xff"}, textual{"\xfe"}},
		"that, as a name":          {map[textual]int{{"\xff"}: 1}, map[textual]int{{"\xfe"}: 1}},
	} {
		if same(t, semel.JSON(pair[0]), semel.JSON(pair[1])) {
			t.Errorf("%s: two payloads are one", name)
		}
		for range 20 { // whatever the order of a map
			if !same(t, semel.JSON(pair[0]), semel.JSON(pair[0])) {
				t.Fatalf("%s: one payload is two", name)
			}
		}
	}
	many := map[string]string{"\xff": "\xfe", "\xfe": "\xff", "\xfd": "\xfd"}
	for range 20 {
		if !same(t, semel.JSON(many), semel.JSON(many)) {
			t.Fatal("one map is two payloads")
		}
	}
	skipped := order{Skipped: "\xff", Any: "\ufffd", Data: []byte("\xff")}
	if !same(t, semel.JSON(skipped), semel.JSON(order{Any: "\ufffd", Data: []byte("\xff")})) {
		t.Error("what JSON leaves out counts")
	}
}
