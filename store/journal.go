package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// Step is a recovery point of a call that is done. It belongs to the call's record
// and lives exactly as long as that life of the key: it goes when the record is
// deleted or replaced with Proposal.Restart, and stays through every other change.
type Step struct {
	// Name is unique within the record.
	Name string
	// Fingerprint is a hash of the step's payload; zero if it has none.
	Fingerprint Fingerprint
	// Outcome is the step's result or, if Failed is true, its final failure.
	Outcome Outcome
	Failed  bool
	// Attempt is the call's attempt that recorded the step.
	Attempt int
	// Recorded is the store's clock at that time. The store sets it.
	Recorded time.Time
}

// Journal is a store, or a Tx, that keeps the steps of calls. It is optional, and
// semel.New asks a store for it once.
//
// How a store keeps steps is its own affair, but a step is never visible to another
// life of the key, and a change of one record's steps is one atomic step.
type Journal interface {
	// RecordStep adds a step to the record if owner and fence match and the state
	// is Processing; otherwise it returns [ErrLeaseLost] and changes nothing.
	// Sending the same step again returns nil; another step of the same name is
	// [ErrChanged]. [ErrTooLarge]: nothing was changed; a tombstone fits.
	//
	// In a Tx each step of the name that is recorded is [ErrChanged], also the same one:
	// a transaction that was given up may have committed late, and the effects of both
	// would be there.
	RecordStep(ctx context.Context, l Lease, s Step) error

	// Steps returns the steps of the record in the order in which they were
	// recorded, if owner and fence match, in every state. Otherwise it returns
	// [ErrLeaseLost]. The read is strongly consistent: it has every step that an
	// earlier claim recorded.
	Steps(ctx context.Context, l Lease) ([]Step, error)
}

// The limits of the steps of one record. package semel refuses what exceeds them.
const (
	// MaxSteps is how many steps a record may have.
	MaxSteps = 1000
	// MaxStepBytes is the sum of Step.Size of a record's steps.
	MaxStepBytes = 1 << 20
)

// Equal reports whether s and t are the same step, sent twice.
func (s *Step) Equal(t *Step) bool {
	return s.Name == t.Name && s.Failed == t.Failed && s.Fingerprint == t.Fingerprint && s.Outcome.Equal(t.Outcome)
}

// Size is the bytes that count for MaxStepBytes.
func (s *Step) Size() int {
	f, n := &s.Fingerprint, 64 // numbers, lengths and times
	n += len(s.Name) + len(f.Alg) + len(f.KeyID) + len(f.Sum) + len(s.Outcome.Codec) + len(s.Outcome.Body)
	for i := range s.Outcome.Header {
		n += len(s.Outcome.Header[i].Name) + len(s.Outcome.Header[i].Value) + 4
	}
	return n
}

// stepFormat is the first byte of an encoded step.
const stepFormat = 1

// EncodeStep encodes a step for stores, without Name and Recorded, which a store
// keeps beside it.
func EncodeStep(s *Step) []byte {
	b := make([]byte, 0, s.Size())
	b = append(b, stepFormat, flag(s.Failed), flag(s.Outcome.Gone))
	b = binary.AppendVarint(b, int64(s.Attempt))
	b = binary.AppendVarint(b, int64(s.Outcome.Code))
	for _, text := range [...]string{s.Fingerprint.Alg, s.Fingerprint.KeyID, s.Fingerprint.Sum, s.Outcome.Codec} {
		b = appendText(b, text)
	}
	b = binary.AppendUvarint(b, uint64(len(s.Outcome.Header)))
	for _, h := range s.Outcome.Header {
		b = appendText(appendText(b, h.Name), h.Value)
	}
	return append(b, s.Outcome.Body...)
}

// DecodeStep decodes what EncodeStep has encoded. An error wraps [ErrCorrupt].
func DecodeStep(name string, recorded time.Time, b []byte) (Step, error) {
	r := fieldReader{rest: b}
	format := r.byte()
	s := Step{Name: name, Recorded: recorded, Failed: r.byte() == 1}
	s.Outcome.Gone = r.byte() == 1
	s.Attempt, s.Outcome.Code = int(r.varint()), int(r.varint())
	for _, to := range [...]*string{&s.Fingerprint.Alg, &s.Fingerprint.KeyID, &s.Fingerprint.Sum, &s.Outcome.Codec} {
		*to = r.text()
	}
	lines := r.uvarint()
	if lines > uint64(len(r.rest)) { // each takes two bytes at least
		r.failed, lines = true, 0
	}
	for range lines {
		s.Outcome.Header = append(s.Outcome.Header, Header{Name: r.text(), Value: r.text()})
	}
	if len(r.rest) > 0 {
		s.Outcome.Body = append([]byte(nil), r.rest...)
	}
	switch {
	case r.failed:
		return Step{}, fmt.Errorf("%w: the %d bytes of a step do not fit together", ErrCorrupt, len(b))
	case format != stepFormat:
		return Step{}, fmt.Errorf("%w: a step has format %d; this version reads %d; a newer one may have written it", ErrCorrupt, format, stepFormat)
	}
	return s, nil
}

func flag(set bool) byte {
	if set {
		return 1
	}
	return 0
}

func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// fieldReader reads fields. If they do not fit it sets failed, and returns zero
// values.
type fieldReader struct {
	rest   []byte
	failed bool
}

func (r *fieldReader) byte() byte {
	if len(r.rest) == 0 {
		r.failed = true
		return 0
	}
	b := r.rest[0]
	r.rest = r.rest[1:]
	return b
}

func (r *fieldReader) varint() int64 {
	v, n := binary.Varint(r.rest)
	r.skip(n)
	return v
}

func (r *fieldReader) uvarint() uint64 {
	v, n := binary.Uvarint(r.rest)
	r.skip(n)
	return v
}

func (r *fieldReader) skip(n int) {
	if n <= 0 {
		r.failed, r.rest = true, nil
		return
	}
	r.rest = r.rest[n:]
}

func (r *fieldReader) text() string {
	n := r.uvarint()
	if n > uint64(len(r.rest)) {
		r.failed, r.rest = true, nil
		return ""
	}
	text := string(r.rest[:n])
	r.rest = r.rest[n:]
	return text
}

// SameStep returns nil if recorded, the step of the same name that a store has
// already, is s, and ErrChanged if it is another.
func SameStep(recorded, s *Step) error {
	if recorded.Equal(s) {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrChanged, errOtherStep)
}

// ErrStepRecorded is what RecordStep of a Tx returns for a step whose name the record has
// already.
var ErrStepRecorded = fmt.Errorf("%w: a step of this name was recorded meanwhile; roll back, and use the step again", ErrChanged)

var errOtherStep = errors.New("a step of this name is recorded with another result")
