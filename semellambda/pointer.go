package semellambda

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// checkPointer returns an error if p is no JSON pointer (RFC 6901).
func checkPointer(p string) error {
	if p != "" && p[0] != '/' {
		return fmt.Errorf("JSON pointer %q: must be empty or begin with '/', as in \"/detail/orderId\"", p)
	}
	for i := 0; i < len(p); i++ {
		if p[i] == '~' && (i+1 == len(p) || p[i+1] != '0' && p[i+1] != '1') {
			return fmt.Errorf("JSON pointer %q: '~' must be written as \"~0\"", p)
		}
	}
	return nil
}

// checkPointers checks a list that must not be empty.
func checkPointers(pointers []string) error {
	errs := make([]error, 0, len(pointers))
	if len(pointers) == 0 {
		errs = append(errs, errors.New("name at least one JSON pointer"))
	}
	for _, p := range pointers {
		errs = append(errs, checkPointer(p))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("semellambda: %w", err)
	}
	return nil
}

var unescape = strings.NewReplacer("~1", "/", "~0", "~")

// lookUp returns the value that a valid pointer selects; ok is false if there is none.
func lookUp(doc json.RawMessage, pointer string) (value json.RawMessage, ok bool) {
	if pointer == "" {
		return doc, json.Valid(doc)
	}
	for token := range strings.SplitSeq(pointer[1:], "/") {
		if doc, ok = member(doc, unescape.Replace(token)); !ok {
			return nil, false
		}
	}
	return doc, true
}

// member returns the member of an object, or the element of an array.
func member(doc json.RawMessage, name string) (json.RawMessage, bool) {
	var object map[string]json.RawMessage
	if json.Unmarshal(doc, &object) == nil {
		value, ok := object[name]
		return value, ok
	}
	var array []json.RawMessage
	n, err := strconv.Atoi(name)
	if err != nil || strconv.Itoa(n) != name || json.Unmarshal(doc, &array) != nil || n < 0 || n >= len(array) {
		return nil, false
	}
	return array[n], true
}

// keyAt makes a key of the values that the pointers select. One value is the key
// itself; several are joined as a JSON array, so that "a","bc" is not "ab","c".
func keyAt(doc json.RawMessage, pointers []string) (string, error) {
	parts := make([]string, len(pointers))
	for i, p := range pointers {
		value, ok := lookUp(doc, p)
		if !ok {
			return "", fmt.Errorf("key: the event has nothing at %q", p)
		}
		text, err := keyText(value)
		if err != nil {
			return "", fmt.Errorf("key: %q %w", p, err)
		}
		parts[i] = text
	}
	if len(parts) == 1 {
		return parts[0], nil
	}
	joined, err := json.Marshal(parts)
	return string(joined), err
}

// keyText is the text of a string or of an integer. Another number has several
// spellings, so it is refused. So is U+FFFD, which encoding/json writes instead of half a
// surrogate pair and of bytes that are not UTF-8: different texts would be one key.
func keyText(value json.RawMessage) (string, error) {
	var text *string
	if json.Unmarshal(value, &text) == nil && text != nil {
		switch {
		case *text == "":
			return "", errors.New("is an empty string")
		case strings.ContainsRune(*text, utf8.RuneError):
			return "", errors.New("has text that is not valid Unicode, or the character U+FFFD, which stands for such text")
		}
		return *text, nil
	}
	digits := strings.TrimSpace(string(value))
	if strings.Trim(strings.TrimPrefix(digits, "-"), "0123456789") == "" && digits != "-0" && digits != "" {
		return digits, nil
	}
	return "", errors.New("is neither a string nor an integer")
}

// fieldsAt returns the values that the pointers select, by pointer.
func fieldsAt(doc json.RawMessage, pointers []string) (map[string]json.RawMessage, error) {
	fields := map[string]json.RawMessage{}
	for _, p := range pointers {
		if value, ok := lookUp(doc, p); ok {
			fields[p] = value
		}
	}
	if len(fields) == 0 {
		return nil, fmt.Errorf("payload: the event has nothing at any of %q", pointers)
	}
	return fields, nil
}
