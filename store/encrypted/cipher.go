package encrypted

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/semel-go/semel/store"
)

// Keys are the keys of a Cipher. [KeyFile] reads them from a file. Safe for concurrent
// use. Each request to a store asks for a key, so answer from memory: a key service is
// asked once for each key, and not once for each request.
type Keys interface {
	// Current returns the key that encrypts, and its ID. The ID has 1 to 255 bytes, and
	// is stored with each result in the clear. The key has 32 bytes.
	Current(ctx context.Context) (id string, key []byte, err error)
	// Key returns the key with an ID, to decrypt. If there is none, the error wraps
	// [ErrUnknownKey]. Any other error means that it is not known, and that the request
	// may be sent again later.
	Key(ctx context.Context, id string) (key []byte, err error)
}

// TenantKeys is Keys with keys of its own for each tenant. When the keys of a tenant are
// thrown away, nobody can read its results any more, in backups, too: Key then returns
// [ErrUnknownKey]. Calls of other tenants go on.
type TenantKeys interface {
	Keys
	// TenantCurrent is Current for the results of a tenant; the tenant is empty if all
	// tenants share a key, and its hash with semel.Options.HashKeys. An error refuses the
	// tenant's new calls before their handlers run. If the key was thrown away, the error
	// must wrap [ErrUnknownKey]: with semel.Options.UnprotectedOnOutage, calls that have no
	// record run after any other error.
	TenantCurrent(ctx context.Context, tenant string) (id string, key []byte, err error)
}

// ErrUnknownKey says that there is no key with an ID.
var ErrUnknownKey = errors.New("encrypted: unknown key")

// Codec is the store.Outcome.Codec of an encrypted outcome in a store. No codec of
// semel.Options.Codecs may have this name.
const Codec = "semel/encrypted"

// Cipher encrypts results and decrypts them. A nil Cipher changes nothing. Safe for
// concurrent use; do not change its fields after the first use.
type Cipher struct {
	// Keys must not be nil.
	Keys Keys
	// RequireEncrypted refuses results that are not encrypted, with an error that wraps
	// store.ErrCorrupt. By default they are read, because they may be from the time
	// before encryption was turned on.
	RequireEncrypted bool
}

// place is where a ciphertext belongs. It is the additional data of the encryption, so
// that a ciphertext is refused in any other place.
type place struct {
	kind byte
	key  store.Key
	name string // tells places of one kind and key apart
}

const (
	outcomePlace byte = 1 + iota // name: the owner of the claim, and the state
	stepPlace                    // name: the step's
	textPlace                    // the text of an error
)

// outcomePlaceOf is the place of a record's outcome. The owner is new for each claim, so that
// an outcome of an earlier claim of the key is refused.
func outcomePlaceOf(k store.Key, owner store.Owner, state store.State) place {
	return place{outcomePlace, k, string(owner[:]) + string([]byte{byte(state)})}
}

// additionalData encodes the place and the header of a ciphertext.
func (p place) additionalData(header []byte) []byte {
	b := append(make([]byte, 0, 128), p.kind)
	for _, field := range [...]string{string(header), p.key.Operation, p.key.Tenant, p.key.Value, p.name} {
		b = append(binary.AppendUvarint(b, uint64(len(field))), field...)
	}
	return b
}

const (
	ciphertextFormat = 1 // the first byte of a ciphertext; the length of the key's ID and the ID follow
	keyBytes         = 32
	maxID            = 255
)

// current returns the key that encrypts the results of a tenant, and its ID.
func (c *Cipher) current(ctx context.Context, tenant string) (id string, key []byte, err error) {
	if keys, ok := c.Keys.(TenantKeys); ok {
		id, key, err = keys.TenantCurrent(ctx, tenant)
	} else {
		id, key, err = c.Keys.Current(ctx)
	}
	if err == nil && (id == "" || len(id) > maxID) {
		err = fmt.Errorf("its ID has %d bytes; it must have 1 to %d", len(id), maxID)
	}
	if err != nil { // results under keys in memory can still be read
		return "", nil, store.WithExtent(fmt.Errorf("encrypted: there is no key to encrypt with: %w", err), store.ExtentPart)
	}
	return id, key, nil
}

// seal encrypts a text for a place.
func (c *Cipher) seal(ctx context.Context, p place, plain []byte) ([]byte, error) {
	id, key, err := c.current(ctx, p.key.Tenant)
	if err != nil {
		return nil, err
	}
	aead, err := newAEAD(id, key)
	if err != nil {
		return nil, err
	}
	b := make([]byte, 0, 2+len(id)+len(plain)+aead.Overhead())
	b = append(append(b, ciphertextFormat, byte(len(id))), id...)
	return aead.Seal(b, nil, plain, p.additionalData(b)), nil
}

// open decrypts the ciphertext of a place.
func (c *Cipher) open(ctx context.Context, p place, b []byte) ([]byte, error) {
	if len(b) < 2 || b[0] != ciphertextFormat || len(b) < 2+int(b[1]) {
		return nil, refused(p, "its %d bytes are no ciphertext of this version; a newer one may have written it", len(b))
	}
	header := b[:2+int(b[1])]
	id := string(header[2:])
	key, err := c.Keys.Key(ctx, id)
	switch {
	case errors.Is(err, ErrUnknownKey):
		return nil, refused(p, "%w", err)
	case err != nil:
		return nil, store.WithExtent(fmt.Errorf("encrypted: the key %q, with which the record of key %s is encrypted, cannot be had: %w", id, p.key.Short(), err), store.ExtentPart)
	}
	aead, err := newAEAD(id, key)
	if err != nil {
		return nil, refused(p, "%w", err)
	}
	plain, err := aead.Open(nil, nil, b[len(header):], p.additionalData(header))
	if err != nil {
		return nil, refused(p, "it was changed, or moved here from another record, or it was encrypted with another key that also had the ID %q", id)
	}
	return plain, nil
}

func newAEAD(id string, key []byte) (cipher.AEAD, error) {
	if len(key) != keyBytes {
		return nil, fmt.Errorf("encrypted: the key %q has %d bytes; it must have %d", id, len(key), keyBytes)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// refused is the error of a record that counts as existing, and cannot be decrypted.
func refused(p place, why string, args ...any) error {
	what := "the result"
	switch p.kind {
	case stepPlace:
		what = fmt.Sprintf("the step %q", p.name)
	case textPlace:
		what = "the error text"
	}
	return fmt.Errorf("%w: %s of key %s: %w", store.ErrCorrupt, what, p.key.Short(), fmt.Errorf(why, args...))
}
