package semelsqs

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/store"
)

// DeduplicationIDHeader is the header in which a message of a FIFO queue has its
// MessageDeduplicationId, as a key source: consume.FromHeader(DeduplicationIDHeader).
// Do not use it in a queue with content-based deduplication if equal bodies may mean
// different operations. A copy in the dead letters keeps the ID of the original.
const DeduplicationIDHeader = "sqs-deduplication-id"

// The attributes of Encode.
const (
	headersAttribute = "semel-headers" // a JSON list of pairs, in base64
	bodyAttribute    = "semel-body"    // "base64" or "empty"; none: the body is plain
)

// maxAttributes is how many attributes SQS takes.
const maxAttributes = 10

// Encode converts headers and a body to a message that SQS accepts, for producers and
// for dead letters. Up to eight headers become attributes of their own; the others,
// and those that SQS would refuse, are packed into one attribute. A body that is
// empty, or no text that SQS accepts, is encoded. A Source decodes both.
func Encode(headers []store.Header, body []byte) (text string, attributes map[string]types.MessageAttributeValue) {
	attributes = map[string]types.MessageAttributeValue{}
	set := func(name, value string) {
		attributes[name] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: &value}
	}
	var packed [][2][]byte
	for _, h := range headers {
		if _, taken := attributes[h.Name]; taken || len(attributes) >= maxAttributes-2 || !validName(h.Name) || h.Value == "" || !validText(h.Value) {
			packed = append(packed, [2][]byte{[]byte(h.Name), []byte(h.Value)})
			continue
		}
		set(h.Name, h.Value)
	}
	if len(packed) > 0 {
		list, err := json.Marshal(packed)
		if err != nil {
			panic(err) // byte slices always have a JSON form
		}
		set(headersAttribute, string(list))
	}
	switch {
	case len(body) == 0:
		set(bodyAttribute, "empty")
		return "-", attributes
	case !validText(string(body)):
		set(bodyAttribute, "base64")
		return base64.StdEncoding.EncodeToString(body), attributes
	}
	return string(body), attributes
}

// validName reports whether SQS takes the name of an attribute. Encode's own
// attributes are no headers.
func validName(name string) bool {
	lower := strings.ToLower(name)
	if name == "" || len(name) > 256 || strings.HasPrefix(lower, "aws.") || strings.HasPrefix(lower, "amazon.") ||
		name[0] == '.' || name[len(name)-1] == '.' || strings.Contains(name, "..") || name == headersAttribute || name == bodyAttribute {
		return false
	}
	return !strings.ContainsFunc(lower, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_' && r != '.'
	})
}

// validText reports whether SQS takes a text: the characters of XML 1.0.
func validText(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool {
		return r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0xfffe || r == 0xffff
	})
}

// Decode converts a message of SQS to one of package consume: the other way of Encode.
// A program that reads a queue of dead letters by itself calls it. Request all
// attributes from SQS.
func Decode(queue string, in *types.Message) *consume.Message {
	m := &consume.Message{Origin: consume.Origin{Topic: queue, ID: aws.ToString(in.MessageId)}, Body: []byte(aws.ToString(in.Body))}
	for _, name := range slices.Sorted(maps.Keys(in.MessageAttributes)) {
		a := in.MessageAttributes[name]
		value := aws.ToString(a.StringValue)
		if a.BinaryValue != nil {
			value = string(a.BinaryValue)
		}
		if name != headersAttribute && name != bodyAttribute {
			m.Headers = append(m.Headers, store.Header{Name: name, Value: value})
		}
	}
	var packed [][2][]byte
	if text := aws.ToString(in.MessageAttributes[headersAttribute].StringValue); text != "" && json.Unmarshal([]byte(text), &packed) == nil {
		for _, p := range packed {
			m.Headers = append(m.Headers, store.Header{Name: string(p[0]), Value: string(p[1])})
		}
	}
	switch aws.ToString(in.MessageAttributes[bodyAttribute].StringValue) {
	case "empty":
		m.Body = nil
	case "base64":
		if body, err := base64.StdEncoding.DecodeString(string(m.Body)); err == nil {
			m.Body = body
		}
	}
	if id := in.Attributes[string(types.MessageSystemAttributeNameMessageDeduplicationId)]; id != "" {
		if _, ok := m.Header(DeduplicationIDHeader); !ok {
			m.Headers = append(m.Headers, store.Header{Name: DeduplicationIDHeader, Value: id})
		}
	}
	if ms, err := strconv.ParseInt(in.Attributes[string(types.MessageSystemAttributeNameSentTimestamp)], 10, 64); err == nil {
		m.Published = time.UnixMilli(ms)
	}
	m.Deliveries, _ = strconv.Atoi(in.Attributes[string(types.MessageSystemAttributeNameApproximateReceiveCount)])
	return m
}

// isExtended reports whether the message's body lies in S3.
func isExtended(in *types.Message) bool {
	_, current := in.MessageAttributes["ExtendedPayloadSize"]
	_, legacy := in.MessageAttributes["SQSLargePayloadSize"]
	return current || legacy
}

// letterHeaders puts the reason, the code and the ID of a letter before the other
// headers, so that they become attributes of their own, which filters can read.
func letterHeaders(hs []store.Header) []store.Header {
	first := func(h store.Header) bool {
		return h.Name == driver.LetterReason || h.Name == driver.LetterCode || h.Name == driver.LetterID
	}
	out := make([]store.Header, 0, len(hs))
	for _, h := range hs {
		if first(h) {
			out = append(out, h)
		}
	}
	for _, h := range hs {
		if !first(h) {
			out = append(out, h)
		}
	}
	return out
}
