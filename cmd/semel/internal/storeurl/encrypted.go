package storeurl

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/input"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/encrypted"
)

// Encrypted is the store with records that are encrypted with the keys of a file. where
// names the option for the messages of errors. If require is set, results in clear text
// are refused. log gets a line if the file has changed, a warning if keys have left it, and
// an error if it cannot be used. An empty path is no file: the store is returned as it is.
func (u URL) Encrypted(path, where string, require bool, log *slog.Logger) (URL, error) {
	if path == "" {
		return u, nil
	}
	keys, err := encrypted.ReadKeyFile(path, func(err error) {
		log.Error("the encryption keys have changed, but cannot be used", "error", err)
	})
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return u, &input.Error{Field: where, Value: path, Want: input.Unreadable(err,
			input.CopyOr("file", "encrypted records", fmt.Sprintf(`make it with: (umask 077; echo "$(date +%%F-%%H%%M%%S) $(openssl rand -base64 32)" > %s)`, path)))}
	}
	if err != nil {
		return u, &input.Error{Field: where, Want: strings.TrimPrefix(err.Error(), "encrypted: ")}
	}
	keys.OnReread(func(ids, dropped []string) {
		log.Info("read the encryption keys again", "keys", len(ids), "encrypts", ids[0], "decrypt", strings.Join(ids, ","))
		if len(dropped) > 0 {
			log.Warn("encryption keys have left the file: results that they have encrypted cannot be read any more; unless these have expired, put the lines back, below the first one", "dropped", strings.Join(dropped, ","), "file", path)
		}
		input.WarnMode(log, path)
	})
	u.cipher = &encrypted.Cipher{Keys: keys, RequireEncrypted: require}
	return u, nil
}

// LogEncryption logs at the start with which key results are encrypted, if they are.
func (u URL) LogEncryption(ctx context.Context, log *slog.Logger) {
	if u.cipher == nil {
		return
	}
	if id, _, err := u.cipher.Keys.Current(ctx); err == nil {
		log.Info("results are encrypted", "encrypts", id)
	}
}

// encrypt encrypts the records of an open store.
func (u URL) encrypt(h Handle, err error) (Handle, error) {
	if err != nil || u.cipher == nil {
		return h, err
	}
	ctx, stop := context.WithCancel(context.Background())
	go look(ctx, u.cipher.Keys)
	return encryptedHandle{u.cipher.Store(h), h, stop}, nil
}

// lookEvery is the longest time after which a change of the file of keys is noticed.
const lookEvery = 5 * time.Second

// look uses the keys now and then, until ctx ends, because they look at their file only
// when they are used. So a process without requests logs a change, too.
func look(ctx context.Context, keys encrypted.Keys) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			_, _, _ = keys.Current(ctx)
		}
	}
}

// encryptedHandle is an open store whose records are encrypted.
type encryptedHandle struct {
	store.Store
	inner Handle
	stop  context.CancelFunc // of look
}

// Unwrap lets store.As find the optional interfaces.
func (h encryptedHandle) Unwrap() store.Store { return h.Store }

// Close closes the store.
func (h encryptedHandle) Close() error {
	h.stop()
	return h.inner.Close()
}
