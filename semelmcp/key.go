package semelmcp

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// KeySource finds the idempotency key of a call: 1 to 255 bytes without control
// characters. Its error goes to the agent, so it says in words which key to send; it
// wraps ErrNoKey if the call has no key of this kind. It must be safe for concurrent use.
type KeySource func(req *mcp.CallToolRequest) (string, error)

// ErrNoKey is in the error of a KeySource if the call has no key of its kind.
var ErrNoKey = errors.New("the call has no idempotency key")

const howToMakeKeys = "send a new UUID for each new operation, and the same one whenever you repeat it"

// FromArgument takes the key from an argument: a string, or an integer as it is written.
// The input schema must have the argument, with a description such as "a new UUID for
// each new payment; the same one when you repeat a call". A key that begins with
// "arguments:", as those of [Hash] do, is refused.
func FromArgument(name string) KeySource {
	return func(req *mcp.CallToolRequest) (string, error) {
		var arguments map[string]json.RawMessage
		if err := json.Unmarshal(argumentsOf(req), &arguments); err != nil {
			return "", fmt.Errorf("the arguments are not a JSON object: %w", err)
		}
		raw, ok := arguments[name]
		var text *string
		switch {
		case !ok, string(raw) == "null", string(raw) == `""`:
			return "", fmt.Errorf("%w in the argument %q; %s", ErrNoKey, name, howToMakeKeys)
		case json.Unmarshal(raw, &text) == nil:
			return *text, checkKey(*text, fmt.Sprintf("the argument %q", name))
		case strings.Trim(strings.TrimPrefix(string(raw), "-"), "0123456789") == "":
			return string(raw), nil
		}
		return "", fmt.Errorf("the argument %q is neither a string nor an integer", name)
	}
}

// hashPrefix begins each key of Hash. A client cannot send such a key, and so cannot get the
// result of a call whose key was derived.
const hashPrefix = "arguments:"

// checkKey refuses a key that an agent must not send.
func checkKey(key, place string) error {
	if strings.HasPrefix(key, hashPrefix) {
		return fmt.Errorf("%s begins with %q, which is reserved for keys that the server makes; %s", place, hashPrefix, howToMakeKeys)
	}
	return checkText(key, place)
}

// checkText refuses U+FFFD, which encoding/json writes instead of half a surrogate pair and of
// bytes that are not UTF-8: different texts would be one key.
func checkText(s, place string) error {
	if strings.ContainsRune(s, utf8.RuneError) {
		return fmt.Errorf("%s has text that is not valid Unicode, or the character U+FFFD, which stands for such text", place)
	}
	return nil
}

// FromMeta takes the key from a string in the _meta of the call, such as
// "idempotencyKey". Models do not see _meta, so the client has to set it. A key that
// begins with "arguments:" is refused, as in [FromArgument].
func FromMeta(name string) KeySource {
	return func(req *mcp.CallToolRequest) (string, error) {
		switch key := req.Params.Meta[name].(type) {
		case nil:
		case string:
			if key != "" {
				return key, checkKey(key, fmt.Sprintf("_meta[%q]", name))
			}
		default:
			return "", fmt.Errorf("_meta[%q] is not a string", name)
		}
		return "", fmt.Errorf("%w in _meta[%q]; %s", ErrNoKey, name, howToMakeKeys)
	}
}

// Hash derives the key from the named arguments or, without names, from all of them, as
// JSON: white space and the order of members do not matter. The key has the arguments
// that are there; if each of the named ones is absent, null or an empty text, there is no
// key. Two calls that are not duplicates must differ in these arguments. Equal numbers of up
// to 15 digits are equal, such as 1 and 1.0; longer ones count as they are written.
func Hash(names ...string) KeySource {
	return func(req *mcp.CallToolRequest) (string, error) {
		all, err := decodeNumbers(argumentsOf(req))
		if err != nil {
			return "", fmt.Errorf("the arguments are not a JSON object: %w", err)
		}
		chosen := all
		if len(names) > 0 {
			chosen = map[string]any{}
			found := false
			for _, name := range names {
				if v, ok := all[name]; ok {
					chosen[name] = v
					found = found || v != nil && v != ""
				}
			}
			if !found {
				return "", fmt.Errorf("%w; set at least one of the arguments %q", ErrNoKey, names)
			}
		}
		canonical, err := json.Marshal(shortNumbers(chosen))
		if err != nil {
			return "", fmt.Errorf("the arguments are not JSON: %w", err)
		}
		sum := sha256.Sum256(canonical)
		return hashPrefix + hex.EncodeToString(sum[:]), checkText(string(canonical), "the arguments")
	}
}

// decodeNumbers decodes an object, and leaves its numbers as they are written.
func decodeNumbers(doc []byte) (object map[string]any, err error) {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	err = d.Decode(&object)
	return object, err
}

// shortNumbers makes a double of each number in v that a double holds without loss, so that
// 1 and 1.0 are equal. It leaves other numbers as they are written, so that two long IDs
// never become equal by rounding.
func shortNumbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		mantissa, _, _ := strings.Cut(strings.ToLower(v.String()), "e")
		digits := strings.Trim(strings.NewReplacer("-", "", ".", "").Replace(mantissa), "0")
		f, err := v.Float64()
		if err == nil && len(digits) <= exactDigits && (digits == "") == (math.Abs(f) < smallestExact) {
			return f
		}
	case []any:
		for i := range v {
			v[i] = shortNumbers(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = shortNumbers(v[name])
		}
	}
	return v
}

const (
	exactDigits   = 15     // a double holds each number of so many digits
	smallestExact = 1e-300 // and none that is much smaller than this
)

// First asks the sources in turn, and takes the first key. An error that is not ErrNoKey
// ends the search. If no source has a key, it returns the error of the first one.
func First(sources ...KeySource) KeySource {
	return func(req *mcp.CallToolRequest) (string, error) {
		noKey := ErrNoKey
		for i, source := range sources {
			key, err := source(req)
			if err == nil || !errors.Is(err, ErrNoKey) {
				return key, err
			}
			if i == 0 {
				noKey = err
			}
		}
		return "", noKey
	}
}
