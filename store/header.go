package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// headerLine is a header as [name, value]. It is a slice and not an array, because
// encoding/json silently fills or cuts an array of another length.
type headerLine[T string | []byte] []T

// EncodeHeader encodes the header of an outcome or a message as JSON, for stores: a list of
// [name, value]. If a byte is not UTF-8, which JSON would change, it is an object
// with such a list in base64. No header is nil.
func EncodeHeader(h []Header) ([]byte, error) {
	if len(h) == 0 {
		return nil, nil
	}
	text, raw, readable := make([]headerLine[string], len(h)), make([]headerLine[[]byte], len(h)), true
	for i := range h {
		text[i], raw[i] = headerLine[string]{h[i].Name, h[i].Value}, headerLine[[]byte]{[]byte(h[i].Name), []byte(h[i].Value)}
		readable = readable && utf8.ValidString(h[i].Name) && utf8.ValidString(h[i].Value)
	}
	var v any = text
	if !readable {
		v = rawHeader{raw}
	}
	return json.Marshal(v)
}

type rawHeader struct {
	Base64 []headerLine[[]byte] `json:"base64"`
}

// DecodeHeader decodes what EncodeHeader has encoded, byte for byte. An error means
// that the record is corrupt.
func DecodeHeader(s []byte) ([]Header, error) {
	if len(s) == 0 {
		return nil, nil
	}
	if s[0] == '{' {
		var raw rawHeader
		if err := json.Unmarshal(s, &raw); err != nil {
			return nil, err
		}
		return headerLines(raw.Base64)
	}
	var text []headerLine[string]
	if err := json.Unmarshal(s, &text); err != nil {
		return nil, err
	}
	return headerLines(text)
}

func headerLines[T string | []byte](from []headerLine[T]) ([]Header, error) {
	if len(from) == 0 {
		return nil, errors.New("there is no line in it") // EncodeHeader makes nil of it
	}
	h := make([]Header, len(from))
	for i, l := range from {
		if len(l) != 2 {
			return nil, fmt.Errorf("line %d has %d parts, not a name and a value", i, len(l))
		}
		h[i] = Header{Name: string(l[0]), Value: string(l[1])}
	}
	return h, nil
}
