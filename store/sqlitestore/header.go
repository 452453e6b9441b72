package sqlitestore

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// encodeHeader is a header as JSON: an object that people can read, or, if a
// byte of it is not UTF-8, which JSON would not give back, a list of
// [name, value, …] in base64. No header is "".
func encodeHeader(h map[string][]string) (string, error) {
	if len(h) == 0 {
		return "", nil
	}
	var v any = h
	if !isUTF8(h) {
		list := make([][][]byte, 0, len(h))
		for name, values := range h {
			line := [][]byte{[]byte(name)}
			for _, value := range values {
				line = append(line, []byte(value))
			}
			list = append(list, line)
		}
		v = list
	}
	b, err := json.Marshal(v)
	return string(b), err
}

func isUTF8(h map[string][]string) bool {
	for name, values := range h {
		if !utf8.ValidString(name) {
			return false
		}
		for _, v := range values {
			if !utf8.ValidString(v) {
				return false
			}
		}
	}
	return true
}

func decodeHeader(s string) (map[string][]string, error) {
	if s == "" {
		return nil, nil
	}
	if s[0] != '[' {
		var h map[string][]string
		err := json.Unmarshal([]byte(s), &h)
		return h, err
	}
	var list [][][]byte
	if err := json.Unmarshal([]byte(s), &list); err != nil {
		return nil, err
	}
	h := make(map[string][]string, len(list))
	for _, line := range list {
		if len(line) == 0 {
			return nil, fmt.Errorf("a header without a name")
		}
		values := make([]string, 0, len(line)-1)
		for _, v := range line[1:] {
			values = append(values, string(v))
		}
		h[string(line[0])] = values
	}
	return h, nil
}
