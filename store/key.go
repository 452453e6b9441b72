package store

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// Key finds a record. All three fields are part of it, so equal values of two
// tenants, or of two operations, never meet. Comparable.
type Key struct {
	// Operation names what is done once: "charge", "POST /payments/{id}", a
	// consumer group. From a small set: it labels metrics.
	Operation string
	// Tenant is whose key it is. Empty: a key space that all callers of the
	// operation share.
	Tenant string
	// Value is the idempotency key itself, 1 to 255 bytes.
	Value string
}

// Digest is the SHA-256 of the key's fields, each behind its length, so that
// no two keys have one digest: a primary key of fixed size.
func (k Key) Digest() [sha256.Size]byte {
	var stack [512]byte
	b := stack[:0]
	for _, field := range [...]string{k.Operation, k.Tenant, k.Value} {
		b = binary.BigEndian.AppendUint32(b, uint32(len(field)))
		b = append(b, field...)
	}
	return sha256.Sum256(b)
}

// Short is the first 8 hexadecimal digits of the digest: it lets people tell
// keys apart in logs that must not hold the key.
func (k Key) Short() string {
	d := k.Digest()
	return hex.EncodeToString(d[:4])
}
