package semelhttp

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/semel-go/semel"
)

// ErrNoKey is a request made by a Semel handler without a key of its own. A
// random one would be another one in the handler's next attempt, and the
// request would take effect twice: give it WithKey(ctx, x.Derive("a name for
// this step")).
var ErrNoKey = errors.New("semelhttp: a request made by a handler needs a key; use WithKey(ctx, x.Derive(step))")

type keyKey struct{}

// WithKey gives the one request that is made with the context its key, which a
// Transport sends. Use it for clients that take no header. Two requests with
// one key are one operation to the server.
func WithKey(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, keyKey{}, key)
}

// keyOf is the value of the key header that the request is to have, and
// whether it has it already.
func (t *Transport) keyOf(r *http.Request) (value string, has bool, err error) {
	if values := r.Header[t.opt.KeyHeader]; len(values) > 0 {
		return values[0], true, nil
	}
	key, ok := r.Context().Value(keyKey{}).(string)
	if !ok {
		if _, inside := semel.FromContext(r.Context()); inside {
			return "", false, ErrNoKey
		}
		key = t.opt.NewKey()
	}
	if err := checkKey(key); err != nil {
		return "", false, fmt.Errorf("semelhttp: the key of a request: %w", err)
	}
	if t.opt.Bare {
		return key, false, nil
	}
	return quoteKey(key), false, nil
}

// newUUID is a UUID of version 7 (RFC 9562): the time in milliseconds, and 74
// random bits. A server's index of such keys grows at its end.
func newUUID() string {
	var u [16]byte
	_, _ = rand.Read(u[6:])                                                  // never fails: crypto/rand ends the process instead
	ms := binary.BigEndian.AppendUint64(nil, uint64(time.Now().UnixMilli())) //nolint:gosec // after 1970
	copy(u[:6], ms[2:])
	u[6], u[8] = u[6]&0x0f|0x70, u[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}
