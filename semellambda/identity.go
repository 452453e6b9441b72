package semellambda

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume/driver"
	semeldriver "github.com/semel-go/semel/driver"
	"github.com/semel-go/semel/store"
)

// envelope has the parts of a record's identity that are not in its document. It is zero for
// an event of Wrap.
type envelope struct {
	source    string // the name of the queue, stream or table
	eventType string // see driver.EventType
}

// maxKeyBytes is the limit of a call's key.
const maxKeyBytes = 255

// keyOf adds the event type to a key that was taken from the document.
func (e envelope) keyOf(key string) string {
	kind := e.eventType
	if kind == "" || key == "" {
		return key
	}
	if whole := kind + " " + key; len(whole) <= maxKeyBytes || len(key) > maxKeyBytes { // a key that is too long is refused
		return whole
	}
	sum := sha256.Sum256([]byte(kind + " " + key))
	return hex.EncodeToString(sum[:])
}

// payload compares v, the source and the event type: as JSON or, if JSON refuses v, by the bytes of
// its document. JSON refuses a document with a member twice, for example, which a handler
// may be able to read.
func (e envelope) payload(v any, doc []byte) semel.Payload {
	if e != (envelope{}) {
		v = struct {
			Source, Type string
			Document     any
		}{e.source, e.eventType, v}
	}
	if p := semel.JSON(v); semeldriver.CheckPayload(p) == nil {
		return p
	}
	return semel.Bytes(e.parts(doc)...)
}

// parts are the parts to compare by their bytes.
func (e envelope) parts(doc []byte) [][]byte {
	if e == (envelope{}) {
		return [][]byte{doc}
	}
	return [][]byte{[]byte(e.source), []byte(e.eventType), doc}
}

// envelopeOf returns the envelope of a message of SQS. A queue of dead letters counts as the
// queue that its message came from.
func envelopeOf(m *events.SQSMessage) envelope {
	arn := m.Attributes["DeadLetterQueueSourceArn"]
	if arn == "" {
		arn = m.EventSourceARN
	}
	return envelope{arn[strings.LastIndexByte(arn, ':')+1:], driver.EventType(headersOf(m.MessageAttributes))}
}

// headersOf are attributes as headers, with those that semelsqs has packed into one.
func headersOf(attributes map[string]events.SQSMessageAttribute) (hs []store.Header) {
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		a := attributes[name]
		value := string(a.BinaryValue)
		if a.StringValue != nil {
			value = *a.StringValue
		}
		if packed, err := driver.UnpackHeaders(value); name == driver.PackedHeaders && err == nil {
			hs = append(hs, packed...)
			continue
		}
		hs = append(hs, store.Header{Name: name, Value: value})
	}
	return hs
}

// streamName is the name in the ARN of a Kinesis stream.
func streamName(arn string) string { return arn[strings.LastIndexByte(arn, '/')+1:] }

// tableName is the name in the ARN of a DynamoDB stream, which has the time of its creation
// after it.
func tableName(arn string) string {
	_, table, _ := strings.Cut(arn, ":table/")
	table, _, _ = strings.Cut(table, "/")
	return table
}
