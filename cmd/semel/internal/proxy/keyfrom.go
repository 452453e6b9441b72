package proxy

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// derivedPrefix begins the keys that are derived from a body, so that they
// differ from all keys that clients send.
const derivedPrefix = "semel-fields:"

// keyFrom derives the key of a request from fields of its JSON body, by a hash.
// The key is empty if a field is missing, null or empty.
func keyFrom(paths []string) func(*http.Request, io.Reader) (string, error) {
	return func(_ *http.Request, body io.Reader) (string, error) {
		doc, err := io.ReadAll(body)
		if err != nil {
			return "", err
		}
		h := sha256.New()
		for _, path := range paths {
			v, err := field(doc, path)
			if v == "" || err != nil {
				return "", err
			}
			var n [8]byte
			for _, part := range []string{path, v} { // the length comes first, so that no two lists of parts have one hash
				binary.BigEndian.PutUint64(n[:], uint64(len(part)))
				h.Write(n[:])
				h.Write([]byte(part))
			}
		}
		return derivedPrefix + base64.RawURLEncoding.EncodeToString(h.Sum(nil)), nil
	}
}

var errNotObject = errors.New("the body is not a JSON object, or a member occurs twice")

// field returns a value of the document in a form that equal values share. It
// is empty if the value is missing, null or empty.
func field(doc []byte, path string) (string, error) {
	name, rest, nested := strings.Cut(path, ".")
	raw, err := member(doc, name)
	if err != nil || raw == nil || string(raw) == "null" {
		return "", err
	}
	if nested {
		return field(raw, rest)
	}
	var s string
	if json.Unmarshal(raw, &s) == nil {
		if s == "" {
			return "", nil
		}
		return "s" + s, nil
	}
	var b bool
	if json.Unmarshal(raw, &b) == nil {
		return "b" + strconv.FormatBool(b), nil
	}
	if n := strings.TrimPrefix(string(raw), "-"); n != "" && strings.Trim(n, "0123456789") == "" && string(raw) != "-0" {
		return "n" + string(raw), nil // JSON has no leading zeros, so equal integers are written alike
	}
	return "", fmt.Errorf("the field %q must be text, a whole number, true or false", path)
}

// member finds one member of an object. It refuses a member that occurs twice,
// because the upstream may use either.
func member(doc []byte, name string) (json.RawMessage, error) {
	d := json.NewDecoder(bytes.NewReader(doc))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errNotObject
	}
	var found json.RawMessage
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, errNotObject
		}
		var v json.RawMessage
		if err := d.Decode(&v); err != nil {
			return nil, errNotObject
		}
		if t == name {
			if found != nil {
				return nil, errNotObject
			}
			found = v
		}
	}
	if _, err := d.Token(); err != nil {
		return nil, errNotObject
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errNotObject
	}
	return found, nil
}
