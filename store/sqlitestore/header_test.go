package sqlitestore

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

func sameHeader(a, b map[string][]string) bool { return maps.EqualFunc(a, b, slices.Equal) }

func TestHeadersComeBackByteForByte(t *testing.T) {
	for name, h := range map[string]map[string][]string{
		"none":         nil,
		"empty":        {},
		"plain":        {"Content-Type": {"text/plain"}, "X-A": {"1", "2"}},
		"no values":    {"X-Empty": {}},
		"odd text":     {"X": {"<&>\u2028\x00\ufffd", ""}},
		"latin-1":      {"Content-Disposition": {"filename=caf\xe9.pdf"}},
		"an odd name":  {"\xff": {"x", "\xfe"}, "Y": {}},
		"mixed":        {"A": {"ok"}, "B": {"\xc3\x28"}},
		"an empty one": {"": {""}},
	} {
		s, err := encodeHeader(h)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got, err := decodeHeader(s); err != nil || !sameHeader(got, h) {
			t.Errorf("%s: %q came back as %q, error %v", name, h, got, err)
		}
	}
}

func TestAPlainHeaderIsReadable(t *testing.T) {
	if s, _ := encodeHeader(map[string][]string{"Content-Type": {"text/plain"}}); s != `{"Content-Type":["text/plain"]}` {
		t.Errorf("kept as %s", s)
	}
	if s, _ := encodeHeader(nil); s != "" {
		t.Errorf("no header is kept as %q", s)
	}
}

func FuzzHeader(f *testing.F) {
	f.Add("A", "b", "\xff")
	f.Add("", "", "")
	f.Fuzz(func(t *testing.T, name, v1, v2 string) {
		h := map[string][]string{name: {v1, v2}, "Fixed": {v2}}
		s, err := encodeHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := decodeHeader(s); err != nil || !sameHeader(got, h) {
			t.Errorf("%q came back as %q, error %v", h, got, err)
		}
		_, _ = decodeHeader(name + v1) // whatever it is: no panic
		_, _ = decodeHeader("[" + strings.TrimSpace(v1))
	})
}
