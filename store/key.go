package store

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
)

// Key identifies a record. Equal values of two tenants, or of two operations, are
// different keys. Comparable.
type Key struct {
	// Operation names the work: "charge", "POST /payments/{id}", a consumer
	// group. It labels metrics, so use few.
	Operation string
	// Tenant is the account or user that the key belongs to. Empty: all tenants
	// share the key.
	Tenant string
	// Value is the idempotency key itself, 1 to 255 bytes.
	Value string
}

// Digest is the SHA-256 of the key's fields, each after its length, so that two
// keys never have the same digest. It is a primary key of fixed size.
func (k Key) Digest() [sha256.Size]byte {
	var stack [512]byte
	b := stack[:0]
	for _, field := range [...]string{k.Operation, k.Tenant, k.Value} {
		b = binary.BigEndian.AppendUint32(b, uint32(len(field)))
		b = append(b, field...)
	}
	return sha256.Sum256(b)
}

// Short is the first 8 hexadecimal digits of the digest. It tells keys apart in logs
// that must not contain the key.
func (k Key) Short() string {
	d := k.Digest()
	return hex.EncodeToString(d[:4])
}

// Hashed returns the key with keyed hashes (HMAC-SHA256, 64 hexadecimal digits) in
// place of its tenant and value, so that a store does not show them. The hash of a
// tenant depends on the tenant alone, and the hash of a value on tenant and value. The
// operation stays, and an empty tenant or value stays empty. A Guard with
// semel.Options.HashKeys hashes the keys of its calls in this way, once; a hashed key
// must not be hashed again. A nil secret returns k.
func (k Key) Hashed(secret []byte) Key {
	if secret == nil {
		return k
	}
	value := k.Value
	if value != "" {
		value = keyedHash(secret, "semel key 1\x00", k.Tenant, k.Value)
	}
	if k.Tenant != "" {
		k.Tenant = keyedHash(secret, "semel tenant 1\x00", k.Tenant)
	}
	k.Value = value
	return k
}

// Downstream is the semel.Execution.DownstreamKey of the call whose record has the key k, for
// people and programs that ask another system about a call that does not run. For
// StepDownstreamKey, "#" and the name of the step follow the operation of k.
//
// It hashes the fields, each after its length. It uses no secret, because a rotated secret
// would give a retry another key; that of semel.Options.HashKeys, which may be in k, cannot
// be rotated.
func (k Key) Downstream(name string) string {
	parent := k.Digest()
	b := append(make([]byte, 0, 128), "semel derive 1\x00"...)
	b = append(b, parent[:]...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(name)))
	b = append(b, name...)
	sum := sha256.Sum256(b)
	u := sum[:16]
	u[6], u[8] = u[6]&0x0f|0x80, u[8]&0x3f|0x80 // RFC 9562: version 8, variant 10
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}

// keyedHash is the HMAC of the fields, each after its length. The label separates
// hashes of one purpose from those of another.
func keyedHash(secret []byte, label string, fields ...string) string {
	b := append(make([]byte, 0, 600), label...)
	for _, field := range fields {
		b = binary.BigEndian.AppendUint32(b, uint32(len(field)))
		b = append(b, field...)
	}
	h := hmac.New(sha256.New, secret)
	h.Write(b) // it never fails
	return hex.EncodeToString(h.Sum(nil))
}
