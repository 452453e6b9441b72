package jsontext

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf16"
	"unicode/utf8"
)

// reader reads a document that json.Valid has accepted, so it looks for no errors of
// syntax. json.Decoder's Token takes several times as long, because it formats an error
// after each value.
type reader struct{ rest []byte }

// next is the next character that is no white space. Nothing is skipped but white space.
func (r *reader) next() byte {
	r.rest = bytes.TrimLeft(r.rest, " \t\r\n")
	return r.rest[0]
}

// skip skips n characters.
func (r *reader) skip(n int) { r.rest = r.rest[n:] }

// skipComma skips a comma if it is the next character.
func (r *reader) skipComma() {
	if r.next() == ',' {
		r.skip(1)
	}
}

// value reads nil, bool, string, json.Number, []any or object.
func (r *reader) value(depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("not JSON: nested deeper than %d", maxDepth)
	}
	switch r.next() {
	case '{':
		return r.object(depth)
	case '[':
		return r.list(depth)
	case '"':
		return r.text()
	case 'n':
		r.skip(len("null"))
		return nil, nil
	case 't':
		r.skip(len("true"))
		return true, nil
	case 'f':
		r.skip(len("false"))
		return false, nil
	}
	end := bytes.IndexAny(r.rest, ",]} \t\r\n")
	if end < 0 {
		end = len(r.rest)
	}
	n := json.Number(r.rest[:end])
	r.skip(end)
	return n, nil
}

func (r *reader) list(depth int) (any, error) {
	list := []any{}
	r.skip(1)
	for r.next() != ']' {
		v, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
		r.skipComma()
	}
	r.skip(1)
	return list, nil
}

func (r *reader) object(depth int) (any, error) {
	o := object{}
	r.skip(1)
	for r.next() != '}' {
		name, err := r.text()
		if err != nil {
			return nil, err
		}
		r.next() // the colon
		r.skip(1)
		v, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		o = append(o, member{name, v})
		r.skipComma()
	}
	r.skip(1)
	slices.SortStableFunc(o, func(a, b member) int { return compareNames(a.name, b.name) })
	for i := 1; i < len(o); i++ {
		if o[i].name == o[i-1].name {
			return nil, errors.New("an object has two members with the same name")
		}
	}
	return o, nil
}

// text reads a string.
func (r *reader) text() (s string, err error) {
	end, escaped := 1, false
	for ; r.rest[end] != '"'; end++ {
		if r.rest[end] == '\\' {
			end, escaped = end+1, true
		}
	}
	literal := r.rest[:end+1]
	r.skip(len(literal))
	if !escaped {
		return string(literal[1:end]), nil
	}
	err = json.Unmarshal(literal, &s)
	return s, err
}

// compareNames compares by UTF-16 code units (RFC 8785, section 3.2.3).
func compareNames(a, b string) int {
	for a != "" && b != "" {
		ra, na := utf8.DecodeRuneInString(a)
		rb, nb := utf8.DecodeRuneInString(b)
		if ra != rb {
			return slices.Compare(utf16.AppendRune(nil, ra), utf16.AppendRune(nil, rb))
		}
		a, b = a[na:], b[nb:]
	}
	return cmp.Compare(len(a), len(b))
}
