package semelhttp

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// maxKey is the length limit of a key, in characters.
const maxKey = 255

var (
	errKeyEmpty    = fmt.Errorf("it is empty; 1 to %d printable ASCII characters are needed", maxKey)
	errKeyLong     = fmt.Errorf("it has too many characters; at most %d are allowed", maxKey)
	errKeySeveral  = errors.New("there are several; send one key in one header line")
	errKeyQuote    = errors.New("the quoted string is not closed, or text follows it")
	errKeyEscape   = errors.New(`in a quoted string, a backslash must be followed by " or another backslash`)
	errKeyChar     = errors.New("it has a character that is not printable ASCII")
	errKeyBareChar = errors.New(`a key with a space or one of " , ; \ must be a quoted string`)
	errKeyBare     = errors.New(`it must be a quoted string, such as "8e03978e-40d5-43dd-bc93-6894a57f9324"`)
)

// findKey reads the request's key from the headers of the given names. Only one of
// them may be there, with one line. Found is true for a malformed key, too.
func findKey(h http.Header, names []string, strict bool) (key string, found bool, err error) {
	for _, name := range names {
		lines := h[name]
		if len(lines) == 0 {
			continue
		}
		if found || len(lines) > 1 {
			return "", true, errKeySeveral
		}
		found = true
		key, err = parseKey(lines[0], strict)
	}
	return key, found, err
}

// ParseKey reads the key from the lines of a key header, as Middleware does. It is for
// protocols that carry the header in another way, such as the metadata of gRPC. Without
// a line the key is empty. The text of the error is for the client, and does not repeat
// the value.
func ParseKey(lines []string) (key string, err error) {
	key, _, err = findKey(http.Header{"": lines}, []string{""}, false)
	return key, err
}

// parseKey reads a header value: a quoted string (an RFC 9651 item, whose
// parameters are ignored) or, unless strict, the bare key. Both forms of one key
// give the same result. The error texts are for the client and do not repeat the
// value.
func parseKey(value string, strict bool) (string, error) {
	value = strings.Trim(value, " \t")
	if value == "" {
		return "", errKeyEmpty
	}
	if value[0] == '"' {
		return parseQuoted(value)
	}
	if strict {
		return "", errKeyBare
	}
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case c < 0x20 || c > 0x7e:
			return "", errKeyChar
		case c == ' ' || c == '"' || c == ',' || c == ';' || c == '\\':
			return "", errKeyBareChar
		}
	}
	return limitKey(value)
}

// parseQuoted reads a quoted string. It copies the value only if it has escapes.
func parseQuoted(value string) (string, error) {
	var unescaped []byte
	start := 1 // of the part that is not copied to unescaped
	for i := 1; i < len(value); i++ {
		switch c := value[i]; {
		case c < 0x20 || c > 0x7e:
			return "", errKeyChar
		case c == '\\':
			if i+1 == len(value) || value[i+1] != '"' && value[i+1] != '\\' {
				return "", errKeyEscape
			}
			unescaped = append(unescaped, value[start:i]...)
			i++
			start = i
		case c == '"':
			if err := checkParameters(value[i+1:]); err != nil {
				return "", err
			}
			if start == 1 { // no escapes
				return limitKey(value[1:i])
			}
			return limitKey(string(append(unescaped, value[start:i]...)))
		}
	}
	return "", errKeyQuote
}

// checkParameters refuses text that cannot be parameters. A comma would make it a
// list: a proxy joins two header lines in this way.
func checkParameters(rest string) error {
	if rest == "" {
		return nil
	}
	if rest[0] == ',' {
		return errKeySeveral
	}
	if rest[0] != ';' {
		return errKeyQuote
	}
	quoted := false
	for i := 0; i < len(rest); i++ {
		switch c := rest[i]; {
		case c < 0x20 || c > 0x7e:
			return errKeyChar
		case c == '\\' && quoted:
			i++
		case c == '"':
			quoted = !quoted
		case c == ',' && !quoted:
			return errKeySeveral
		}
	}
	if quoted {
		return errKeyQuote
	}
	return nil
}

func limitKey(key string) (string, error) {
	if key == "" {
		return "", errKeyEmpty
	}
	if len(key) > maxKey {
		return "", errKeyLong
	}
	return key, nil
}

// checkKey checks a key that does not come from a header.
func checkKey(key string) error {
	for i := 0; i < len(key); i++ {
		if key[i] < 0x20 || key[i] > 0x7e {
			return errKeyChar
		}
	}
	_, err := limitKey(key)
	return err
}

// quoteKey is the inverse of parseQuoted.
func quoteKey(key string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
}
