package store

import (
	"bytes"
	"crypto/subtle"
	"slices"
	"time"
)

// Format is the version of a record's layout that this package writes. A
// store reads this version and the one before, and refuses others.
const Format = 1

// Record is all that is kept of one key. Times are of the store's clock, in
// UTC, cut to microseconds (see [Time]); the zero time means "none".
type Record struct {
	Key    Key
	State  State
	Policy Policy
	// Fence grows with each change of hands. It is what a downstream system
	// compares to refuse a frozen earlier owner.
	Fence uint64
	// Owner is the random token of the claim that holds, or last held, it.
	Owner Owner
	// Holder tells people who that is: host and process, or a consumer's id.
	Holder      string
	Fingerprint Fingerprint
	// Attempt counts the times that a handler was started.
	Attempt int
	// Until ends the lease (Processing) or the reservation (Started), or is
	// the earliest start of the next attempt (Released). Else zero.
	Until time.Time
	// Outcome is the answer to repeat: Completed and Failed only.
	Outcome Outcome
	// LastError is the text of the last attempt's error, for people; of an
	// Unknown record it also says what the last reconciler left.
	LastError string

	Created, Updated time.Time
	// Completed is when the record became terminal.
	Completed time.Time
	// Expires ends a Completed, Failed or Released record; it is zero, and
	// the record stays, in the other states.
	Expires time.Time
	// Format is the version of the layout it was written with.
	Format int
}

// Owner is a random token, new for each claim. The zero Owner is nobody's.
type Owner [16]byte

// Outcome is what a finished operation answers, first and to each duplicate.
// It is not changed once stored; treat Header and Body as read-only.
type Outcome struct {
	// Code is a status for the door to use: an HTTP status, or 0.
	Code int
	// Header holds the kept response headers, if the door has such, in their
	// order: it counts, also for Equal.
	Header []Header
	// Body is the result as the codec wrote it.
	Body []byte
	// Codec names the codec that wrote Body; empty: raw bytes.
	Codec string
	// Gone is a tombstone: the operation is done, but its body was too large
	// to keep, or streamed.
	Gone bool
}

// Header is one line of a response's header. A name with two values is two lines.
type Header struct{ Name, Value string }

// Equal reports whether both would be repeated alike. Nil and empty are equal.
func (o Outcome) Equal(p Outcome) bool {
	return o.Code == p.Code && o.Codec == p.Codec && o.Gone == p.Gone && bytes.Equal(o.Body, p.Body) &&
		slices.Equal(o.Header, p.Header)
}

// Clone is a copy that shares no memory with o.
func (o Outcome) Clone() Outcome {
	o.Body = slices.Clip(bytes.Clone(o.Body)) // an append to a shared copy must not write
	o.Header = slices.Clip(slices.Clone(o.Header))
	return o
}

// Fingerprint is a hash of what calls with one key must have in common. The
// zero Fingerprint is that of a call without a payload.
type Fingerprint struct {
	Alg   string // how Sum was made, such as "hmac-sha256"
	KeyID string // names the secret it was keyed with; empty: none
	Sum   string // the hash, as raw bytes
}

// Comparable reports whether the sums of f and g say anything of each other.
func (f Fingerprint) Comparable(g Fingerprint) bool { return f.Alg == g.Alg && f.KeyID == g.KeyID }

// Equal compares in constant time. It means nothing unless f and g are
// Comparable.
func (f Fingerprint) Equal(g Fingerprint) bool {
	return subtle.ConstantTimeCompare([]byte(f.Sum), []byte(g.Sum)) == 1
}

// Seen is what was read of a record, as far as a compare-and-swap compares it.
type Seen struct {
	Key            Key
	State          State
	Owner          Owner
	Fence          uint64
	Until, Expires time.Time
}

// Seen is what a Swap that was decided on r compares.
func (r *Record) Seen() Seen {
	return Seen{Key: r.Key, State: r.State, Owner: r.Owner, Fence: r.Fence, Until: r.Until, Expires: r.Expires}
}

// Lease is what the owner of a claim shows with each change. Comparable.
type Lease struct {
	Key   Key
	Owner Owner
	Fence uint64
}

// Lease is the lease of the claim that r records.
func (r *Record) Lease() Lease { return Lease{Key: r.Key, Owner: r.Owner, Fence: r.Fence} }

// Expired reports whether r is over at now: it counts as absent, though a
// sweep may not have removed it yet.
func (r *Record) Expired(now time.Time) bool { return !r.Expires.IsZero() && !now.Before(r.Expires) }

// Lapsed reports whether r is Started or Processing and its time is up.
func (r *Record) Lapsed(now time.Time) bool {
	return (r.State == Started || r.State == Processing) && !now.Before(r.Until)
}

// Micros is t as microseconds since 1970, 0 for the zero time: how stores keep
// times.
func Micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// Time is the opposite of Micros. Records hold only times that it returns, so
// they can be compared with ==.
func Time(micros int64) time.Time {
	if micros == 0 {
		return time.Time{}
	}
	return time.UnixMicro(micros).UTC()
}
