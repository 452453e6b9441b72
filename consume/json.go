package consume

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// member returns the text of a member of a JSON object; nil if it is absent or
// null.
func member(doc []byte, path string) (json.RawMessage, error) {
	raw := json.RawMessage(doc)
	for name := range strings.SplitSeq(path, ".") {
		var object map[string]json.RawMessage
		if err := json.Unmarshal(raw, &object); err != nil {
			return nil, fmt.Errorf("field %q: the body has no such member: %w", path, err)
		}
		raw = object[name]
		if raw = bytes.TrimSpace(raw); len(raw) == 0 || string(raw) == "null" {
			return nil, nil
		}
	}
	return raw, nil
}

// isEmpty reports whether a member is absent, null or an empty text, which many programs
// write for a value that is not set.
func isEmpty(raw json.RawMessage) bool { return raw == nil || string(raw) == `""` }

// text decodes a JSON string. If the result holds U+FFFD, which may stand for
// any invalid text, it returns the string as it is written, and exact is false.
func text(raw json.RawMessage) (s string, exact bool, err error) {
	if err := json.Unmarshal(raw, &s); err != nil {
		return "", false, err
	}
	if strings.ContainsRune(s, utf8.RuneError) {
		return string(raw), false, nil
	}
	return s, true, nil
}
