package jsontext

import (
	"encoding/json"
	"errors"
	"fmt"
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

// object is a JSON object. It is not a map, because a map would hide a name that
// occurs twice.
type object []member

// Canonical returns the canonical form of a document (RFC 8785).
func Canonical(doc []byte) ([]byte, error) {
	v, err := parse(doc)
	if err != nil {
		return nil, err
	}
	return appendCanonical(make([]byte, 0, len(doc)), v)
}

// Fields returns two parts for each path, such as "order.id": the path, and the
// canonical form of the member's value. The value of an absent member is empty. No
// JSON value is empty.
func Fields(doc []byte, paths []string) ([][]byte, error) {
	if len(paths) == 0 {
		return nil, errors.New("no field is named; give at least one path, such as \"order.id\"")
	}
	v, err := parse(doc)
	if err != nil {
		return nil, err
	}
	parts, found := make([][]byte, 0, 2*len(paths)), false
	for _, path := range paths {
		var value []byte
		if v, ok := lookUp(v, path); ok {
			found = true
			if value, err = appendCanonical(nil, v); err != nil {
				return nil, err
			}
		}
		parts = append(parts, []byte(path), value)
	}
	if !found {
		return nil, errors.New("the document has none of the named fields, so nothing would be compared")
	}
	return parts, nil
}

// lookUp finds the member at a path.
func lookUp(v any, path string) (value any, ok bool) {
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

const maxDepth = 1000

// parse reads a document as nil, bool, string, json.Number, []any and object.
func parse(doc []byte) (any, error) {
	if !utf8.Valid(doc) {
		return nil, errors.New("not JSON: not valid UTF-8")
	}
	if err := checkSurrogates(doc); err != nil {
		return nil, err
	}
	if !json.Valid(doc) {
		return nil, fmt.Errorf("not JSON: %w", json.Unmarshal(doc, new(json.RawMessage)))
	}
	r := reader{rest: doc}
	return r.value(0)
}

// checkSurrogates refuses an escape that is only half of a UTF-16 surrogate pair.
// encoding/json would turn each half into U+FFFD, so that two different strings
// would be equal.
func checkSurrogates(doc []byte) error {
	for i := 0; i+1 < len(doc); i++ {
		if doc[i] != '\\' {
			continue
		}
		if i++; doc[i] != 'u' {
			continue
		}
		r := hexRune(doc[i+1:])
		if !utf16.IsSurrogate(r) {
			continue
		}
		if len(doc) < i+11 || doc[i+5] != '\\' || doc[i+6] != 'u' || utf16.DecodeRune(r, hexRune(doc[i+7:])) == utf8.RuneError {
			return errors.New("not JSON: a \\u escape is half of a surrogate pair")
		}
		i += 10
	}
	return nil
}

// hexRune is the value of the first four hexadecimal digits of b.
func hexRune(b []byte) rune {
	if len(b) < 4 {
		return utf8.RuneError
	}
	n, err := strconv.ParseUint(string(b[:4]), 16, 16)
	if err != nil {
		return utf8.RuneError
	}
	return rune(n)
}

// appendCanonical appends the canonical form of a parsed value.
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

// appendString escapes only the characters that must be escaped (section 3.2.2.2).
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
