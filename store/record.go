package store

import (
	"bytes"
	"crypto/subtle"
	"slices"
	"time"
)

// Format is the version of the record format that this package writes. A store
// reads this version and the one before, and refuses others.
const Format = 1

// Record is what a store keeps for one key. Times come from the store's clock, in
// UTC, truncated to microseconds (see [Time]). The zero time means "none".
type Record struct {
	Key    Key
	State  State
	Policy Policy
	// Fence is the fencing token. It grows with each claim, so a downstream
	// system that compares it can refuse a frozen earlier owner.
	Fence uint64
	// Owner is the random token of the current or last claim.
	Owner Owner
	// Holder tells people which process the owner is: host name and process ID.
	Holder      string
	Fingerprint Fingerprint
	// Attempt counts how often a handler was started.
	Attempt int
	// Until is the end of the lease (Processing) or of the reservation (Started),
	// or the earliest start of the next attempt (Released). Otherwise zero.
	Until time.Time
	// Outcome is the answer to repeat. Only in Completed and Failed.
	Outcome Outcome
	// LastError is the text of the last attempt's error, for people. In an
	// Unknown record it also has the last reconciler's error.
	LastError string
	// FormerOwners are the last owners before this one, the latest last. Nil until the
	// record is claimed again. It grows by Swap alone.
	FormerOwners []FormerOwner

	Created, Updated time.Time
	// Completed is when the record became terminal.
	Completed time.Time
	// Expires is when a Completed, Failed or Released record expires. In the other
	// states it is zero, and the record stays.
	Expires time.Time
	// Format is the version of the record format.
	Format int
}

// Owner is a random token, new for each claim. The zero Owner is invalid.
type Owner [16]byte

// Outcome is the answer of a finished operation. The first caller and each
// duplicate get it. Treat Header and Body as read-only.
type Outcome struct {
	// Code is an HTTP status, or 0.
	Code int
	// Header has the kept response headers in their order, which counts for Equal.
	Header []Header
	// Body is the encoded result.
	Body []byte
	// Codec names the codec that encoded Body. Empty: raw bytes.
	Codec string
	// Gone marks a tombstone: the operation is done, but its body is not kept,
	// because it was too large or was streamed.
	Gone bool
}

// Header is one line of a response's header. A name with two values has two lines.
type Header struct{ Name, Value string }

// Equal reports whether two outcomes give the same answer. Nil and empty are equal.
func (o Outcome) Equal(p Outcome) bool {
	return o.Code == p.Code && o.Codec == p.Codec && o.Gone == p.Gone && bytes.Equal(o.Body, p.Body) &&
		slices.Equal(o.Header, p.Header)
}

// Clone returns a copy that shares no memory with o.
func (o Outcome) Clone() Outcome {
	o.Body = slices.Clip(bytes.Clone(o.Body)) // an append must not write to a shared copy
	o.Header = slices.Clip(slices.Clone(o.Header))
	return o
}

// Fingerprint is a hash of the payload that all calls with one key must have in
// common. A call without a payload has the zero Fingerprint.
type Fingerprint struct {
	Alg   string // how Sum was made, such as "rfc8785/hmac-sha256"
	KeyID string // the ID of the secret; empty: no secret
	Sum   string // the hash, as raw bytes
}

// AnyPayload is the Alg of the Fingerprint of a record whose payload nobody knows, because
// another program recorded the call; see semel import. Each payload counts as the same.
const AnyPayload = "semel:any"

// Comparable reports whether the sums of f and g can be compared.
func (f Fingerprint) Comparable(g Fingerprint) bool { return f.Alg == g.Alg && f.KeyID == g.KeyID }

// Equal compares the sums in constant time. f and g must be Comparable.
func (f Fingerprint) Equal(g Fingerprint) bool {
	return subtle.ConstantTimeCompare([]byte(f.Sum), []byte(g.Sum)) == 1
}

// Seen is the part of a record that Swap compares.
type Seen struct {
	Key            Key
	State          State
	Owner          Owner
	Fence          uint64
	Until, Expires time.Time
}

// Seen returns the part of r that Swap compares.
func (r *Record) Seen() Seen {
	return Seen{Key: r.Key, State: r.State, Owner: r.Owner, Fence: r.Fence, Until: r.Until, Expires: r.Expires}
}

// Lease identifies a claim. Its owner sends it with each change. Comparable.
type Lease struct {
	Key   Key
	Owner Owner
	Fence uint64
}

// Lease returns the lease of the claim in r.
func (r *Record) Lease() Lease { return Lease{Key: r.Key, Owner: r.Owner, Fence: r.Fence} }

// Later reports whether r is a later version of the record o of the same key: of a later
// claim, or changed later during the same one.
func (r *Record) Later(o *Record) bool {
	return r.Fence > o.Fence || r.Fence == o.Fence && r.Updated.After(o.Updated)
}

// IsAnswer reports whether callers act on what the record says: a completed or failed one has
// their outcome, and Reserve gives out a token for a reservation, for a record in doubt, and for
// a claim that is not the first one since the record was inserted. A store whose acknowledged
// changes must survive a fail-over confirms such a record before it shows it.
func (r *Record) IsAnswer() bool {
	laterClaim := r.State == Processing && r.Fence > uint64(max(0, Micros(r.Created)))
	return r.State.Terminal() || r.State == Started || r.State == Unknown || laterClaim
}

// Expired reports whether r has expired at the time now. An expired record counts
// as absent, although a sweep may not have removed it yet.
func (r *Record) Expired(now time.Time) bool { return !r.Expires.IsZero() && !now.Before(r.Expires) }

// Lapsed reports whether r is Started or Processing and its Until has passed.
func (r *Record) Lapsed(now time.Time) bool {
	return (r.State == Started || r.State == Processing) && !now.Before(r.Until)
}

// Micros returns t in microseconds since 1970, and 0 for the zero time. Stores keep
// times in this form.
func Micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// Time is the inverse of Micros. All times in records come from it, so they can be
// compared with ==.
func Time(micros int64) time.Time {
	if micros == 0 {
		return time.Time{}
	}
	return time.UnixMicro(micros).UTC()
}
