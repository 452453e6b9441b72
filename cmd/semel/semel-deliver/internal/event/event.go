// Package event makes a CloudEvent of a message, and an HTTP request of a CloudEvent.
// A message that is a CloudEvent keeps its attributes.
package event

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"strings"
	"unicode/utf8"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
)

// Version is the version of CloudEvents that this package reads and writes.
const Version = "1.0"

// The names of the attributes that each event has.
const (
	attrVersion = "specversion"
	attrID      = "id"
	attrSource  = "source"
	attrType    = "type"
	// attrContentType is the header Content-Type in binary mode.
	attrContentType = "datacontenttype"
	// attrOrder is an extension: events with equal values stay in order.
	attrOrder = "partitionkey"
)

// The media types of events as a whole.
const (
	mediaJSON  = "application/cloudevents+json"
	mediaBatch = "application/cloudevents-batch"
	mediaEvent = "application/cloudevents"
)

// Event is a CloudEvent.
type Event struct {
	// Attributes are all but datacontenttype, in lower case.
	Attributes map[string]string
	// ContentType is datacontenttype. Empty: not known.
	ContentType string
	// Encoding is the Content-Encoding of Data. Empty: none.
	Encoding string
	Data     []byte
	// whole is the event in structured mode as it came, and wholeType its media type.
	// If the format is not JSON, there is nothing but whole.
	whole     []byte
	wholeType string
}

// Defaults make an event of a message that is none.
type Defaults struct {
	// Source begins the attribute source; the address of the message follows.
	Source string
	// Type is the attribute type of a message that names none.
	Type string
	// ID is the attribute id. Empty: the key of the message.
	ID string
}

// Read makes an event of a message. The id of a message that is no CloudEvent is its
// key, or Defaults.ID, so that each copy of the message makes the same event.
func Read(m *consume.Message, d Defaults) (*Event, error) {
	contentType, _ := m.Header("content-type")
	encoding, _ := m.Header("content-encoding")
	for name, value := range map[string]string{"content-type": contentType, "content-encoding": encoding} {
		if !IsHeaderValue(value) {
			return nil, fmt.Errorf("the header %s has a control character", name)
		}
	}
	media, _, _ := mime.ParseMediaType(contentType) // another type is no event
	switch {
	case strings.HasPrefix(media, mediaBatch):
		return nil, errors.New("the message is a batch of CloudEvents; send one event a message")
	case media == mediaJSON:
		return parse(m.Body, contentType)
	case media == mediaEvent, strings.HasPrefix(media, mediaEvent+"+"):
		return &Event{whole: m.Body, wholeType: contentType}, nil
	}
	e := &Event{ContentType: contentType, Data: m.Body, Attributes: attributes(m)}
	if !strings.EqualFold(encoding, "identity") {
		e.Encoding = encoding
	}
	if isEvent(e.Attributes) {
		return e, e.check()
	}
	e.Attributes = d.attributes(m)
	if e.ContentType == "" && len(m.Body) > 0 {
		e.ContentType = "application/octet-stream"
		if json.Valid(m.Body) {
			e.ContentType = "application/json"
		}
	}
	return e, e.check()
}

// isEvent reports whether a message is a CloudEvent: it has an attribute that only
// CloudEvents have. Package consume decides in the same way.
func isEvent(attributes map[string]string) bool {
	for _, name := range []string{attrVersion, attrID, attrSource} {
		if _, ok := attributes[name]; ok {
			return true
		}
	}
	return false
}

// attributes are the attributes of an event in the headers of a message, by the rules
// of Kafka (ce_), of NATS and HTTP (ce-, percent-encoded) and of AMQP (cloudEvents). If a
// message has an attribute by several rules, the first one counts, as for its key in package
// consume.
func attributes(m *consume.Message) map[string]string {
	found := map[string]string{}
	for _, prefix := range [...]string{"ce_", "ce-", "cloudevents:", "cloudevents_"} {
		for _, h := range m.Headers {
			name, ok := strings.CutPrefix(strings.ToLower(h.Name), prefix)
			if !ok || !isName(name) || name == attrContentType {
				continue
			}
			value := h.Value
			if prefix == "ce-" {
				value = decodePercent(value)
			}
			if _, twice := found[name]; !twice {
				found[name] = value
			}
		}
	}
	return found
}

// isName reports whether a text names an attribute.
func isName(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool { return (c < 'a' || c > 'z') && (c < '0' || c > '9') })
}

// longestOrder is the longest order key that is an attribute, in bytes. Servers refuse
// requests with long headers, and brokers take keys of a megabyte.
const longestOrder = 255

// attributes are the attributes of a message that is no CloudEvent. A property of the
// message that no attribute can hold is left out, because it is not the fault of the message.
func (d Defaults) attributes(m *consume.Message) map[string]string {
	a := map[string]string{attrVersion: Version, attrID: cmp.Or(d.ID, m.Key), attrSource: d.Source + encodePath(driver.Address(m)), attrType: d.Type}
	if kind, _ := m.Header("amqp-type"); kind != "" && IsAttribute(kind) {
		a[attrType] = kind
	}
	if m.OrderKey != "" && len(m.OrderKey) <= longestOrder && IsAttribute(m.OrderKey) {
		a[attrOrder] = m.OrderKey
	}
	return a
}

// check reports what is wrong with the attributes.
func (e *Event) check() error {
	var errs []error
	switch v := e.Attributes[attrVersion]; v {
	case Version:
	case "":
		errs = append(errs, errors.New("the CloudEvent has no specversion; send 1.0"))
	default:
		errs = append(errs, fmt.Errorf("the CloudEvent has specversion %.20q; only 1.0 is supported", v))
	}
	for _, name := range []string{attrID, attrSource, attrType} {
		if e.Attributes[name] == "" {
			errs = append(errs, fmt.Errorf("the CloudEvent has no %s", name))
		}
	}
	for name, value := range e.Attributes {
		if !IsAttribute(value) {
			errs = append(errs, fmt.Errorf("the attribute %s has a character that is not allowed", name))
		}
	}
	if !IsHeaderValue(e.ContentType) {
		errs = append(errs, fmt.Errorf("the attribute %s has a character that is not allowed", attrContentType))
	}
	return errors.Join(errs...)
}

// IsAttribute reports whether a text can be the value of an attribute.
func IsAttribute(s string) bool { return utf8.ValidString(s) && IsHeaderValue(s) }

// IsHeaderValue reports whether a text can be the value of a header of HTTP.
func IsHeaderValue(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f })
}
