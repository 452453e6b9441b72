package semelhttp

import (
	"errors"
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

// ParseKey is the door for gRPC and Connect. It reads a line as Middleware does.
func TestParseKey_Lines_OneKeyOrError(t *testing.T) {
	long := strings.Repeat("k", maxKey)
	for name, c := range map[string]struct {
		lines []string
		key   string
		err   error
	}{
		"no line":              {nil, "", nil},
		"bare":                 {[]string{"order-17"}, "order-17", nil},
		"quoted":               {[]string{`"order-17"`}, "order-17", nil},
		"spaces around it":     {[]string{" \torder-17 "}, "order-17", nil},
		"quoted, parameters":   {[]string{`"order-17";v=1`}, "order-17", nil},
		"longest":              {[]string{long}, long, nil},
		"empty":                {[]string{""}, "", errKeyEmpty},
		"empty, quoted":        {[]string{`""`}, "", errKeyEmpty},
		"too long":             {[]string{long + "k"}, "", errKeyLong},
		"too long, quoted":     {[]string{`"` + long + `k"`}, "", errKeyLong},
		"a space":              {[]string{"order 17"}, "", errKeyBareChar},
		"a comma":              {[]string{"order-17,order-18"}, "", errKeyBareChar},
		"a list":               {[]string{`"order-17", "order-18"`}, "", errKeySeveral},
		"a control character":  {[]string{"order\n17"}, "", errKeyChar},
		"not ASCII":            {[]string{"żółw"}, "", errKeyChar},
		"not closed":           {[]string{`"order-17`}, "", errKeyQuote},
		"two lines":            {[]string{"order-17", "order-18"}, "", errKeySeveral},
		"the same line twice":  {[]string{"order-17", "order-17"}, "", errKeySeveral},
		"an empty second line": {[]string{"order-17", ""}, "", errKeySeveral},
	} {
		if key, err := ParseKey(c.lines); key != c.key || !errors.Is(err, c.err) {
			t.Errorf("%s: ParseKey(%q) = %q, %v; want %q, %v", name, c.lines, key, err, c.key, c.err)
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
		lax, laxErr := parseKey(s, false)
		if key, err := ParseKey([]string{s}); key != lax || !errors.Is(err, laxErr) {
			t.Fatalf("ParseKey(%q) = %q, %v; parseKey: %q, %v", s, key, err, lax, laxErr)
		}
		if key, err := ParseKey([]string{s, s}); key != "" || err == nil {
			t.Fatalf("ParseKey(%q twice) = %q, %v", s, key, err)
		}
		if checkKey(s) == nil { // each valid key can be sent
			if got, err := parseKey(quoteKey(s), true); got != s || err != nil {
				t.Fatalf("quoted %q is %q, %v", s, got, err)
			}
		}
	})
}
