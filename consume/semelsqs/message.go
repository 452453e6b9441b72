package semelsqs

import (
	"encoding/base64"
	"errors"
	"fmt"
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
	headersAttribute = driver.PackedHeaders
	bodyAttribute    = "semel-body" // "base64" or "empty"; none: the body is plain
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
	var packed []store.Header
	for _, h := range headers {
		if _, taken := attributes[h.Name]; taken || len(attributes) >= maxAttributes-2 || !validName(h.Name) || h.Value == "" || !validText(h.Value) {
			packed = append(packed, h)
			continue
		}
		set(h.Name, h.Value)
	}
	if len(packed) > 0 {
		set(headersAttribute, driver.PackHeaders(packed))
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
// attributes from SQS. A part that Encode has not made stays as it is: the body is the
// text, and the attribute is a header.
func Decode(queue string, in *types.Message) *consume.Message {
	m := &consume.Message{Origin: consume.Origin{Topic: queue, ID: aws.ToString(in.MessageId)}, Body: []byte(aws.ToString(in.Body))}
	for _, name := range slices.Sorted(maps.Keys(in.MessageAttributes)) {
		value := valueOf(in.MessageAttributes[name])
		switch name {
		case headersAttribute:
			if packed, err := unpackHeaders(value); err == nil {
				m.Headers = append(m.Headers, packed...)
				continue
			}
		case bodyAttribute:
			if body, err := decodeBody(value, m.Body); err == nil {
				m.Body = body
				continue
			}
		}
		m.Headers = append(m.Headers, store.Header{Name: name, Value: value})
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

func valueOf(a types.MessageAttributeValue) string {
	if a.BinaryValue != nil {
		return string(a.BinaryValue)
	}
	return aws.ToString(a.StringValue)
}

// unpackHeaders reads the attribute that Encode packs headers into.
func unpackHeaders(text string) ([]store.Header, error) {
	hs, err := driver.UnpackHeaders(text)
	if err != nil {
		err = fmt.Errorf("the attribute %q is no list of headers, because its producer is not semelsqs.Encode or cut it off: %w", headersAttribute, err)
	}
	return hs, err
}

// decodeBody reads a body in the encoding that the attribute of Encode names.
func decodeBody(encoding string, text []byte) ([]byte, error) {
	switch encoding {
	case "empty":
		return nil, nil
	case "base64":
		body, err := base64.StdEncoding.DecodeString(string(text))
		if err != nil {
			err = fmt.Errorf("the attribute %q says that the body is base64, and it is not, or was cut off: %w", bodyAttribute, err)
		}
		return body, err
	}
	return nil, fmt.Errorf("the attribute %q is %q; it must be base64 or empty", bodyAttribute, encoding)
}

// errExtended is the error in the letter of a message whose body is somewhere else.
var errExtended = errors.New("the body lies in S3 (Amazon SQS Extended Client); semelsqs does not fetch it: send the payload itself, or its address in a plain message")

// unreadable says why a handler cannot get a message as its producer meant it; nil: it
// can. Part of the message could be the part that has the key.
func unreadable(in *types.Message) error {
	var errs []error
	for name, a := range in.MessageAttributes {
		var err error
		switch name {
		case "ExtendedPayloadSize", "SQSLargePayloadSize":
			err = errExtended
		case headersAttribute:
			_, err = unpackHeaders(valueOf(a))
		case bodyAttribute:
			_, err = decodeBody(valueOf(a), []byte(aws.ToString(in.Body)))
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
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
