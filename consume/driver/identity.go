package driver

import (
	"fmt"
	"slices"
	"strings"

	"github.com/semel-go/semel/store"
)

// EventType returns the type of a message's event, as its headers tell it: a text to compare,
// which is empty if no header tells it. It is a part of keys and payloads, because two events of
// different types may have the same body. These headers count, if they are not empty:
//
//   - type, name, task, event-type, event-name, message-type, command-type, and each of
//     them with x- before it; the type names of Spring (__TypeId__), NServiceBus and Rebus
//   - the type and the subject of a CloudEvent: ce_type, ce-type, cloudEvents:type,
//     cloudEvents_type and the same of subject
//   - amqp-type, the property of AMQP
//
// In a name, case and the characters - _ . : do not count. No other header counts, because
// brokers and retries add headers, and change them.
func EventType(headers []store.Header) string {
	var parts []string
	for i := range headers {
		if part := eventPart(headers[i].Name); part != "" && headers[i].Value != "" {
			parts = append(parts, fmt.Sprintf("%s %q", part, headers[i].Value))
		}
	}
	slices.Sort(parts) // a broker may not keep the order
	return strings.Join(slices.Compact(parts), " ")
}

// eventPart is the part of an event's type that a header with this name holds: "type",
// "subject", or empty for any other header.
func eventPart(name string) string {
	var folded [32]byte // the longest name has 31
	n := 0
	for i := range len(name) {
		switch c := name[i]; {
		case c == '-', c == '_', c == '.', c == ':':
			continue
		case n == len(folded):
			return ""
		case 'A' <= c && c <= 'Z':
			folded[n] = c + ('a' - 'A')
		default:
			folded[n] = c
		}
		n++
	}
	switch string(folded[:n]) {
	case "type", "name", "task", "eventtype", "eventname", "messagetype", "commandtype",
		"xtype", "xname", "xtask", "xeventtype", "xeventname", "xmessagetype", "xcommandtype",
		"typeid", "nservicebusenclosedmessagetypes", "rbs2msgtype",
		"cetype", "cloudeventstype", "amqptype":
		return "type"
	case "cesubject", "cloudeventssubject":
		return "subject"
	}
	return ""
}

// RecordKey is the record key of a message: see Message.RecordKey. A copy that comes back
// from the dead letters has it in the header LetterRecordKey.
func RecordKey(m *Message) []byte {
	if _, redriven := m.Header(LetterTopic); !redriven {
		return m.RecordKey
	}
	text, _ := m.Header(LetterRecordKey)
	return []byte(unquote(text))
}
