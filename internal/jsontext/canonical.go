package jsontext

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// member is one name and value of a JSON object, in the order of the document.
type member struct {
	name  string
	value any
}

// object keeps members apart from encoding/json's maps, which would hide that
// a name came twice.
type object []member

// Canonical is doc as RFC 8785 writes it.
func Canonical(doc []byte) ([]byte, error) {
	v, err := parseJSON(doc)
	if err != nil {
		return nil, err
	}
	return appendCanonical(make([]byte, 0, len(doc)), v)
}

// Fields is, for each path, the path and the canonical value there;
// the value of an absent member is empty, which is no JSON.
func Fields(doc []byte, paths []string) ([][]byte, error) {
	if len(paths) == 0 {
		return nil, errors.New("no field is named; give at least one path, such as \"order.id\"")
	}
	v, err := parseJSON(doc)
	if err != nil {
		return nil, err
	}
	parts, any := make([][]byte, 0, 2*len(paths)), false
	for _, path := range paths {
		var value []byte
		if at, ok := lookUp(v, path); ok {
			any = true
			if value, err = appendCanonical(nil, at); err != nil {
				return nil, err
			}
		}
		parts = append(parts, []byte(path), value)
	}
	if !any {
		return nil, errors.New("none of the named fields is there, so nothing would be compared")
	}
	return parts, nil
}

func lookUp(v any, path string) (any, bool) {
	for name := range strings.SplitSeq(path, ".") {
		o, ok := v.(object)
		if !ok {
			return nil, false
		}
		i := slices.IndexFunc(o, func(m member) bool { return m.name == name })
		if i < 0 {
			return nil, false
		}
		v = o[i].value
	}
	return v, true
}

const maxJSONDepth = 1000

func parseJSON(doc []byte) (any, error) {
	if !utf8.Valid(doc) {
		return nil, errors.New("not JSON: not valid UTF-8")
	}
	if err := checkSurrogates(doc); err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	v, err := parseValue(d, 0)
	if err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("not JSON: more follows the first value")
	}
	return v, nil
}

// checkSurrogates refuses half a UTF-16 pair, which encoding/json would turn
// into U+FFFD: two different strings would then be equal.
func checkSurrogates(doc []byte) error {
	for i := 0; i+1 < len(doc); i++ {
		if doc[i] != '\\' {
			continue
		}
		if i++; doc[i] != 'u' {
			continue
		}
		r := escaped(doc[i+1:])
		if !utf16.IsSurrogate(r) {
			continue
		}
		if len(doc) < i+11 || doc[i+5] != '\\' || doc[i+6] != 'u' || utf16.DecodeRune(r, escaped(doc[i+7:])) == utf8.RuneError {
			return errors.New("not JSON: half a surrogate pair")
		}
		i += 10
	}
	return nil
}

// escaped is the value of the four hexadecimal digits that b begins with.
func escaped(b []byte) rune {
	if len(b) < 4 {
		return utf8.RuneError
	}
	n, err := strconv.ParseUint(string(b[:4]), 16, 16)
	if err != nil {
		return utf8.RuneError
	}
	return rune(n)
}

func parseValue(d *json.Decoder, depth int) (any, error) {
	if depth > maxJSONDepth {
		return nil, fmt.Errorf("nested deeper than %d", maxJSONDepth)
	}
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t {
	case json.Delim('['):
		list := []any{}
		for d.More() {
			v, err := parseValue(d, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err = d.Token()
		return list, err
	case json.Delim('{'):
		return parseObject(d, depth)
	}
	return t, nil
}

func parseObject(d *json.Decoder, depth int) (any, error) {
	o := object{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, err
		}
		name, _ := t.(string) // the decoder lets nothing else through
		v, err := parseValue(d, depth+1)
		if err != nil {
			return nil, err
		}
		o = append(o, member{name, v})
	}
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	slices.SortStableFunc(o, func(a, b member) int { // RFC 8785 §3.2.3: by UTF-16 code units
		return slices.Compare(utf16.Encode([]rune(a.name)), utf16.Encode([]rune(b.name)))
	})
	for i := 1; i < len(o); i++ {
		if o[i].name == o[i-1].name {
			return nil, errors.New("a member's name comes twice in an object")
		}
	}
	return o, nil
}

func appendCanonical(b []byte, v any) ([]byte, error) {
	var err error
	switch v := v.(type) {
	case nil:
		return append(b, "null"...), nil
	case bool:
		return strconv.AppendBool(b, v), nil
	case string:
		return appendString(b, v), nil
	case json.Number:
		return appendNumber(b, v)
	case []any:
		b = append(b, '[')
		for i, e := range v {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = appendCanonical(b, e); err != nil {
				return nil, err
			}
		}
		return append(b, ']'), nil
	case object:
		b = append(b, '{')
		for i, m := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendString(b, m.name), ':')
			if b, err = appendCanonical(b, m.value); err != nil {
				return nil, err
			}
		}
		return append(b, '}'), nil
	}
	return nil, fmt.Errorf("unexpected %T", v)
}

// appendString escapes only what must be (§3.2.2.2).
func appendString(b []byte, s string) []byte {
	const short = "\b\t\n\f\r\"\\"
	b = append(b, '"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case strings.IndexByte(short, c) >= 0:
			b = append(b, '\\', "btnfr\"\\"[strings.IndexByte(short, c)])
		case c < 0x20:
			b = fmt.Appendf(b, "\\u%04x", c)
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}
