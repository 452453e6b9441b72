package semel

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash"
	"slices"
	"strings"

	"github.com/semel-go/semel/internal/jsontext"
	"github.com/semel-go/semel/store"
)

// Payload is what all calls with one key must have in common. A call with
// another payload fails with ErrMismatch, in every state of the record. The store
// keeps only a hash, which is keyed if Options.Secrets is set. The zero Payload
// is invalid.
type Payload struct {
	kind  *payloadKind
	label string   // for Digest: the name of the algorithm
	only  []byte   // for Bytes: the part, if there is one only; so it takes no slice
	parts [][]byte // for Bytes and Fields: the parts; for JSON: the strings that are not UTF-8
	whole []byte   // for Digest and JSON
	err   error
}

// payloadKind names how a payload is hashed without and with a secret. Records
// keep these names, so that payloads of two kinds are never compared.
type payloadKind struct{ plain, keyed string }

var (
	kindNone   = &payloadKind{}
	kindBytes  = &payloadKind{"bytes/sha256", "bytes/hmac-sha256"}
	kindDigest = &payloadKind{"", "digest/hmac-sha256"} // after the label and a slash; without a secret the record keeps the label and the sum
	kindJSON   = &payloadKind{"rfc8785/sha256", "rfc8785/hmac-sha256"}
	kindFields = &payloadKind{"fields/sha256", "fields/hmac-sha256"}
)

// NoPayload compares nothing: the key alone identifies the call.
func NoPayload() Payload { return Payload{kind: kindNone} }

// Bytes compares each part byte for byte. Run reads the parts, so do not change
// them before the call is run.
func Bytes(parts ...[]byte) Payload {
	if len(parts) == 1 && parts[0] != nil {
		return Payload{kind: kindBytes, only: parts[0]}
	}
	return Payload{kind: kindBytes, parts: slices.Clone(parts)}
}

// Digest compares a hash that was computed elsewhere, such as the hash of a
// streamed body. Both alg, which names the algorithm, and sum have 1 to 64 bytes.
// Records keep alg, and with Options.Secrets "/digest/hmac-sha256" after it; if the
// algorithms of two calls differ, the second fails with ErrUnverifiable. alg must not
// end in "/sha256" or "/hmac-sha256", because Semel's own names do, nor be
// store.AnyPayload. Without Options.Secrets the record keeps sum as it is, so sum must
// reveal nothing of the payload.
func Digest(alg string, sum []byte) Payload {
	p := Payload{kind: kindDigest, label: alg, whole: sum}
	switch {
	case alg == "" || len(alg) > maxDigest:
		p.err = fmt.Errorf("digest: its alg has %d bytes; 1 to %d are needed", len(alg), maxDigest)
	case strings.HasSuffix(alg, "/sha256") || strings.HasSuffix(alg, "/hmac-sha256") || alg == store.AnyPayload:
		p.err = fmt.Errorf("digest: the alg %q is one of Semel's own; choose another name", alg)
	case len(sum) == 0 || len(sum) > maxDigest:
		p.err = fmt.Errorf("digest: its sum has %d bytes; 1 to %d are needed", len(sum), maxDigest)
	}
	return p
}

const maxDigest = 64 // bytes of a digest's sum, and of its alg's name

// JSON compares v as JSON, encoded now. White space, the order of members and the
// spelling of numbers and strings do not matter (RFC 8785), so programs in two
// languages agree. To compare a document that you have received, pass it as a
// json.RawMessage. Unlike the RFC, which compares numbers as doubles, JSON
// compares numbers that a double cannot hold by their digits. Strings that are
// not UTF-8 are compared by their bytes.
//
// The call is invalid if v has no JSON encoding, a member twice, or a number
// beyond the range of a double.
func JSON(v any) (payload Payload) {
	defer func() {
		if p := recover(); p != nil { // in a method of v
			payload = Payload{kind: kindJSON, err: fmt.Errorf("the encoding of a %T panicked: %v", v, p)}
		}
	}()
	doc, err := json.Marshal(v)
	if err != nil {
		return Payload{kind: kindJSON, err: err}
	}
	if invalid := jsontext.InvalidStrings(v, doc); len(invalid) > 0 {
		return Payload{kind: kindJSON, whole: doc, parts: invalid} // doc may have one member twice, so it has no canonical form
	}
	whole, err := jsontext.Canonical(doc)
	return Payload{kind: kindJSON, whole: whole, err: err}
}

// Fields compares only the members of a JSON document that the paths name, such
// as "amount" or "customer.id". An absent member equals only an absent member.
// The call is invalid if there is no path, if the document has none of the
// members, or if JSON would refuse the document.
func Fields(doc []byte, paths ...string) Payload {
	parts, err := jsontext.Fields(doc, paths)
	return Payload{kind: kindFields, parts: parts, err: err}
}

func (p *Payload) check() error {
	switch {
	case p.kind == nil:
		return fmt.Errorf("payload: is the zero Payload; use JSON, Bytes, Digest, Fields or NoPayload")
	case p.err != nil:
		return fmt.Errorf("payload: %w", p.err)
	}
	return nil
}

// Secret keys the hashes of payloads, so that somebody who reads the store cannot
// guess small payloads. The zero Secret is valid only as the first of Options.Secrets.
type Secret struct {
	ID  string // 1 to 64 bytes; each record keeps it in the clear
	Key []byte // at least 16 random bytes
}

// fingerprint hashes the payload with a secret; with none if s is nil.
func (p *Payload) fingerprint(s *Secret) store.Fingerprint {
	if p.kind == kindNone {
		return store.Fingerprint{}
	}
	if s != nil {
		alg := p.kind.keyed
		if p.kind == kindDigest { // operators tell by the label that the record is of a request over HTTP
			alg = p.label + "/" + alg
		}
		return store.Fingerprint{Alg: alg, KeyID: s.ID, Sum: p.sum(hmac.New(sha256.New, s.Key))}
	}
	if p.kind == kindDigest {
		return store.Fingerprint{Alg: p.label, Sum: string(p.whole)}
	}
	var stack [512]byte
	if p.size() <= len(stack) { // most payloads are small, and then only the sum is allocated
		sum := sha256.Sum256(p.appendTo(stack[:0]))
		return store.Fingerprint{Alg: p.kind.plain, Sum: string(sum[:])}
	}
	return store.Fingerprint{Alg: p.kind.plain, Sum: p.sum(sha256.New())}
}

// Each part is hashed after its length, so that ("a","bc") is not ("ab","c").
const lengthSize = 8

func (p *Payload) size() int {
	n := lengthSize + len(p.label) + lengthSize + len(p.whole) + lengthSize + len(p.only)
	for _, part := range p.parts {
		n += lengthSize + len(part)
	}
	return n
}

func (p *Payload) appendTo(b []byte) []byte {
	b = append(binary.BigEndian.AppendUint64(b, uint64(len(p.label))), p.label...)
	b = append(binary.BigEndian.AppendUint64(b, uint64(len(p.whole))), p.whole...)
	if p.only != nil {
		b = append(binary.BigEndian.AppendUint64(b, uint64(len(p.only))), p.only...)
	}
	for _, part := range p.parts {
		b = append(binary.BigEndian.AppendUint64(b, uint64(len(part))), part...)
	}
	return b
}

// sum hashes the bytes that appendTo appends, without copying the parts.
func (p *Payload) sum(h hash.Hash) string {
	buf := make([]byte, 0, sha256.Size)
	write := func(part []byte) {
		h.Write(binary.BigEndian.AppendUint64(buf, uint64(len(part))))
		h.Write(part)
	}
	write([]byte(p.label))
	write(p.whole)
	if p.only != nil {
		write(p.only)
	}
	for _, part := range p.parts {
		write(part)
	}
	return string(h.Sum(buf))
}
