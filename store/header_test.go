package store_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/semel-go/semel/store"
)

func TestDecodeHeader_Encoded_ReturnsSameBytes(t *testing.T) {
	for name, h := range map[string][]store.Header{
		"none":       nil,
		"empty":      {},
		"plain":      {{Name: "Content-Type", Value: "text/plain"}, {Name: "X-B", Value: "1"}, {Name: "X-A", Value: "2"}, {Name: "X-B", Value: "3"}},
		"no value":   {{Name: "X-Empty", Value: ""}},
		"controls":   {{Name: "X", Value: "<&>\u2028\x00\ufffd"}, {Name: "X", Value: ""}},
		"latin-1":    {{Name: "Content-Disposition", Value: "filename=caf\xe9.pdf"}},
		"a raw name": {{Name: "\xff", Value: "x"}, {Name: "\xff", Value: "\xfe"}, {Name: "Y", Value: ""}},
		"mixed":      {{Name: "A", Value: "ok"}, {Name: "B", Value: "\xc3\x28"}},
		"no name":    {{Name: "", Value: ""}},
	} {
		s, err := store.EncodeHeader(h)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got, err := store.DecodeHeader(s); err != nil || !slices.Equal(got, h) {
			t.Errorf("%s: %q is decoded as %q, error %v", name, h, got, err)
		}
	}
}

func TestEncodeHeader_Text_IsReadable(t *testing.T) {
	if s, _ := store.EncodeHeader([]store.Header{{Name: "Content-Type", Value: "text/plain"}}); string(s) != `[["Content-Type","text/plain"]]` {
		t.Errorf("encoded as %s, want readable JSON", s)
	}
	if s, _ := store.EncodeHeader(nil); s != nil {
		t.Errorf("no header is encoded as %q, want nil", s)
	}
}

func FuzzHeader(f *testing.F) {
	f.Add("A", "b", "\xff")
	f.Add("", "", "")
	f.Fuzz(func(t *testing.T, name, v1, v2 string) {
		h := []store.Header{{Name: name, Value: v1}, {Name: "Fixed", Value: v2}, {Name: name, Value: v2}}
		s, err := store.EncodeHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := store.DecodeHeader(s); err != nil || !slices.Equal(got, h) {
			t.Errorf("%q is decoded as %q, error %v", h, got, err)
		}
		_, _ = store.DecodeHeader([]byte(name + v1)) // any input: no panic
		_, _ = store.DecodeHeader([]byte("[" + strings.TrimSpace(v1)))
	})
}
