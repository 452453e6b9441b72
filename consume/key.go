package consume

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume/driver"
	semeldriver "github.com/semel-go/semel/driver"
)

// CallFunc returns the call of a message: the consumer group as its operation, the key
// that duplicates share, and the payload that duplicates must have in common. [Keyed]
// makes one. If a CallFunc returns ErrRejected, the Consumer stops. If it returns any
// other error, such as ErrNoKey, the message is dead-lettered; a CallFunc should then
// return a call with the group as its operation as well, because the dead letter names
// that group. New calls a CallFunc with an empty message: see Check. A CallFunc must be
// safe for concurrent use.
type CallFunc func(m *Message) (semel.Call, error)

// KeySource finds a message's idempotency key. It returns ErrNoKey, or an empty key, if
// the message has no key of this kind. It must be safe for concurrent use.
type KeySource func(m *Message) (string, error)

var (
	// ErrNoKey is the error of a key source if a message has no key of its kind.
	ErrNoKey = driver.ErrNoKey
	// ErrRejected is the error of the source Reject, and stops the Consumer. A CallFunc
	// of your own may return it.
	ErrRejected = driver.ErrRejected
)

// Keyed returns a CallFunc for a consumer group. It asks the sources in turn, and takes
// the first key. The group has one key space, which all tenants share (semel.Shared).
//
// A duplicate must have the same body, byte for byte; the same address, which is the
// topic, the subject, or the exchange and routing key that it was published to; the same
// event type (driver.EventType); and the same record key (driver.RecordKey). Otherwise it is
// dead-lettered, as a payload mismatch. A message without a key is dead-lettered; let the
// last source be Unprotected or Reject to change that. If the group is invalid or a
// source is nil, New returns an error.
//
// To give each tenant keys of its own, or to compare only a part of the body, write a
// CallFunc that calls First.
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
		return semel.Call{Operation: group, Tenant: semel.Shared, Key: key, Payload: Payload(m)}, nil
	}
}

// setupError is a mistake that concerns every message.
type setupError struct{ error }

func (e *setupError) Unwrap() error { return e.error }

// Check reports mistakes that would dead-letter every message: an invalid group, a nil
// source of Keyed, an empty name of FromHeader. It calls f with an empty message, and
// ignores a panic and any other error of f, because they may come from that message. New
// and package kafkapg call Check.
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

// First returns a source that asks the sources in turn, and takes the first key that is
// not empty. Any error except ErrNoKey ends the search, and is its result.
func First(sources ...KeySource) KeySource {
	return func(m *Message) (string, error) {
		for _, s := range sources {
			switch key, err := s(m); {
			case err == nil && key != "":
				return key, nil
			case err != nil && !errors.Is(err, ErrNoKey):
				return "", err
			}
		}
		return "", ErrNoKey
	}
}

// FromHeader takes the key from a header that the producer sets, such as KeyHeader. It is
// the best source, because the key stays the same when the producer sends again. Upper
// and lower case of the name are equal. An empty value is no key. If the name is empty,
// New returns an error.
//
// In these cases the message is dead-lettered: it has two such headers with different
// values; the key begins with "semel-", because consumers make such keys; the key has
// control characters, or more than 255 bytes.
func FromHeader(name string) KeySource {
	if name == "" {
		return func(*Message) (string, error) { return "", &setupError{errors.New("FromHeader: the name is empty")} }
	}
	return func(m *Message) (string, error) {
		key := ""
		for _, h := range m.Headers {
			if h.Value == "" || !strings.EqualFold(h.Name, name) {
				continue
			}
			if key != "" && h.Value != key {
				return "", fmt.Errorf("header %q: is there twice, with two values; send one", name)
			}
			key = h.Value
		}
		switch {
		case key == "":
			return "", ErrNoKey
		case strings.HasPrefix(key, reserved):
			return "", fmt.Errorf("header %q: begins with %q, which is reserved for keys that a consumer makes", name, reserved)
		}
		return key, nil
	}
}

// BrokerID takes the broker's own ID of the message, if it has one. It recognizes
// redeliveries, and copies that come back from the dead letters: see driver.OriginID. If a
// producer sends a message again, the broker gives it a new ID. All dead letters of one
// message have one key, so a consumer of dead letters needs another source, such as
// FromHeader(driver.LetterID).
func BrokerID() KeySource {
	return func(m *Message) (string, error) {
		id := driver.OriginID(m)
		if id == "" {
			return "", ErrNoKey
		}
		return short(reserved+"id:", id), nil
	}
}

// JSONField takes a member of a JSON body, such as "order.id": a string's text, or a
// number as it is written. The address of the message, such as the topic, and the type of
// its event are parts of the key, because the events of two topics, or of two types, may
// have the same member: see driver.EventType. If the member is absent, null or an empty text, there is no key. If the member has another type, or the
// body is not a JSON object, the message is dead-lettered.
func JSONField(path string) KeySource {
	return func(m *Message) (string, error) {
		raw, err := member(m.Body, path)
		switch {
		case err != nil:
			return "", err
		case isEmpty(raw):
			return "", ErrNoKey
		case raw[0] == '"':
			s, exact, err := text(raw)
			if err != nil {
				return "", fmt.Errorf("field %q: %w", path, err)
			}
			if !exact {
				return digest(eventPrefix("field-raw", m)+"sha256:", raw), nil
			}
			return short(eventPrefix("field", m), s), nil
		case raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9':
			return short(eventPrefix("field", m), string(raw)), nil
		}
		return "", fmt.Errorf("field %q: is neither a text nor a number", path)
	}
}

// Hash makes the key by hashing members of a JSON body, or, without paths, the whole body
// in any format and the record key. Two messages that are not duplicates must differ in
// these, or in their address or event type, which are parts of the key as in JSONField. If
// each of the members is absent, null or an empty text, there is no key.
func Hash(paths ...string) KeySource {
	return func(m *Message) (string, error) {
		if len(paths) == 0 {
			whole := [][]byte{m.Body}
			if key := driver.RecordKey(m); len(key) > 0 {
				whole = append(whole, key)
			}
			return digest(eventPrefix("hash", m), whole...), nil
		}
		parts, found := make([][]byte, len(paths)), false
		for i, p := range paths {
			raw, err := member(m.Body, p)
			if err != nil {
				return "", err
			}
			parts[i], found = raw, found || !isEmpty(raw)
		}
		if !found {
			return "", ErrNoKey
		}
		return digest(eventPrefix("hash", m), parts...), nil
	}
}

// reserved begins every key that a consumer makes. A producer cannot send such a
// key, and so cannot take the key of another message.
const reserved = "semel-"

// eventPrefix begins the keys of a kind of source that looks at the body only. It has the
// address and the type of the event, because two events may have one body.
func eventPrefix(kind string, m *Message) string {
	address, event := driver.Address(m), driver.EventType(m.Headers)
	if address == "" && event == "" {
		return reserved + kind + ":"
	}
	sum := digest("", []byte(address), []byte(event))
	return reserved + kind + "@" + sum[:len(sum)/2] + ":"
}

// unprotected is the prefix of keys that are made for one delivery.
const unprotected = reserved + "unprotected:"

// Unprotected is the last source for messages that may run without a key. Each delivery
// gets a new key, so that a duplicate runs the handler again. Retries wait in the
// Consumer, which counts the attempts of this delivery only.
//
// If the broker has delivered such a message more than Options.MaxDeliveries times, it is
// dead-lettered, even if its handler has never begun: nothing but the broker's count
// shows that a message kills its processes.
func Unprotected() KeySource {
	return func(*Message) (string, error) { return unprotected + rand.Text(), nil }
}

// Reject is the last source if each message must have a key: a message without one stops
// Serve with ErrRejected, and stays with the broker.
func Reject() KeySource {
	return func(*Message) (string, error) { return "", ErrRejected }
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
