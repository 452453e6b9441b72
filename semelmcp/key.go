package semelmcp

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

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
// each new payment; the same one when you repeat a call".
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
			return *text, nil
		case strings.Trim(strings.TrimPrefix(string(raw), "-"), "0123456789") == "":
			return string(raw), nil
		}
		return "", fmt.Errorf("the argument %q is neither a string nor an integer", name)
	}
}

// FromMeta takes the key from a string in the _meta of the call, such as
// "idempotencyKey". Models do not see _meta, so the client has to set it.
func FromMeta(name string) KeySource {
	return func(req *mcp.CallToolRequest) (string, error) {
		switch key := req.Params.Meta[name].(type) {
		case nil:
		case string:
			if key != "" {
				return key, nil
			}
		default:
			return "", fmt.Errorf("_meta[%q] is not a string", name)
		}
		return "", fmt.Errorf("%w in _meta[%q]; %s", ErrNoKey, name, howToMakeKeys)
	}
}

// Hash derives the key from the named arguments or, without names, from all of them, as
// JSON: white space and the order of members do not matter. The key has the arguments
// that are there; if the call has none of the names, there is no key. Two calls that are
// not duplicates must differ in these arguments.
func Hash(names ...string) KeySource {
	return func(req *mcp.CallToolRequest) (string, error) {
		var all map[string]any
		if err := json.Unmarshal(argumentsOf(req), &all); err != nil {
			return "", fmt.Errorf("the arguments are not a JSON object: %w", err)
		}
		chosen := all
		if len(names) > 0 {
			chosen = map[string]any{}
			for _, name := range names {
				if v, ok := all[name]; ok {
					chosen[name] = v
				}
			}
			if len(chosen) == 0 {
				return "", fmt.Errorf("%w; set at least one of the arguments %q", ErrNoKey, names)
			}
		}
		// Numbers are doubles here. Two large ones may have one key; the payload tells them apart.
		canonical, err := json.Marshal(chosen)
		sum := sha256.Sum256(canonical)
		return "arguments:" + hex.EncodeToString(sum[:]), err
	}
}

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
