package store

import (
	"encoding/binary"
	"fmt"
	"strings"
	"time"
)

// FormerOwner is an owner that a Swap has replaced. Operators see in it which process
// had the record before, and how that ended.
type FormerOwner struct {
	Owner Owner
	// Holder is the record's Holder, cut to 256 bytes.
	Holder  string
	Fence   uint64
	Attempt int
	// State is the state in which the Swap found the record. Processing: the lease had
	// expired.
	State State
	// Next is the state that the Swap gave to the record.
	Next State
	// Ended is when the lease expired (Processing), or when the record came into State.
	Ended time.Time
}

const (
	// MaxFormerOwners is how many former owners a record keeps: the last ones.
	MaxFormerOwners = 8
	maxFormerHolder = 256
)

// FormerOwnersAfter returns the Proposal.FormerOwners of a Swap that gives the state
// next to r: the list of r, with r's owner at the end. A reservation adds no owner,
// because nothing has run in it. Swap compares the owner, the fence and the state, so
// that a race neither loses an owner nor adds one.
func (r *Record) FormerOwnersAfter(next State) []FormerOwner {
	if r.State == Started {
		return r.FormerOwners
	}
	o := FormerOwner{Owner: r.Owner, Holder: r.Holder, Fence: r.Fence, Attempt: r.Attempt, State: r.State, Next: next, Ended: r.Updated}
	if r.State == Processing {
		o.Ended = r.Until
	}
	if len(o.Holder) > maxFormerHolder {
		o.Holder = strings.ToValidUTF8(o.Holder[:maxFormerHolder], "")
	}
	before := r.FormerOwners[max(0, len(r.FormerOwners)-MaxFormerOwners+1):]
	return append(append(make([]FormerOwner, 0, len(before)+1), before...), o)
}

// End says in a few words how the ownership ended, and how the record went on.
func (o *FormerOwner) End() string {
	ended, ok := endWords[o.State]
	if !ok {
		ended = o.State.String()
	}
	next, ok := pairWords[[2]State{o.State, o.Next}]
	if !ok {
		next, ok = nextWords[o.Next]
	}
	if !ok {
		next = o.Next.String()
	}
	return ended + ", then " + next
}

var (
	endWords  = map[State]string{Processing: "lease expired", Unknown: "parked"}
	nextWords = map[State]string{Started: "reserved again", Processing: "claimed again", Unknown: "parked"}
	pairWords = map[[2]State]string{
		{Processing, Processing}: "taken over",
		{Failed, Released}:       "reopened",
		{Unknown, Released}:      "resolved: it did not happen",
		{Unknown, Completed}:     "resolved: it happened",
		{Unknown, Failed}:        "resolved: it failed",
	}
)

// formerOwnersFormat is the first byte of encoded former owners.
const formerOwnersFormat = 1

// EncodeFormerOwners encodes former owners for stores. None is nil.
func EncodeFormerOwners(owners []FormerOwner) []byte {
	if len(owners) == 0 {
		return nil
	}
	b := []byte{formerOwnersFormat}
	for i := range owners {
		o := &owners[i]
		b = append(appendText(b, string(o.Owner[:])), byte(o.State), byte(o.Next))
		b = binary.AppendVarint(binary.AppendUvarint(b, o.Fence), int64(o.Attempt))
		b = appendText(binary.AppendVarint(b, Micros(o.Ended)), o.Holder)
	}
	return b
}

// DecodeFormerOwners decodes what EncodeFormerOwners has encoded. An error wraps
// [ErrCorrupt].
func DecodeFormerOwners(b []byte) (owners []FormerOwner, err error) {
	if len(b) == 0 {
		return nil, nil
	}
	r := fieldReader{rest: b}
	if format := r.byte(); format != formerOwnersFormat {
		return nil, fmt.Errorf("%w: the former owners have format %d; this version reads %d; a newer one may have written it", ErrCorrupt, format, formerOwnersFormat)
	}
	for len(r.rest) > 0 {
		var o FormerOwner
		if n := copy(o.Owner[:], r.text()); n != len(o.Owner) {
			r.failed = true
		}
		o.State, o.Next = State(r.byte()), State(r.byte())
		o.Fence, o.Attempt = r.uvarint(), int(r.varint())
		o.Ended = Time(r.varint())
		o.Holder = r.text()
		owners = append(owners, o)
	}
	if r.failed {
		return nil, fmt.Errorf("%w: the %d bytes of the former owners do not fit together", ErrCorrupt, len(b))
	}
	return owners, nil
}
