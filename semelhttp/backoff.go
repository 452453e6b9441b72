package semelhttp

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"mime"
	"net/http"
	"strconv"
	"time"
)

// Replayed reports whether a response is the answer to an earlier request with
// the same key, by the markers that are in use. Nil is not.
func Replayed(r *http.Response) bool {
	if r == nil {
		return false
	}
	for _, name := range [...]string{defaultReplayedHeader, "Idempotency-Replayed", "X-Idempotent-Replayed"} {
		if v := r.Header.Get(name); v == "true" || v == "?1" {
			return true
		}
	}
	return false
}

// again reports whether sending the same request again may get a better
// answer, and what pause the server asks for.
func again(ctx context.Context, resp *http.Response, err error) (after time.Duration, retry bool) {
	if ctx.Err() != nil {
		return 0, false
	}
	if err != nil {
		_, cert := errors.AsType[*tls.CertificateVerificationError](err)
		return 0, !cert
	}
	if Replayed(resp) || resp.Header.Get(outcomeHeader) == outcomeUnknown {
		return 0, false // it would be the same again
	}
	after, asked := parseRetryAfter(resp.Header.Get("Retry-After"))
	switch resp.StatusCode {
	case http.StatusConflict:
		return after, asked || problemCode(resp) == CodeInProgress
	case http.StatusTooEarly, http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return after, true
	}
	return 0, false
}

// parseRetryAfter reads seconds or a date.
func parseRetryAfter(v string) (time.Duration, bool) {
	if v == "" {
		return 0, false
	}
	if n, err := strconv.ParseUint(v, 10, 31); err == nil || errors.Is(err, strconv.ErrRange) { // then n is the largest
		return time.Duration(n) * time.Second, true
	}
	t, err := http.ParseTime(v)
	if err != nil {
		return 0, false
	}
	return max(0, time.Until(t)), true
}

// problemCode reads the code of a problem document, and leaves the body as if
// it had not been read.
func problemCode(resp *http.Response) string {
	const most = 16 << 10
	if t, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type")); err != nil || t != "application/problem+json" {
		return ""
	}
	head, _ := io.ReadAll(io.LimitReader(resp.Body, most)) // what fails now fails for the caller, too
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(head), resp.Body), resp.Body}
	var p struct{ Code string }
	if json.Unmarshal(head, &p) != nil {
		return ""
	}
	return p.Code
}

// pause is how long to wait after the n-th attempt (n ≥ 1): what the server
// asks for, and some more, so that those whom it told the same do not come
// back together.
func (o *TransportOptions) pause(n int, after time.Duration) time.Duration {
	d := o.MaxBackoff
	if shift := n - 1; shift < 32 && o.Backoff<<shift>>shift == o.Backoff {
		d = min(d, o.Backoff<<shift)
	}
	return after + d/2 + rand.N(d+1)
}
