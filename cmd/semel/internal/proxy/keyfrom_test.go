package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/semel-go/semel"
)

func key(t *testing.T, doc string, paths ...string) string {
	t.Helper()
	k, err := keyFrom(paths)(nil, strings.NewReader(doc))
	if err != nil {
		t.Errorf("%s: %v", doc, err)
	}
	return k
}

func TestKeyFrom_EqualFields_EqualKeys(t *testing.T) {
	want := key(t, `{"order":{"id":"o1","no":7},"note":"a"}`, "order.id", "order.no")
	if !strings.HasPrefix(want, derivedPrefix) || len(want) > 255 {
		t.Errorf("the key is %q", want)
	}
	for _, doc := range []string{
		`{"note":"other","order":{"no":7,"id":"o1"}}`,
		` { "order" : { "no" : 7 , "id" : "\u006f1" } } `,
	} {
		if got := key(t, doc, "order.id", "order.no"); got != want {
			t.Errorf("%s: %s, want %s", doc, got, want)
		}
	}
	for _, doc := range []string{`{"order":{"id":"o2","no":7}}`, `{"order":{"id":"o1","no":"7"}}`, `{"order":{"id":"o1","no":-7}}`, `{"order":{"id":"o1","no":true}}`} {
		if got := key(t, doc, "order.id", "order.no"); got == want || got == "" {
			t.Errorf("%s: the same key, or none: %q", doc, got)
		}
	}
}

func TestKeyFrom_SplitFields_DifferentKeys(t *testing.T) {
	if key(t, `{"a":"xy","b":"z"}`, "a", "b") == key(t, `{"a":"x","b":"yz"}`, "a", "b") {
		t.Error("two documents, one key")
	}
	if key(t, `{"a":"x","b":"x"}`, "a") == key(t, `{"a":"x","b":"x"}`, "b") {
		t.Error("two fields, one key")
	}
}

// JSON text that is not valid Unicode is decoded as U+FFFD, whatever it was, so that
// different texts would have one key.
func TestKeyFrom_InvalidTexts_AreRefused(t *testing.T) {
	for _, doc := range []string{
		"{\"id\":\"a\xff\"}", "{\"id\":\"a\xfe\"}", `{"id":"a\ud800"}`, `{"id":"a\udfff"}`, `{"id":"a\ufffd"}`,
	} {
		if found, err := fields(strings.NewReader(doc), []string{"id"}); err == nil || !strings.Contains(err.Error(), "U+FFFD") {
			t.Errorf("%q: %v, error %v", doc, found, err)
		}
	}
}

func TestKeyFrom_MissingField_NoKey(t *testing.T) {
	for _, doc := range []string{`{}`, `{"id":null}`, `{"x.ID":"x"}`, `{"id":""}`} {
		if got := key(t, doc, "id"); got != "" {
			t.Errorf("%s: %q", doc, got)
		}
	}
	if got := key(t, `{"a":"x"}`, "a", "b"); got != "" {
		t.Errorf("one of two: %q", got)
	}
}

func TestKeyFrom_ObjectOrFloat_Refused(t *testing.T) {
	for _, doc := range []string{
		`id`, `{"id":"a","id":"a"}`, `{"id":1.0}`, `{"id":1e3}`, `{"id":-0}`, `{"id":{}}`, `{"id":["a"]}`, `{"id":"a"} {}`, `{"id":"a"`, `{"id":"a",}`,
	} {
		if k, err := keyFrom([]string{"id"})(nil, strings.NewReader(doc)); err == nil {
			t.Errorf("%s: made %q", doc, k)
		}
	}
	if k, err := keyFrom([]string{"a.id"})(nil, strings.NewReader(`{"a":"text"}`)); err == nil {
		t.Errorf("a member of a text: made %q", k)
	}
}

// A body that is no JSON object has no fields. A body that a service could read as an object
// all the same is refused, because its key would not be seen.
func TestKeyFrom_NoObject_NoKey(t *testing.T) {
	const form, none = "application/x-www-form-urlencoded", ""
	for _, c := range []struct {
		kind, body string
		refused    bool
	}{
		{none, "", false}, {none, " \n", false}, {none, `[{"id":"a"}]`, false}, {"application/json", `"id"`, false}, {"application/json", "7", false},
		{form, "user=ann", false}, {form, "1=2", false}, {"multipart/form-data; boundary=b", "--b\r\n", false}, {"application/octet-stream", "\x1f\x8b", false}, {form, "tru", false},
		{none, "user=ann", true}, {"application/json", "\x1f\x8b", true}, {"application/json", "\ufeff{}", true}, {"application/vnd.shop+json; charset=utf-16", "{\x00", true},
		{"application/json", "[\x93\x01", true}, {"application/json", "5\xcb\x31", true}, {"application/json", `[1] {}`, true}, // so can compressed JSON begin
		{"no type", "user=ann", true}, {form, `{"id":"a","id":"b"}`, true}, {form, `{"id":"a"`, true},
	} {
		r := httptest.NewRequest("POST", "/", nil)
		if c.kind != none {
			r.Header.Set("Content-Type", c.kind)
		}
		if k, err := keyFrom([]string{"id"})(r, strings.NewReader(c.body)); k != "" || (err != nil) != c.refused {
			t.Errorf("%q as %q: the key %q, %v", c.body, c.kind, k, err)
		}
	}
	failing := errors.New("the disk")
	r := httptest.NewRequest("POST", "/", nil)
	r.Header.Set("Content-Type", form)
	if _, err := keyFrom([]string{"id"})(r, iotest.ErrReader(failing)); !errors.Is(err, failing) {
		t.Errorf("a body that cannot be read: %v", err)
	}
}

// The decoder would replace both texts by the same one.
func TestKeyFrom_InvalidText_Refused(t *testing.T) {
	for _, doc := range []string{"{\"id\":\"\xff\"}", "{\"id\":\"\xfe\"}", `{"id":"\ud800"}`, `{"id":"\udfff"}`} {
		if k, err := keyFrom([]string{"id"})(nil, strings.NewReader(doc)); err == nil {
			t.Errorf("%q: made %q", doc, k)
		}
	}
}

// A member beside the way to a value may occur twice, and may be of any kind.
func TestKeyFrom_OtherMembers_Skipped(t *testing.T) {
	want := key(t, `{"a":{"id":1}}`, "a.id")
	for _, doc := range []string{`{"x":[{"a":{"id":2}},[]],"x":{},"a":{"y":{"id":3},"id":1,"y":null},"a.id":4}`} {
		if got := key(t, doc, "a.id"); got != want {
			t.Errorf("%s: %q, want %q", doc, got, want)
		}
	}
}

// A body that waits for its turn at a stop of the proxy is not malformed.
func TestKeyFrom_StopWhileWaiting_IsUnavailable(t *testing.T) {
	if err := parsing.Acquire(t.Context(), parseTotal); err != nil {
		t.Fatal(err)
	}
	defer parsing.Release(parseTotal)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	r := httptest.NewRequest("POST", "/pay", nil).WithContext(ctx)
	doc := strings.NewReader(`{"id":"` + strings.Repeat("x", 2*parseFree) + `"}`)
	if _, err := keyFrom([]string{"id"})(r, doc); !errors.Is(err, semel.ErrUnavailable) {
		t.Errorf("%v, want ErrUnavailable", err)
	}
}

// Many services read "ID" as "id", and use the last of both. The proxy would find another key
// than they do, or none.
func TestKeyFrom_OtherCapitals_Refused(t *testing.T) {
	for doc, names := range map[string][2]string{
		`{"ID":"a"}`: {"id", "ID"}, `{"id":"a","Id":"b"}`: {"id", "Id"}, `{"Id":"b","id":"a"}`: {"id", "Id"}, `{"iD":{}}`: {"id", "iD"},
		`{"Order":{"no":1}}`: {"order", "Order"}, `{"order":{"NO":1}}`: {"order.no", "order.NO"}, `{"order":{"no":1,"No":2}}`: {"order.no", "order.No"},
		`{"order":{"no":1},"ORDER":7}`: {"order", "ORDER"},
	} {
		k, err := keyFrom([]string{"id", "order.no"})(nil, strings.NewReader(doc))
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", names[0])) || !strings.Contains(err.Error(), fmt.Sprintf("%q", names[1])) {
			t.Errorf("%s: the key %q, %v", doc, k, err)
		}
	}
	for doc, paths := range map[string][]string{
		`{"id":"a","ID":"b"}`:                          {"id", "ID"}, // the operator says that they are two fields
		`{"id":"a","x":{"ID":"b"}}`:                    {"id"},
		`{"order":{"no":1,"ORDER":2},"NO":3,"x.no":4}`: {"order.no"},
	} {
		if key(t, doc, paths...) == "" {
			t.Errorf("%s: no key", doc)
		}
	}
}

// The decoder keeps 8 bytes for each bracket that is open, so that a body of 9 MiB would take
// more than 100 MiB. It stops at the limit, and reads no further.
func TestKeyFrom_DeepBody_RefusedAndMemoryBounded(t *testing.T) {
	for begin, want := range map[string]error{`{"other":`: errTooDeep, `[`: errNotJSON} {
		rest := strings.NewReader(strings.Repeat("[", 9<<20))
		if _, err := keyFrom([]string{"id"})(nil, io.MultiReader(strings.NewReader(begin), rest)); !errors.Is(err, want) {
			t.Errorf("%s[[[…: %v, want %v", begin, err, want)
		}
		if read := 9<<20 - rest.Len(); read > 1<<20 {
			t.Errorf("%s[[[…: it read %d bytes", begin, read)
		}
	}
	deep := `{"other":` + strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth) + `,"id":"k"}`
	if key(t, deep, "id") != key(t, `{"id":"k"}`, "id") {
		t.Error("a body at the limit has another key")
	}
}
