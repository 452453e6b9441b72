package outbox

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/semel-go/semel/internal/names"
	"github.com/semel-go/semel/store"
)

// Message is a message to be published.
type Message struct {
	// Topic is the destination, such as a topic, a subject, a queue or the name of a
	// webhook: 1 to 255 bytes.
	Topic string
	// OrderKey is what the message belongs to, such as a customer or an order: messages
	// with the same Topic and OrderKey are published in the order of their commits. A
	// transaction holds a lock of each of its order keys from Put until its end. Empty:
	// the message has no order.
	OrderKey string
	// ID is the message's idempotency key, up to 255 bytes. In a handler use
	// semel.Execution.DownstreamKey, so that each run of the call writes the same ID.
	// It begins and ends with no space, which some brokers take away. Empty: Put sets a
	// random one. A receiver that knows the ID alone takes a second message with it for a
	// repeat, so use an ID once, also if two topics go to one receiver.
	ID string
	// Headers are sent with the message, besides KeyHeader. Names and values are UTF-8
	// without control characters.
	Headers []store.Header
	// Body is the content.
	Body []byte

	written string // the topic under which it was written, after Renamed
}

// KeyHeader is the header in which sinks send the ID of a message. Package consume
// reads it as the idempotency key.
const KeyHeader = "idempotency-key"

// Prepare returns the message as a store keeps it, with an ID, or an error that says
// why it cannot be published. It is for authors of stores.
func (m *Message) Prepare() (Message, error) {
	p := *m
	if p.ID == "" {
		p.ID = rand.Text()
	}
	for _, f := range []struct {
		name, value string
		optional    bool
	}{{"Topic", p.Topic, false}, {"OrderKey", p.OrderKey, true}, {"ID", p.ID, false}} {
		if f.optional && f.value == "" {
			continue
		}
		if err := names.Check(f.name, f.value); err != nil {
			return p, fmt.Errorf("outbox: message: %w", err)
		}
		if !utf8.ValidString(f.value) {
			return p, fmt.Errorf("outbox: message: %s: is not valid UTF-8", f.name)
		}
	}
	if strings.TrimSpace(p.ID) != p.ID {
		return p, fmt.Errorf("outbox: message: ID: %q begins or ends with a space, which some brokers take away; trim it", p.ID)
	}
	for _, h := range p.Headers {
		if h.Name == "" || !plain(h.Name) || !plain(h.Value) {
			return p, fmt.Errorf("outbox: message: header %q: name and value must be UTF-8 without control characters, and the name not empty", h.Name)
		}
	}
	return p, nil
}

// plain reports whether every broker accepts a text in a header.
func plain(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// SentHeaders are the headers to send: Headers, and KeyHeader with the ID. It is for
// authors of sinks.
func (m *Message) SentHeaders() []store.Header {
	hs := make([]store.Header, 0, len(m.Headers)+1)
	for _, h := range m.Headers {
		if !strings.EqualFold(h.Name, KeyHeader) {
			hs = append(hs, h)
		}
	}
	return append(hs, store.Header{Name: KeyHeader, Value: m.ID})
}

// Renamed returns the message with another topic, for a sink that sends it there. Its
// DeduplicationID stays.
func (m *Message) Renamed(topic string) Message {
	renamed := *m
	renamed.Topic, renamed.written = topic, m.writtenTopic()
	return renamed
}

func (m *Message) writtenTopic() string { return cmp.Or(m.written, m.Topic) }

// DeduplicationID is a hash of the topic under which the message was written, and its ID,
// in 64 hexadecimal digits. It is for sinks of brokers that drop repeats: two topics may
// have messages with one ID, and may go to one destination.
func (m *Message) DeduplicationID() string {
	topic := m.writtenTopic()
	b := append(make([]byte, 0, 128), "semel outbox message\x00"...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(topic)))
	b = append(b, topic...)
	b = append(b, m.ID...)
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// Order is a hash of topic and order key, or of topic and ID if there is no order key.
// Messages with the same Order are published one after the other. If two order keys have
// one hash, which is unlikely, they wait for each other, and nothing else happens.
func (m *Message) Order() int64 {
	kind, key := byte('k'), m.OrderKey
	if key == "" {
		kind, key = 'i', m.ID
	}
	b := append(make([]byte, 0, 128), "semel outbox\x00"...)
	b = append(b, kind)
	b = binary.BigEndian.AppendUint32(b, uint32(len(m.Topic)))
	b = append(b, m.Topic...)
	b = append(b, key...)
	sum := sha256.Sum256(b)
	return int64(binary.BigEndian.Uint64(sum[:8])) //nolint:gosec // all bits are used
}

// Lanes is the number of lanes of each outbox. It is fixed, because a message with
// another lane than the one before it could overtake that one.
const Lanes = 16

// LaneOf is the lane of an Order. A lane is the unit that a publisher leases.
func LaneOf(order int64) int { return int(uint64(order) % Lanes) }

// Entry is a message in an outbox.
type Entry struct {
	Message
	// Position grows with each message that is written. For the messages of one order
	// key it is the order of their commits.
	Position int64
	// Call is the CallHash of the call whose handler has written the message. Empty: it was
	// written outside of handlers.
	Call    string
	Written time.Time // by the clock of the database
	State   State
	// Attempts counts the failed attempts to publish it.
	Attempts int
	// LastError is the error of the last attempt.
	LastError string
	// Sent is when it was published, if State is Sent.
	Sent time.Time
	// Unreadable is why the store could not read the whole message, such as damaged headers. A
	// publisher does not send such a message: it goes to the quarantine.
	Unreadable error
}

// State is where a message is.
type State uint8

// The states.
const (
	Waiting     State = iota + 1 // to be published
	Held                         // has failed, or waits for an earlier message of its order key that has
	Quarantined                  // will not be published until an operator says so
	Sent                         // published, and kept for the retention
)

var stateNames = [...]string{Waiting: "waiting", Held: "held", Quarantined: "quarantined", Sent: "sent"}

// String is the state in one word.
func (s State) String() string {
	if s < Waiting || int(s) >= len(stateNames) {
		return fmt.Sprintf("State(%d)", uint8(s))
	}
	return stateNames[s]
}

// ParseState is the State with a name.
func ParseState(name string) (State, error) {
	if n := slices.Index(stateNames[:], name); n > 0 {
		return State(n), nil //nolint:gosec // n is small
	}
	return 0, fmt.Errorf("outbox: %q is no state; there are %s", name, strings.Join(stateNames[1:], ", "))
}
