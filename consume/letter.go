package consume

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/semel-go/semel/store"
)

// Headers of dead letters and parked messages, beside the message's own.
const (
	letterPrefix = "semel-letter-"

	LetterReason     = letterPrefix + "reason"     // a Reason
	LetterCode       = letterPrefix + "code"       // of the handler's Failure, if it has one
	LetterError      = letterPrefix + "error"      // for people
	LetterAttempts   = letterPrefix + "attempts"   // runs of the handler
	LetterDeliveries = letterPrefix + "deliveries" // if the broker counts
	LetterGroup      = letterPrefix + "group"      // the operation
	LetterKey        = letterPrefix + "key"        // the idempotency key, if one was found
	LetterTopic      = letterPrefix + "topic"
	LetterPartition  = letterPrefix + "partition"
	LetterOffset     = letterPrefix + "offset"
	LetterOriginID   = letterPrefix + "origin-id" // if the broker has one
	LetterPublished  = letterPrefix + "published" // RFC 3339, if known
	// LetterID is the same when the letter is sent again, which happens if
	// the ack that follows it is lost.
	LetterID = letterPrefix + "id"
)

// Letter is the headers of the copy of a message that d sends to the dead
// letters or the parked ones: its own, then where it came from and why it goes
// there, in place of what an earlier such journey left. A Consumer gives them
// to Forward; for loops that are not Serve's.
func Letter(m *Message, d Disposition, group string) []store.Header {
	hs := slices.Clone(m.Headers)
	hs = slices.DeleteFunc(hs, func(h store.Header) bool { return strings.HasPrefix(strings.ToLower(h.Name), letterPrefix) })
	add := func(name, value string) {
		if value != "" {
			hs = append(hs, store.Header{Name: name, Value: oneLine(value)})
		}
	}
	add(LetterReason, string(d.Reason))
	if f, ok := asFailure(d.Err); ok {
		add(LetterCode, f.Code)
	}
	if d.Err != nil {
		add(LetterError, d.Err.Error())
	}
	add(LetterAttempts, strconv.Itoa(d.Attempt))
	if m.Deliveries > 0 {
		add(LetterDeliveries, strconv.Itoa(m.Deliveries))
	}
	add(LetterGroup, string(group))
	add(LetterKey, m.Key)
	add(LetterTopic, m.Origin.Topic)
	add(LetterPartition, strconv.FormatInt(int64(m.Origin.Partition), 10))
	add(LetterOffset, strconv.FormatInt(m.Origin.Offset, 10))
	add(LetterOriginID, m.Origin.ID)
	if !m.Published.IsZero() {
		add(LetterPublished, m.Published.UTC().Format(time.RFC3339Nano))
	}
	add(LetterID, letterID(m, d, group))
	return hs
}

// letterID names the letter by the message; by what it says, if the broker has
// no name for it.
func letterID(m *Message, d Disposition, group string) string {
	id := []byte(m.Origin.ID)
	if len(id) == 0 {
		id = []byte(digest("", []byte(m.Key), m.Body))
	}
	return digest("", []byte(group), []byte(m.Origin.Topic), id, []byte(d.Action.String()))
}

// oneLine is text that every broker takes as a header's value: short, in one
// line and valid UTF-8.
func oneLine(s string) string {
	const limit = 1000 // bytes
	if len(s) > limit {
		s = s[:limit]
	}
	s = strings.ToValidUTF8(s, "")
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
}
