package semel

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash"
	"strings"

	"github.com/semel-go/semel/store"
)

// Payload is what calls with one key must have in common; a call that differs
// gets ErrMismatch, in every state of the record. Only a hash is kept, keyed
// if Options.Secrets are set. The zero Payload is invalid.
type Payload struct {
	kind  *payloadKind
	label string   // of a Digest: how it was made
	parts [][]byte // of Bytes and Fields; of JSON, what that cannot tell
	whole []byte   // of the others
	err   error
}

// payloadKind names how a payload is hashed, without and with a secret. The
// names are kept, and differ by kind, so that two kinds never compare.
type payloadKind struct{ plain, keyed string }

var (
	kindNone      = &payloadKind{}
	kindBytes     = &payloadKind{"bytes/sha256", "bytes/hmac-sha256"}
	kindDigest    = &payloadKind{"", "digest/hmac-sha256"} // without a secret, the sum is kept as it is
	kindJSON      = &payloadKind{"json/sha256", "json/hmac-sha256"}
	kindCanonical = &payloadKind{"rfc8785/sha256", "rfc8785/hmac-sha256"}
	kindFields    = &payloadKind{"fields/sha256", "fields/hmac-sha256"}
)

// NoPayload says that the key alone identifies the call.
func NoPayload() Payload { return Payload{kind: kindNone} }

// Bytes compares each part as it is. The parts are read when the call is run:
// do not change them before.
func Bytes(parts ...[]byte) Payload { return Payload{kind: kindBytes, parts: parts} }

// Digest compares a hash of 1 to 64 bytes that was computed elsewhere, such as
// that of a streamed body. Alg, of 1 to 64 bytes, names how, and is kept: two
// that differ make ErrUnverifiable. It must not end in "sha256" behind a
// slash, as Semel's own do. The sum is kept as it is, unless Options.Secrets
// are set: it is to tell nothing of the payload.
func Digest(alg string, sum []byte) Payload {
	p := Payload{kind: kindDigest, label: alg, whole: sum}
	switch {
	case alg == "" || len(alg) > maxDigest:
		p.err = fmt.Errorf("digest: its alg has %d bytes; 1 to %d are needed", len(alg), maxDigest)
	case strings.HasSuffix(alg, "/sha256") || strings.HasSuffix(alg, "/hmac-sha256"):
		p.err = fmt.Errorf("digest: the alg %q is one of Semel's own; choose another name", alg)
	case len(sum) == 0 || len(sum) > maxDigest:
		p.err = fmt.Errorf("digest: its sum has %d bytes; 1 to %d are needed", len(sum), maxDigest)
	}
	return p
}

const maxDigest = 64 // bytes of a digest's sum, and of its alg's name

// JSON compares the JSON encoding of v, made now. Two programs that order
// fields differently differ; see Canonical. Texts that are not UTF-8, which JSON
// cannot tell apart, are compared by their bytes.
func JSON(v any) Payload {
	b, err := json.Marshal(v)
	if err != nil {
		return Payload{kind: kindJSON, err: err}
	}
	return Payload{kind: kindJSON, whole: b, parts: rawTexts(v, b)}
}

// Canonical compares a JSON document by what it says: white space, the order
// of members and the spelling of numbers and strings do not count (RFC 8785).
// Numbers are compared by their digits, also where the RFC's doubles could not
// tell them apart. A document that is not JSON, has a member twice, or a number
// beyond a double, makes an invalid call.
func Canonical(doc []byte) Payload {
	b, err := canonicalJSON(doc)
	return Payload{kind: kindCanonical, whole: b, err: err}
}

// Fields compares only the members of a JSON document that the paths name:
// "amount", "customer.id". A member that is absent equals only absence. Besides
// what Canonical refuses, no path, and a document that has none of the members,
// make an invalid call.
func Fields(doc []byte, paths ...string) Payload {
	parts, err := canonicalFields(doc, paths)
	return Payload{kind: kindFields, parts: parts, err: err}
}

func (p *Payload) check() error {
	switch {
	case p.kind == nil:
		return fmt.Errorf("payload: is the zero Payload; say JSON, Bytes, Digest, Canonical, Fields or NoPayload")
	case p.err != nil:
		return fmt.Errorf("payload: %w", p.err)
	}
	return nil
}

// Secret keys the hashes of payloads, so that who reads the store cannot guess
// small payloads.
type Secret struct {
	ID  string // kept with each record, in the clear; 1 to 64 bytes
	Key []byte // at least 16 random bytes
}

// fingerprint hashes the payload with a secret; with none if s is nil.
func (p *Payload) fingerprint(s *Secret) store.Fingerprint {
	if p.kind == kindNone {
		return store.Fingerprint{}
	}
	if s != nil {
		return store.Fingerprint{Alg: p.kind.keyed, KeyID: s.ID, Sum: p.sum(hmac.New(sha256.New, s.Key))}
	}
	if p.kind == kindDigest {
		return store.Fingerprint{Alg: p.label, Sum: string(p.whole)}
	}
	var stack [512]byte
	if p.size() <= len(stack) { // most are small, and then nothing but the sum is allocated
		sum := sha256.Sum256(p.appendTo(stack[:0]))
		return store.Fingerprint{Alg: p.kind.plain, Sum: string(sum[:])}
	}
	return store.Fingerprint{Alg: p.kind.plain, Sum: p.sum(sha256.New())}
}

// What is hashed is each part behind its length: ("a","bc") is not ("ab","c").
const lengthSize = 8

func (p *Payload) size() int {
	n := lengthSize + len(p.label) + lengthSize + len(p.whole)
	for _, part := range p.parts {
		n += lengthSize + len(part)
	}
	return n
}

func (p *Payload) appendTo(b []byte) []byte {
	b = append(binary.BigEndian.AppendUint64(b, uint64(len(p.label))), p.label...)
	b = append(binary.BigEndian.AppendUint64(b, uint64(len(p.whole))), p.whole...)
	for _, part := range p.parts {
		b = append(binary.BigEndian.AppendUint64(b, uint64(len(part))), part...)
	}
	return b
}

// sum is the hash of what appendTo makes, without a copy of the parts.
func (p *Payload) sum(h hash.Hash) string {
	buf := make([]byte, 0, sha256.Size)
	write := func(part []byte) {
		h.Write(binary.BigEndian.AppendUint64(buf, uint64(len(part))))
		h.Write(part)
	}
	write([]byte(p.label))
	write(p.whole)
	for _, part := range p.parts {
		write(part)
	}
	return string(h.Sum(buf))
}
