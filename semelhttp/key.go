package semelhttp

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// maxKey is the most characters that a key may have.
const maxKey = 255

var (
	errKeyEmpty    = fmt.Errorf("it is empty; 1 to %d printable ASCII characters are needed", maxKey)
	errKeyLong     = fmt.Errorf("it has too many characters; at most %d are allowed", maxKey)
	errKeySeveral  = errors.New("there are several; send one key in one header line")
	errKeyQuote    = errors.New("the quoted string is not closed, or something follows it")
	errKeyEscape   = errors.New(`in a quoted string a backslash may only stand before " or another backslash`)
	errKeyChar     = errors.New("it has a character that is not printable ASCII")
	errKeyBareChar = errors.New(`a key with a space or one of " , ; \ must be a quoted string`)
	errKeyBare     = errors.New(`it must be a quoted string, such as "8e03978e-40d5-43dd-bc93-6894a57f9324"`)
)

// findKey looks for the request's key under each name. There may be one line
// of one of them; found is true if there is any, even a malformed one.
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

// parseKey reads a header's value: an RFC 9651 item that is a string, whose
// parameters mean nothing; or, unless strict, the bare key. A key has the same
// characters in both forms. The text of the errors is for the client, and
// repeats nothing of the value.
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

// parseQuoted copies only if there are escapes.
func parseQuoted(value string) (string, error) {
	var unescaped []byte
	start := 1 // of what is not yet copied
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
			if start == 1 { // there were none
				return limitKey(value[1:i])
			}
			return limitKey(string(append(unescaped, value[start:i]...)))
		}
	}
	return "", errKeyQuote
}

// checkParameters refuses what cannot be parameters: above all a comma, which
// makes a list, as a proxy does of two header lines.
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

// checkKey is for keys that do not come in a header.
func checkKey(key string) error {
	for i := 0; i < len(key); i++ {
		if key[i] < 0x20 || key[i] > 0x7e {
			return errKeyChar
		}
	}
	_, err := limitKey(key)
	return err
}

// quoteKey is the opposite of parseQuoted.
func quoteKey(key string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
}
