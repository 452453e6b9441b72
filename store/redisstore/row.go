package redisstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/semel-go/semel/store"
)

// A record is one string: a head with fixed offsets, which the scripts compare
// and set; then the identity, which stays from claim to settlement; then the
// steps, which stay in every change of one life; then the result, which a
// settlement replaces. Numbers are big-endian, times are
// microseconds, 0 for none. A Redis hash with the same fields took 880 bytes of
// the server's memory instead of 472, and its script took longer.
//
//	 0  format      1 byte
//	 1  owner      16
//	17  fence       8
//	25  created     8
//	33  until       8
//	41  expires     8
//	49  updated     8
//	57  state       1
//	58  attempt     8
//	66  length of the identity, 4
//	70  identity: policy, 1 byte; operation, tenant, key, holder and the
//	    fingerprint's three texts, each after its length; the former owners, if
//	    there are any, as store.EncodeFormerOwners encodes them
//	 …  length of the steps, 4; the steps: see journal.go
//	 …  result: the last error after its length; in a terminal record the
//	    outcome: code, gone, codec, header lines, and the body to the end
const (
	atOwner   = 1
	atFence   = 17
	atCreated = 25
	atUntil   = 33
	atExpires = 41
	atUpdated = 49
	atState   = 57
	atAttempt = 58
	headLen   = 70
)

// maxOutcome is well below the largest value of Redis (512 MB).
const maxOutcome = 256 << 20

// appendText adds a text after its length.
func appendText(b []byte, t string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(t))), t...)
}

// appendOwner adds the start of a record: format and owner.
func appendOwner(b []byte, o store.Owner) []byte { return append(append(b, store.Format), o[:]...) }

// appendHolder adds format, owner and fence.
func appendHolder(b []byte, o store.Owner, fence uint64) []byte {
	return binary.BigEndian.AppendUint64(appendOwner(b, o), fence)
}

// appendState adds state and attempt.
func appendState(b []byte, s store.State, attempt int) []byte {
	return binary.BigEndian.AppendUint64(append(b, byte(s)), uint64(attempt))
}

// appendRest adds all that follows the attempt.
func appendRest(b []byte, p *store.Proposal) ([]byte, error) {
	start := len(b)
	b = append(b, 0, 0, 0, 0, byte(p.Policy))
	for _, t := range [...]string{p.Key.Operation, p.Key.Tenant, p.Key.Value, p.Holder, p.Fingerprint.Alg, p.Fingerprint.KeyID, p.Fingerprint.Sum} {
		b = appendText(b, t)
	}
	b = append(b, store.EncodeFormerOwners(p.FormerOwners)...)
	binary.BigEndian.PutUint32(b[start:], uint32(len(b)-start-4))
	b = append(b, 0, 0, 0, 0) // no steps
	return appendResult(b, p.State, p.Error, &p.Outcome)
}

func appendResult(b []byte, s store.State, lastError string, o *store.Outcome) ([]byte, error) {
	b = appendText(b, lastError)
	if !s.Terminal() {
		return b, nil
	}
	b = binary.AppendVarint(b, int64(o.Code))
	gone := byte(0)
	if o.Gone {
		gone = 1
	}
	b = appendText(append(b, gone), o.Codec)
	b = binary.AppendUvarint(b, uint64(len(o.Header)))
	for i := range o.Header {
		b = appendText(appendText(b, o.Header[i].Name), o.Header[i].Value)
	}
	if n := len(b) + len(o.Body); n > maxOutcome {
		return nil, fmt.Errorf("%w: %d bytes; the limit is %d", store.ErrTooLarge, n, maxOutcome)
	}
	return append(b, o.Body...), nil
}

// stateChange is the fields that a change sets and that concurrent changes usually have in
// common: the times, in microseconds from the store's clock, the state and the attempt.
type stateChange struct {
	until, expires int64 // or unset
	state          store.State
	attempt        int
}

const unset = math.MinInt64

func newStateChange(s store.State, attempt int, wait, keep time.Duration) stateChange {
	t := stateChange{unset, unset, s, attempt}
	if s == store.Started || s == store.Processing || s == store.Released {
		t.until = micros(wait)
	}
	if s == store.Released {
		keep = max(wait, keep)
	}
	if s == store.Released || s.Terminal() {
		t.expires = micros(keep)
	}
	return t
}

// appendArgs adds the state change as the scripts take it. A renewal leaves the state
// and the attempt as they are.
func (t *stateChange) appendArgs(args []any) []any {
	for _, us := range [...]int64{t.until, t.expires} {
		if us == unset {
			args = append(args, "")
		} else {
			args = append(args, us)
		}
	}
	if t.state == 0 {
		return append(args, "")
	}
	return append(args, string(appendState(nil, t.state, t.attempt)))
}

// micros rounds down, as store.Time does.
func micros(d time.Duration) int64 {
	us := d.Microseconds()
	if d < 0 && d%time.Microsecond != 0 {
		us--
	}
	return us
}

// decode reads a record; an error wraps store.ErrCorrupt.
func decode(v string) (r store.Record, err error) {
	if len(v) < headLen {
		return r, fmt.Errorf("%w: %d bytes; the head alone has %d", store.ErrCorrupt, len(v), headLen)
	}
	if v[0] != store.Format {
		return r, fmt.Errorf("%w: format is %d; this version reads %d; a newer one may have written it", store.ErrCorrupt, v[0], store.Format)
	}
	number := func(offset int) int64 { return int64(binary.BigEndian.Uint64([]byte(v[offset : offset+8]))) }
	r = store.Record{
		State: store.State(v[atState]), Owner: store.Owner([]byte(v[atOwner:atFence])), Fence: uint64(number(atFence)), Format: int(v[0]),
		Created: store.Time(number(atCreated)), Until: store.Time(number(atUntil)), Expires: store.Time(number(atExpires)),
		Updated: store.Time(number(atUpdated)), Attempt: int(number(atAttempt)),
	}
	c := fieldReader{rest: v[headLen:]}
	end := len(c.rest) - int(binary.BigEndian.Uint32([]byte(v[headLen-4:headLen])))
	r.Policy = store.Policy(c.byte())
	for _, to := range [...]*string{
		&r.Key.Operation, &r.Key.Tenant, &r.Key.Value, &r.Holder, &r.Fingerprint.Alg, &r.Fingerprint.KeyID, &r.Fingerprint.Sum,
	} {
		*to = c.text()
	}
	if n := len(c.rest) - end; n < 0 || end < 0 {
		c.bad = true
	} else if n > 0 {
		if r.FormerOwners, err = store.DecodeFormerOwners([]byte(c.rest[:n])); err != nil {
			return r, err
		}
		c.rest = c.rest[n:]
	}
	c.steps()
	r.LastError = c.text()
	if r.State.Terminal() {
		r.Completed = r.Updated // a terminal record does not change
		r.Outcome = c.outcome()
	} else if c.rest != "" {
		c.bad = true
	}
	switch {
	case !r.State.Valid():
		err = fmt.Errorf("%w: state is %d; it must be 1 to 6", store.ErrCorrupt, v[atState])
	case r.Policy > store.Park:
		err = fmt.Errorf("%w: policy is %d; it must be 0 or 1", store.ErrCorrupt, r.Policy)
	case c.bad:
		err = fmt.Errorf("%w: its %d bytes do not fit together", store.ErrCorrupt, len(v))
	}
	return r, err
}

// fieldReader reads the fields after the head. When they do not fit it sets bad, and
// returns zero values.
type fieldReader struct {
	rest string
	bad  bool
}

func (c *fieldReader) byte() byte {
	if c.rest == "" {
		c.bad = true
		return 0
	}
	b := c.rest[0]
	c.rest = c.rest[1:]
	return b
}

func (c *fieldReader) uvarint() (n uint64) {
	for shift := 0; shift < 64; shift += 7 {
		b := c.byte()
		n |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return n
		}
	}
	c.bad = true
	return 0
}

func (c *fieldReader) text() string {
	n := c.uvarint()
	if n > uint64(len(c.rest)) {
		c.bad = true
		return ""
	}
	t := c.rest[:n]
	c.rest = c.rest[n:]
	return t
}

func (c *fieldReader) outcome() (o store.Outcome) {
	u := c.uvarint()
	o.Code = int(int64(u>>1) ^ -int64(u&1))
	o.Gone = c.byte() == 1
	o.Codec = c.text()
	lines := c.uvarint()
	if lines > uint64(len(c.rest)) { // each takes two bytes at least
		c.bad = true
		return o
	}
	if lines > 0 {
		o.Header = make([]store.Header, lines)
	}
	for i := range o.Header {
		o.Header[i] = store.Header{Name: c.text(), Value: c.text()}
	}
	if c.rest != "" {
		o.Body = []byte(c.rest)
	}
	c.rest = ""
	return o
}

// errCollision refuses a call whose key has the id of another key. Half of a
// SHA-256 makes that practically impossible.
var errCollision = errors.New("another key has the same id; use another key")

// read decodes the record of a key.
func read(k *store.Key, v string) (store.Record, error) {
	r, err := decode(v)
	if err == nil && r.Key != *k {
		err = errCollision
	}
	if err != nil {
		return store.Record{}, err
	}
	return r, nil
}
