package driver

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/semel-go/semel/store"
)

// The headers that a copy in the dead letters or in the quarantine has beside
// the message's own.
const (
	letterPrefix = "semel-letter-"

	LetterReason     = letterPrefix + "reason"     // a Reason
	LetterCode       = letterPrefix + "code"       // of the handler's Failure, if it has one
	LetterError      = letterPrefix + "error"      // for people
	LetterAttempts   = letterPrefix + "attempts"   // runs of the handler; 0: an earlier delivery had failed
	LetterDeliveries = letterPrefix + "deliveries" // if the broker counts
	LetterGroup      = letterPrefix + "group"      // the operation
	LetterFence      = letterPrefix + "fence"      // the fencing token of the run, by which Reopen finds the failure; absent if it is not known
	LetterKey        = letterPrefix + "key"        // the idempotency key, if one was found
	LetterTopic      = letterPrefix + "topic"
	LetterAddress    = letterPrefix + "address"    // see Address; in quotes if it has characters that a header cannot keep
	LetterRecordKey  = letterPrefix + "record-key" // see RecordKey, if it is not empty; in quotes as LetterAddress
	LetterPartition  = letterPrefix + "partition"
	LetterOffset     = letterPrefix + "offset"
	LetterOriginID   = letterPrefix + "origin-id" // see OriginID, if the broker has one; in quotes as LetterAddress
	LetterPublished  = letterPrefix + "published" // RFC 3339, if known
	// LetterID stays the same when a copy is sent again because the ack after
	// it was lost. Use it to drop such repeats.
	LetterID = letterPrefix + "id"
)

// Letter returns the headers of the copy that goes to the dead letters or to
// the quarantine: the message's own, then where the message came from and why
// it was moved. Headers of an earlier copy are replaced. A Consumer passes the
// result to Forward.
func Letter(m *Message, d Disposition, group string) []store.Header {
	hs := slices.Clone(m.Headers)
	hs = slices.DeleteFunc(hs, func(h store.Header) bool {
		return strings.HasPrefix(strings.ToLower(h.Name), letterPrefix) || strings.EqualFold(h.Name, RedriveHeader)
	})
	id := letterID(m, hs, d, group)
	set := func(name, value string) {
		if value != "" {
			hs = append(hs, store.Header{Name: name, Value: value})
		}
	}
	add := func(name, value string) { set(name, oneLine(value)) }
	add(LetterReason, string(d.Reason))
	if f, ok := asFailure(d.Err); ok {
		add(LetterCode, f.Code)
	}
	if d.Err != nil {
		set(LetterError, strings.TrimSpace(oneLine(d.Err.Error()))) // NATS drops spaces at the ends
	}
	add(LetterAttempts, strconv.Itoa(d.Attempt))
	if m.Deliveries > 0 {
		add(LetterDeliveries, strconv.Itoa(m.Deliveries))
	}
	add(LetterGroup, group)
	if d.Fence > 0 {
		add(LetterFence, strconv.FormatUint(d.Fence, 10))
	}
	add(LetterKey, m.Key)
	add(LetterTopic, m.Origin.Topic)
	set(LetterAddress, quote(Address(m)))
	set(LetterRecordKey, quote(string(RecordKey(m))))
	add(LetterPartition, strconv.FormatInt(int64(m.Origin.Partition), 10))
	add(LetterOffset, strconv.FormatInt(m.Origin.Offset, 10))
	set(LetterOriginID, quote(OriginID(m)))
	if !m.Published.IsZero() {
		add(LetterPublished, m.Published.UTC().Format(time.RFC3339Nano))
	}
	add(LetterID, id)
	return hs
}

// Address is where a message was first published to: see Origin.Published. A copy that
// comes back from the dead letters has it in the header LetterAddress. It is for a
// CallFunc that compares messages by their address, too.
func Address(m *Message) string {
	if text, redriven := m.Header(LetterAddress); redriven {
		return unquote(text)
	}
	return m.Origin.Published()
}

// OriginID is the broker's ID of a message when it was first published: see Origin.ID. A
// copy that comes back from the dead letters has it in the header LetterOriginID.
func OriginID(m *Message) string {
	if text, redriven := m.Header(LetterOriginID); redriven {
		return unquote(text)
	}
	return m.Origin.ID
}

// unquote reverses quote. It returns a text that is not in quotes, such as one that an
// earlier version has written, as it is.
func unquote(text string) string {
	if strings.HasPrefix(text, `"`) {
		if s, err := strconv.Unquote(text); err == nil {
			return s
		}
	}
	return text
}

// quote returns a text as it is in a header: the same text, or, if a broker or a tool
// could change that, the text in the quotes of Go.
func quote(s string) string {
	if s == strings.TrimSpace(s) && !strings.HasPrefix(s, `"`) && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) {
		return s
	}
	return strconv.QuoteToASCII(s)
}

// letterID hashes the message's origin; if the broker has no name for the
// message, its address, key, body and headers, too, and the letter that the message was before.
func letterID(m *Message, own []store.Header, d Disposition, group string) string {
	id := fmt.Appendf(nil, "%q %q %q %q", group, d.Action, m.Origin.Topic, m.Origin.ID)
	if m.Origin.ID == "" {
		id = fmt.Appendf(id, " %q %q %q", m.Origin.Address, m.Key, m.Body)
		if before, sentBack := m.Header(LetterID); sentBack {
			id = fmt.Appendf(id, " %q", before)
		}
		var lines []string // sorted, because a broker may not keep the order
		for _, h := range own {
			if !strings.HasPrefix(strings.ToLower(h.Name), "x-") { // RabbitMQ changes its own at each delivery
				lines = append(lines, fmt.Sprintf(" %q %q", h.Name, h.Value))
			}
		}
		slices.Sort(lines)
		id = append(id, strings.Join(lines, "")...)
	}
	sum := sha256.Sum256(id)
	return hex.EncodeToString(sum[:])
}

// oneLine returns text that every broker accepts as a header's value: short,
// in one line, valid UTF-8.
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
