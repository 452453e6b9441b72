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
)

// CallFunc says which call a message is: whose key, and what a duplicate must
// equal. ErrNoKey and any other error send the message to the dead letters,
// never on with a weaker key; ErrRejected stops the consumer. The call that is
// returned with an error only names the group, for the dead letter: make it
// with the group's scope and no key. It is asked about an empty message, too:
// see Check. Safe for concurrent use.
type CallFunc func(m *Message) (semel.Call, error)

// KeySource finds a message's idempotency key. ErrNoKey: it has none of this
// kind, ask the next source. Safe for concurrent use.
type KeySource func(m *Message) (string, error)

var (
	// ErrNoKey is a key source's answer if a message has no key of its kind.
	ErrNoKey = driver.ErrNoKey
	// ErrRejected stops the consumer: see Reject.
	ErrRejected = driver.ErrRejected
)

// Keyed makes calls of one consumer group: the first source that has a key
// decides, and a duplicate must have the same body, byte for byte. A message
// for which no source has a key is dead-lettered; end the list with Unprotected
// or Reject to have it otherwise. A group that is no valid Operation, and a
// source that is nil, are refused by New. For keys of several tenants, or to
// compare less than the body, write a CallFunc with First.
func Keyed(group semel.Operation, first KeySource, more ...KeySource) CallFunc {
	sources := append([]KeySource{first}, more...)
	wrong := group.Check()
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
			return semel.NewCall(group.Shared(), "", semel.NoPayload()), err // the dead letter names the group
		}
		return semel.NewCall(group.Shared(), key, semel.Bytes(m.Body)), nil
	}
}

// setupError is what is wrong with every message.
type setupError struct{ error }

func (e *setupError) Unwrap() error { return e.error }

// Check reports what is wrong with the calls of all messages, such as the name
// of the group, which would send each to the dead letters. It asks about an
// empty message, and an answer that says nothing of others, such as an error or
// a panic, is none. New and kafkapg call it.
func (f CallFunc) Check() (err error) {
	asked := make(chan struct{})
	go func() { // a CallFunc that calls runtime.Goexit ends no more than this
		defer close(asked)
		defer func() { _ = recover() }()
		call, said := f(&Message{})
		if wrong, ok := errors.AsType[*setupError](said); ok {
			err = wrong
		} else if op := call.Operation(); op != "" {
			err = op.Check()
		}
	}()
	<-asked
	return err
}

// ask turns a panic into an error, for the call of a panic has no group.
func ask(find KeySource, m *Message) (key string, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the key source panicked: %v", v)
		}
	}()
	return find(m)
}

// First is a source that asks each in turn, and takes the first key.
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

// FromHeader takes the key that the producer set, such as in KeyHeader: the
// best one, for it is the same when the producer sends again. It takes no key
// of a message with two different ones. It is text: one with control characters,
// such as the bytes of a number, makes an invalid call. New refuses an empty
// name.
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

// BrokerID takes the broker's own name of the message. It finds redeliveries
// and nothing else: a producer that sends again makes a new one.
func BrokerID() KeySource {
	return func(m *Message) (string, error) {
		if m.Origin.ID == "" {
			return "", ErrNoKey
		}
		return short("id:", m.Origin.ID), nil
	}
}

// JSONField takes a member of a JSON body, such as "order.id": a text as it
// is, a number as it is written. Absent or null: no key. Any other kind, and a
// body that is not a JSON object, is an error.
func JSONField(path string) KeySource {
	return func(m *Message) (string, error) {
		raw, err := member(m.Body, path)
		switch {
		case err != nil:
			return "", err
		case raw == nil:
			return "", ErrNoKey
		case raw[0] == '"':
			s, whole, err := text(raw)
			if err != nil {
				return "", fmt.Errorf("field %q: %w", path, err)
			}
			if !whole {
				return digest("field:raw:sha256:", raw), nil
			}
			return short("field:", s), nil
		case raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9':
			return short("field:", string(raw)), nil
		}
		return "", fmt.Errorf("field %q: is neither a text nor a number", path)
	}
}

// Hash makes the key of members of a JSON body; of the whole body, of any
// kind, if none are named. Two messages that are meant to be two must differ
// in them. A body that has none of the members has no key.
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

// unprotected begins the keys that are made for one delivery.
const unprotected = "unprotected:"

// Unprotected is a last source: a message without a key runs under a key of
// its own, new for each delivery, so that its duplicates run too. Its retries
// wait in the Consumer, which counts the attempts; for one that kills its
// process see Options.MaxDeliveries.
func Unprotected() KeySource {
	return func(*Message) (string, error) { return unprotected + rand.Text(), nil }
}

// Reject is a last source: a message without a key stops Serve with
// ErrRejected, and stays with the broker.
func Reject() KeySource {
	return func(*Message) (string, error) { return "", ErrRejected }
}

// member is the text of a member of a JSON object; nil: absent or null.
func member(doc []byte, path string) (json.RawMessage, error) {
	raw := json.RawMessage(doc)
	for name := range strings.SplitSeq(path, ".") {
		var object map[string]json.RawMessage
		if err := json.Unmarshal(raw, &object); err != nil {
			return nil, fmt.Errorf("field %q: the body has no such place: %w", path, err)
		}
		raw = object[name]
		if raw = bytes.TrimSpace(raw); len(raw) == 0 || string(raw) == "null" {
			return nil, nil
		}
	}
	return raw, nil
}

// text is what a JSON text says. Where it holds U+FFFD that may stand for anything
// that is no text: then it is given as it is written, and whole is false.
func text(raw json.RawMessage) (s string, whole bool, err error) {
	if err := json.Unmarshal(raw, &s); err != nil {
		return "", false, err
	}
	if strings.ContainsRune(s, utf8.RuneError) {
		return string(raw), false, nil
	}
	return s, true, nil
}

const longestKey = 255 // bytes, of semel.NewCall

// short is a key, or its hash if it is too long to be one. The prefix keeps
// the keys of two kinds of source apart.
func short(prefix, key string) string {
	if len(prefix)+len(key) <= longestKey {
		return prefix + key
	}
	return digest(prefix+"sha256:", []byte(key))
}

// digest hashes parts, each behind its length.
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
