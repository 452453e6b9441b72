package semelhttp

import (
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"time"
)

// TransportOptions configures a Transport. Nil and zero fields mean the
// defaults.
type TransportOptions struct {
	// Methods get a key. Nil: POST and PATCH. Requests that bring a key are
	// treated alike, whatever their method.
	Methods []string
	// KeyHeader is where the key goes: Idempotency-Key by default.
	KeyHeader string
	// Bare sends keys as they are. By default they are quoted strings, as
	// draft-07 has them. A header that the request brings stays as it is.
	Bare bool
	// NewKey makes a key for a request that has none. Nil: a UUID of version 7,
	// which tells when it was made, and is random otherwise.
	NewKey func() string

	// MaxAttempts is how often a request is sent: 4 by default.
	MaxAttempts int
	// Backoff is the pause before the second attempt, doubled for each one
	// after it, up to MaxBackoff; each is varied by half. 100 ms and 10 s by
	// default.
	Backoff, MaxBackoff time.Duration
	// MaxRetryAfter is the longest Retry-After that is waited for: 1 minute
	// by default. An answer that asks for more is returned.
	MaxRetryAfter time.Duration
	// MaxBody is the largest body, in bytes, that is copied so that it can be
	// sent again: 1 MiB by default. A request with a larger one is an error, and
	// not sent. Bodies with a GetBody, as those made by http.NewRequest of bytes
	// and strings have, need no copy and have no limit.
	MaxBody int64
}

func (o *TransportOptions) withDefaults() TransportOptions {
	var d TransportOptions
	if o != nil {
		d = *o
	}
	if len(d.Methods) == 0 {
		d.Methods = []string{http.MethodPost, http.MethodPatch}
	}
	if d.KeyHeader == "" {
		d.KeyHeader = defaultKeyHeader
	}
	d.KeyHeader = textproto.CanonicalMIMEHeaderKey(d.KeyHeader)
	if d.NewKey == nil {
		d.NewKey = newUUID
	}
	if d.MaxAttempts == 0 {
		d.MaxAttempts = 4
	}
	if d.Backoff == 0 {
		d.Backoff = 100 * time.Millisecond
	}
	if d.MaxBackoff == 0 {
		d.MaxBackoff = max(10*time.Second, d.Backoff)
	}
	if d.MaxRetryAfter == 0 {
		d.MaxRetryAfter = time.Minute
	}
	if d.MaxBody == 0 {
		d.MaxBody = 1 << 20
	}
	return d
}

// validate reports all that is wrong, of options with their defaults set.
func (o *TransportOptions) validate() error {
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("semelhttp: "+format, args...))
	}
	for i, m := range o.Methods {
		if !isToken(m) {
			bad("Methods[%d]: %q is not a method", i, m)
		}
	}
	if !isToken(o.KeyHeader) {
		bad("KeyHeader: %q is not a header's name", o.KeyHeader)
	}
	if o.MaxAttempts < 0 {
		bad("MaxAttempts: is %d; it must not be negative", o.MaxAttempts)
	}
	if o.Backoff < 0 {
		bad("Backoff: is %v; it must not be negative", o.Backoff)
	}
	if o.MaxBackoff < o.Backoff {
		bad("MaxBackoff: is %v; it must not be less than Backoff, %v", o.MaxBackoff, o.Backoff)
	}
	if o.MaxRetryAfter < 0 {
		bad("MaxRetryAfter: is %v; it must not be negative", o.MaxRetryAfter)
	}
	if o.MaxBody < 0 {
		bad("MaxBody: is %d; it must not be negative", o.MaxBody)
	}
	return errors.Join(errs...)
}
