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

// ErrNoKey means that a handler which Semel runs has made a request without a key.
// A random key would differ in the handler's next attempt, and the request could
// take effect twice. Give the request a derived key:
// WithKey(ctx, x.Derive("name of the step")).
var ErrNoKey = errors.New("semelhttp: a request made by a handler needs a key; use WithKey(ctx, x.Derive(step))")

type keyKey struct{}

// WithKey gives a key to the request that is made with the returned context; a
// Transport sends it. Use it with clients that set no headers, and for one request
// only, because a server takes two requests with one key for one operation.
func WithKey(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, keyKey{}, key)
}

// keyOf returns the value for the request's key header. HasKey says that the request
// has the header already.
func (t *Transport) keyOf(r *http.Request) (value string, hasKey bool, err error) {
	if values := r.Header[t.opt.KeyHeader]; len(values) > 0 {
		return values[0], true, nil
	}
	key, ok := r.Context().Value(keyKey{}).(string)
	if !ok {
		if _, insideHandler := semel.FromContext(r.Context()); insideHandler {
			return "", false, ErrNoKey
		}
		key = t.opt.NewKey()
	}
	if err := checkKey(key); err != nil {
		return "", false, fmt.Errorf("semelhttp: the request's idempotency key: %w", err)
	}
	if t.opt.Bare {
		return key, false, nil
	}
	return quoteKey(key), false, nil
}

// newUUID is a UUID of version 7 (RFC 9562): the time in milliseconds and 74 random
// bits. Such keys are ordered, so a server's index of them grows at its end.
func newUUID() string {
	var u [16]byte
	_, _ = rand.Read(u[6:])                                                  // it never fails; crypto/rand ends the process instead
	ms := binary.BigEndian.AppendUint64(nil, uint64(time.Now().UnixMilli())) //nolint:gosec // after 1970
	copy(u[:6], ms[2:])
	u[6], u[8] = u[6]&0x0f|0x70, u[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}
