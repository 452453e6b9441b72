package store

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
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
