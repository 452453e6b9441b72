package semelhttp

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"time"

	"github.com/semel-go/semel/internal/httpname"
)

// TransportOptions configures a Transport. Nil and zero fields mean the
// defaults.
type TransportOptions struct {
	// Methods are the methods whose requests get a key. Nil: POST and PATCH. A
	// request that has a key already is repeated too, whatever its method. The key is
	// that of WithKey, or else a UUID of version 7, which contains the time and is
	// random otherwise.
	Methods []string
	// KeyHeader is the header for the key: Idempotency-Key by default.
	KeyHeader string
	// Bare sends keys without quotes. By default they are quoted strings, as in
	// draft-07. A header that the request has already is not changed.
	Bare bool

	// MaxAttempts is how often a request is sent at most: 4 by default.
	MaxAttempts int
	// Backoff is the pause before the second attempt. It doubles for each further
	// attempt, up to MaxBackoff, and each pause varies by half at random. 100 ms and
	// 10 s by default.
	Backoff, MaxBackoff time.Duration
	// MaxRetryAfter is the longest Retry-After that the Transport waits for, and how
	// long it asks again while the first request runs: 1 minute by default. An answer
	// with a longer one is returned to the caller.
	MaxRetryAfter time.Duration
	// MaxBody is the largest body, in bytes, that is copied for a repeat: 1 MiB by
	// default. A request with a larger one is not sent, and is an error. A request
	// with GetBody, such as http.NewRequest makes from bytes and strings, needs no
	// copy and has no limit.
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
	d.KeyHeader = cmp.Or(d.KeyHeader, defaultKeyHeader)
	d.KeyHeader = textproto.CanonicalMIMEHeaderKey(d.KeyHeader)
	d.MaxAttempts = cmp.Or(d.MaxAttempts, 4)
	d.Backoff = cmp.Or(d.Backoff, 100*time.Millisecond)
	d.MaxBackoff = cmp.Or(d.MaxBackoff, max(10*time.Second, d.Backoff))
	d.MaxRetryAfter = cmp.Or(d.MaxRetryAfter, time.Minute)
	d.MaxBody = cmp.Or(d.MaxBody, 1<<20)
	return d
}

// validate returns an error that names every wrong option. The defaults are set.
func (o *TransportOptions) validate() error {
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("semelhttp: "+format, args...))
	}
	for i, m := range o.Methods {
		if !httpname.IsToken(m) {
			bad("Methods[%d]: %q is not a method", i, m)
		}
	}
	if !httpname.IsToken(o.KeyHeader) {
		bad("KeyHeader: %q is not a header name", o.KeyHeader)
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
