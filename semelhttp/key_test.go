package semelhttp

import (
	"net/http"
	"strings"
	"testing"
)

func TestKey_Forms_AreParsed(t *testing.T) {
	long := strings.Repeat("k", maxKey)
	for _, c := range []struct {
		value  string
		lax    string // the key; empty: refused
		strict string
	}{
		{`abc`, "abc", ""},
		{`"abc"`, "abc", "abc"},
		{` 	"abc" `, "abc", "abc"},
		{`8e03978e-40d5-43dd-bc93-6894a57f9324`, "8e03978e-40d5-43dd-bc93-6894a57f9324", ""},
		{`a/b+c=:?1'(){}`, `a/b+c=:?1'(){}`, ""},
		{`"a \"b\" \\c"`, `a "b" \c`, `a "b" \c`},
		{`"\""`, `"`, `"`},
		{`"\\"`, `\`, `\`},
		{`"a,b;c"`, "a,b;c", "a,b;c"},
		{`"abc";a=1;b="x,\"y"`, "abc", "abc"},
		{`"` + long + `"`, long, long},
		{long, long, ""},
		{long + "k", "", ""},
		{`"` + long + `k"`, "", ""},
		{``, "", ""},
		{`  `, "", ""},
		{`""`, "", ""},
		{`"abc`, "", ""},
		{`"`, "", ""},
		{`"abc\`, "", ""},
		{`"a\bc"`, "", ""},
		{`"abc"d`, "", ""},
		{`"a", "b"`, "", ""},
		{`"a","b"`, "", ""},
		{`"a";x=1, "b"`, "", ""},
		{`"a";x="1`, "", ""},
		{`a, b`, "", ""},
		{`a,b`, "", ""},
		{`a;b=1`, "", ""},
		{`a b`, "", ""},
		{`a"b`, "", ""},
		{`a\b`, "", ""},
		{`schlüssel`, "", ""},
		{`"schlüssel"`, "", ""},
		{"a\x00b", "", ""},
		{"\"a\x7fb\"", "", ""},
		{"\"a\";x=\x01", "", ""},
	} {
		for strict, want := range map[bool]string{false: c.lax, true: c.strict} {
			got, err := parseKey(c.value, strict)
			if got != want || (err == nil) != (want != "") {
				t.Errorf("parseKey(%q, %v) = %q, %v; want %q", c.value, strict, got, err, want)
			}
		}
	}
}

func TestKey_SeveralLinesOrHeaders_AreRefused(t *testing.T) {
	names := []string{"Idempotency-Key", "X-Idempotency-Key"}
	for _, c := range []struct {
		h     http.Header
		key   string
		found bool
	}{
		{http.Header{}, "", false},
		{http.Header{"Idempotency-Key": {"a"}}, "a", true},
		{http.Header{"X-Idempotency-Key": {"a"}}, "a", true},
		{http.Header{"Idempotency-Key": {"a", "a"}}, "", true},
		{http.Header{"Idempotency-Key": {"a"}, "X-Idempotency-Key": {"a"}}, "", true},
		{http.Header{"Idempotency-Key": {""}}, "", true},
		{http.Header{"Other": {"a"}}, "", false},
	} {
		key, found, err := findKey(c.h, names, false)
		if key != c.key || found != c.found || (err != nil) != (c.found && c.key == "") {
			t.Errorf("findKey(%v) = %q, %v, %v", c.h, key, found, err)
		}
	}
}

func TestKey_Malformed_ErrorHidesKey(t *testing.T) {
	for _, v := range []string{"canary canary", "canary,canary", "canary\"", strings.Repeat("canary", 50), "canaryü", `"canary`} {
		_, err := parseKey(v, false)
		if err == nil || strings.Contains(keyMalformed(err).Detail+err.Error(), "canary") {
			t.Errorf("parseKey(%q): %v", v, err)
		}
	}
}

func FuzzKeyHeader(f *testing.F) {
	for _, s := range []string{`abc`, `"abc"`, `"a\"b\\"`, `"a";b="c"`, `a,b`, `"a", "b"`, "\"\x00", `""`, strings.Repeat("x", 256)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, strict := range []bool{false, true} {
			key, err := parseKey(s, strict)
			if (err == nil) == (key == "") {
				t.Fatalf("parseKey(%q) = %q, %v", s, key, err)
			}
			if err != nil {
				continue
			}
			if checkKey(key) != nil {
				t.Fatalf("parseKey(%q) = %q, which is no key", s, key)
			}
			if again, err := parseKey(quoteKey(key), true); again != key || err != nil {
				t.Fatalf("parseKey(%q) = %q, but quoted it is %q, %v", s, key, again, err)
			}
			// A bare value with the same characters is refused or is the same key.
			if bare, err := parseKey(key, false); err == nil && bare != key && key[0] != '"' && strings.Trim(key, " ") == key {
				t.Fatalf("bare %q is %q", key, bare)
			}
		}
		if checkKey(s) == nil { // each valid key can be sent
			if got, err := parseKey(quoteKey(s), true); got != s || err != nil {
				t.Fatalf("quoted %q is %q, %v", s, got, err)
			}
		}
	})
}
