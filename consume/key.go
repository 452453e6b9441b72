package consume

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume/driver"
	semeldriver "github.com/semel-go/semel/driver"
)

// CallFunc returns the call of a message: the key, and the payload that a
// duplicate must equal. If it returns ErrNoKey or another error, the message
// goes to the dead letters; after ErrRejected the consumer stops. The call that
// it returns beside an error names only the group of the dead letter: make it
// with the group as its operation and an empty key. It is also called with an empty
// message: see Check. It must be safe for concurrent use.
type CallFunc func(m *Message) (semel.Call, error)

// KeySource finds a message's idempotency key. It returns ErrNoKey if the
// message has no key of this kind. It must be safe for concurrent use.
type KeySource func(m *Message) (string, error)

var (
	// ErrNoKey is the error of a key source if a message has no key of its
	// kind.
	ErrNoKey = driver.ErrNoKey
	// ErrRejected stops the consumer: see Reject.
	ErrRejected = driver.ErrRejected
)

// Keyed makes the calls of a consumer group. The first source that has a key
// decides, and a duplicate must have the same body, byte for byte. A message
// without a key is dead-lettered; end the list with Unprotected or Reject to
// change that. New refuses an invalid group and a nil source. For keys of
// several tenants, or to compare less than the body, write a CallFunc with
// First.
func Keyed(group string, first KeySource, more ...KeySource) CallFunc {
	sources := append([]KeySource{first}, more...)
	wrong := semeldriver.CheckOperation(group)
	if i := slices.IndexFunc(sources, func(s KeySource) bool { return s == nil }); i >= 0 {
		wrong = errors.Join(wrong, fmt.Errorf("source %d: is nil", i+1))
	}
	if wrong != nil {
		return func(*Message) (semel.Call, error) { return semel.Call{}, &setupError{fmt.Errorf("Keyed: %w", wrong)} }
	}
	find := First(sources...)
	return func(m *Message) (semel.Call, error) {
		key, err := ask(find, m)
		if err != nil {
			return semel.Call{Operation: group, Tenant: semel.Shared, Key: "", Payload: semel.NoPayload()}, err // its scope is the group of the dead letter
		}
		return semel.Call{Operation: group, Tenant: semel.Shared, Key: key, Payload: semel.Bytes(m.Body)}, nil
	}
}

// setupError is a mistake that concerns every message.
type setupError struct{ error }

func (e *setupError) Unwrap() error { return e.error }

// Check reports a mistake that would dead-letter every message, such as an
// invalid group. It calls f with an empty message, and ignores errors and
// panics that concern only that message. New and kafkapg call it.
func (f CallFunc) Check() (err error) {
	done := make(chan struct{})
	go func() { // so that runtime.Goexit in a CallFunc ends only this goroutine
		defer close(done)
		defer func() { _ = recover() }()
		call, callErr := f(&Message{})
		if wrong, ok := errors.AsType[*setupError](callErr); ok {
			err = wrong
		} else if op := call.Operation; op != "" {
			err = semeldriver.CheckOperation(op)
		}
	}()
	<-done
	return err
}

// ask turns a panic of the source into an error, so that the dead letter names
// the group.
func ask(find KeySource, m *Message) (key string, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the key source panicked: %v", v)
		}
	}()
	return find(m)
}

// First asks each source in turn and takes the first key.
func First(sources ...KeySource) KeySource {
	return func(m *Message) (string, error) {
		for _, s := range sources {
			key, err := s(m)
			if err == nil || !errors.Is(err, ErrNoKey) {
				return key, err
			}
		}
		return "", ErrNoKey
	}
}

// FromHeader takes the key from a header that the producer sets, such as
// KeyHeader. It is the best source, because the key stays the same when the
// producer sends again. Two such headers with different values are an error.
// The key must be text: control characters make the call invalid. New refuses
// an empty name.
func FromHeader(name string) KeySource {
	if name == "" {
		return func(*Message) (string, error) { return "", &setupError{errors.New("FromHeader: the name is empty")} }
	}
	return func(m *Message) (string, error) {
		key, found := "", false
		for _, h := range m.Headers {
			if !strings.EqualFold(h.Name, name) {
				continue
			}
			if found && h.Value != key {
				return "", fmt.Errorf("header %q: is there twice, with two values; send one", name)
			}
			key, found = h.Value, true
		}
		if !found {
			return "", ErrNoKey
		}
		return key, nil
	}
}

// BrokerID takes the broker's own ID of the message. It recognizes redeliveries
// only: a producer that sends again makes a new ID.
func BrokerID() KeySource {
	return func(m *Message) (string, error) {
		if m.Origin.ID == "" {
			return "", ErrNoKey
		}
		return short("id:", m.Origin.ID), nil
	}
}

// JSONField takes a member of a JSON body, such as "order.id": a string's text,
// or a number as it is written. If the member is absent or null, there is no
// key. Another type of member, and a body that is not a JSON object, are
// errors.
func JSONField(path string) KeySource {
	return func(m *Message) (string, error) {
		raw, err := member(m.Body, path)
		switch {
		case err != nil:
			return "", err
		case raw == nil:
			return "", ErrNoKey
		case raw[0] == '"':
			s, exact, err := text(raw)
			if err != nil {
				return "", fmt.Errorf("field %q: %w", path, err)
			}
			if !exact {
				return digest("field:raw:sha256:", raw), nil
			}
			return short("field:", s), nil
		case raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9':
			return short("field:", string(raw)), nil
		}
		return "", fmt.Errorf("field %q: is neither a text nor a number", path)
	}
}

// Hash makes the key from members of a JSON body, or from the whole body, of
// any format, if no member is named. Two different messages must differ in
// them. If a body has none of the members, there is no key.
func Hash(paths ...string) KeySource {
	return func(m *Message) (string, error) {
		if len(paths) == 0 {
			return digest("hash:", m.Body), nil
		}
		parts, found := make([][]byte, len(paths)), false
		for i, p := range paths {
			raw, err := member(m.Body, p)
			if err != nil {
				return "", err
			}
			parts[i], found = raw, found || raw != nil
		}
		if !found {
			return "", ErrNoKey
		}
		return digest("hash:", parts...), nil
	}
}

// unprotected is the prefix of keys that are made for one delivery.
const unprotected = "unprotected:"

// Unprotected is a last source: a message without a key runs under a new key
// for each delivery, so that its duplicates run, too. Its retries wait in the
// Consumer, which counts the attempts. Set Options.MaxDeliveries for a message
// that kills its process.
func Unprotected() KeySource {
	return func(*Message) (string, error) { return unprotected + rand.Text(), nil }
}

// Reject is a last source: a message without a key stops Serve with ErrRejected
// and stays with the broker.
func Reject() KeySource {
	return func(*Message) (string, error) { return "", ErrRejected }
}

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

const maxKeyBytes = 255 // bytes, the limit of a call's key

// short returns prefix and key, or prefix and a hash if that is too long for a
// key. The prefix separates the keys of different sources.
func short(prefix, key string) string {
	if len(prefix)+len(key) <= maxKeyBytes {
		return prefix + key
	}
	return digest(prefix+"sha256:", []byte(key))
}

// digest hashes parts, each after its length.
func digest(prefix string, parts ...[]byte) string {
	h := sha256.New()
	var n [8]byte
	for _, p := range parts {
		binary.BigEndian.PutUint64(n[:], uint64(len(p)))
		h.Write(n[:])
		h.Write(p)
	}
	return prefix + hex.EncodeToString(h.Sum(nil))
}
