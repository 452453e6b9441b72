package jsontext_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/semel-go/semel/internal/jsontext"
)

func canonical(t *testing.T, doc string) string {
	t.Helper()
	text, err := jsontext.Canonical([]byte(doc))
	if err != nil {
		t.Errorf("the canonical form of %s: %v", doc, err)
	}
	return string(text)
}

func TestCanonical_SameMeaning_SameForm(t *testing.T) {
	for _, same := range [][2]string{
		{`{"a":1,"b":[true,null]}`, " {\"b\" : [true , null],\n\"a\": 1.0}"},
		{`{"n":1e2}`, `{"n":100}`},
		{`"\u00e9\/"`, `"é/"`},
		{`-0`, `0`},
		{`1000000000000000000000`, `1e21`},
		{`0.10`, `1e-1`},
		{`0e9`, `0.00`},
		{`9007199254740993`, `9007199254740993.0`},
		{`9007199254740993`, `900719925474099.3e1`},
		{`12345678901234567.890`, `1234567890123456789E-2`},
	} {
		if a, b := canonical(t, same[0]), canonical(t, same[1]); a != b {
			t.Errorf("%s and %s have the forms %s and %s, want one form", same[0], same[1], a, b)
		}
	}
	if got, want := canonical(t, `1e21`), "1e+21"; got != want {
		t.Errorf("1e21 has the form %s, want %s as in ECMAScript", got, want)
	}
}

func TestCanonical_OtherMeaning_OtherForm(t *testing.T) {
	for _, other := range [][2]string{
		{`{"a":1}`, `{"a":"1"}`},
		{`[1,2]`, `[2,1]`},
		{`{"a":null}`, `{}`},
		{`9007199254740993`, `9007199254740992`}, // a double can hold only the second
		{`1152921504606846976`, `1152921504606847000`},
		{`12345678901234567.89`, `12345678901234567.90`},
		{`12345678901234567.89`, `-12345678901234567.89`},
		{`1.00000000000000000001`, `1`},
		{`1e-400`, `0`},
		{`1e-400`, `1e-401`},
		{`9007199254740993e1`, `9007199254740993`},
	} {
		if a, b := canonical(t, other[0]), canonical(t, other[1]); a == b {
			t.Errorf("%s and %s have one form, %s", other[0], other[1], a)
		}
	}
}

func TestCanonical_NotJSON_IsRefused(t *testing.T) {
	for _, doc := range []string{
		``, `{`, `{"a":1,"a":2}`, `1 2`, "\"\xff\"", `{"\ud800":1}`, strings.Repeat("[", 2000),
		`1e999`, `1e-99999999999999999999`, `0.1e-9223372036854775808`, `0.1e-2147483648`,
	} {
		if text, err := jsontext.Canonical([]byte(doc)); err == nil {
			t.Errorf("%.20q has the canonical form %q, want an error", doc, text)
		}
	}
}

func FuzzCanonical(f *testing.F) {
	for _, s := range []string{`{"b":1,"a":[1e3,"\u0001"]}`, `-0.0`, `"\ud83d\ude00"`, `{"":{}}`, `[12345678901234567.89,9007199254740993,1e-400]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		once, err := jsontext.Canonical(doc)
		if err != nil {
			return
		}
		if twice, err := jsontext.Canonical(once); err != nil || !bytes.Equal(once, twice) {
			t.Errorf("%q has the form %q, whose own form is %q, %v", doc, once, twice, err)
		}
	})
}

func TestFields_NamedMembers_AreCompared(t *testing.T) {
	fields := func(doc string) [][]byte {
		t.Helper()
		parts, err := jsontext.Fields([]byte(doc), []string{"id", "order.total"})
		if err != nil {
			t.Errorf("the fields of %s: %v", doc, err)
		}
		return parts
	}
	same := func(a, b string) bool { return slices.EqualFunc(fields(a), fields(b), bytes.Equal) }
	if !same(`{"id":1,"at":"09:00","order":{"total":5,"x":1}}`, `{"order":{"total":5.0},"at":"09:01","id":1}`) {
		t.Error("members that are not named make a difference")
	}
	for _, other := range []string{`{"id":2,"order":{"total":5}}`, `{"id":1,"order":{"total":6}}`, `{"id":1}`, `{"id":1,"order":{"total":null}}`} {
		if same(`{"id":1,"order":{"total":5}}`, other) {
			t.Errorf("%s is equal, although a named member differs", other)
		}
	}
	if same(`{"id":1}`, `{"id":1,"order":{"total":null}}`) {
		t.Error("an absent member equals null")
	}
}

func TestFields_NothingToCompare_IsError(t *testing.T) {
	if _, err := jsontext.Fields([]byte(`{"id":1}`), nil); err == nil {
		t.Error("no path: want an error")
	}
	if _, err := jsontext.Fields([]byte(`{"items":[{"id":1}]}`), []string{"items.0.id"}); err == nil {
		t.Error("no named member in the document: want an error")
	}
}
