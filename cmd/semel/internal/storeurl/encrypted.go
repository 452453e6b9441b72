package storeurl

import (
	"log/slog"
	"strings"

	"github.com/semel-go/semel/cmd/semel/internal/input"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/encrypted"
)

// Encrypted is the store with records that are encrypted with the keys of a file. where
// names the option for the messages of errors. If require is set, results in clear text
// are refused. log gets a line if the file has changed, and an error if it cannot be used. An empty path
// is no file: the store is returned as it is.
func (u URL) Encrypted(path, where string, require bool, log *slog.Logger) (URL, error) {
	if path == "" {
		return u, nil
	}
	keys, err := encrypted.ReadKeyFile(path, func(err error) {
		log.Error("the encryption keys have changed, but cannot be used", "error", err)
	})
	if err != nil {
		return u, &input.Error{Field: where, Want: strings.TrimPrefix(err.Error(), "encrypted: ")}
	}
	keys.OnReread(func(ids []string) {
		log.Info("read the encryption keys again", "keys", len(ids), "encrypts", ids[0], "decrypt", strings.Join(ids, ","))
	})
	u.cipher = &encrypted.Cipher{Keys: keys, RequireEncrypted: require}
	return u, nil
}

// encrypt encrypts the records of an open store.
func (u URL) encrypt(h Handle, err error) (Handle, error) {
	if err != nil || u.cipher == nil {
		return h, err
	}
	return encryptedHandle{u.cipher.Store(h), h}, nil
}

// encryptedHandle is an open store whose records are encrypted.
type encryptedHandle struct {
	store.Store
	inner Handle
}

// Unwrap lets store.As find the optional interfaces.
func (h encryptedHandle) Unwrap() store.Store { return h.Store }

// Close closes the store.
func (h encryptedHandle) Close() error { return h.inner.Close() }
