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
	"time"

	"github.com/semel-go/semel/internal/httpname"
)

// Replayed reports whether a response is the answer to an earlier request with the
// same key. It knows the headers that servers use for that. False for nil.
func Replayed(r *http.Response) bool {
	if r == nil {
		return false
	}
	for _, name := range [...]string{replayedHeader, "Idempotency-Replayed", "X-Idempotent-Replayed"} {
		if v := r.Header.Get(name); v == "true" || v == "?1" {
			return true
		}
	}
	return false
}

// retryable reports whether the same request, sent again, may get a better answer.
// After is the pause that the server asks for.
func retryable(ctx context.Context, resp *http.Response, err error) (after time.Duration, retry bool) {
	if ctx.Err() != nil {
		return 0, false
	}
	if err != nil {
		_, cert := errors.AsType[*tls.CertificateVerificationError](err)
		return 0, !cert && Judge(Answer{}).Again
	}
	if Replayed(resp) || resp.Header.Get(outcomeHeader) == outcomeUnknown {
		return 0, false // a repeat gets the same answer
	}
	after, _ = httpname.ParseRetryAfter(resp.Header.Get("Retry-After"), time.Now())
	again := Judge(Answer{Status: resp.StatusCode, Header: resp.Header}).Again
	return after, again || resp.StatusCode == http.StatusConflict && problemCode(resp) == CodeInProgress
}

// isBusy reports whether the server says that the first request with the key is still
// running.
func isBusy(resp *http.Response) bool {
	return resp != nil && (resp.StatusCode == http.StatusConflict || resp.StatusCode == http.StatusTooManyRequests) && problemCode(resp) == CodeInProgress
}

// problemCode reads the code of a problem document. Afterwards the body can be read
// from its start. A document that does not come in time has no code.
func problemCode(resp *http.Response) string {
	const maxDocument = 16 << 10 // bytes
	const maxTime = 2 * time.Second
	if t, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type")); err != nil || t != "application/problem+json" {
		return ""
	}
	b := &problemBody{ReadCloser: resp.Body, arrived: make(chan struct{})}
	resp.Body = b
	go b.readHead(maxDocument)
	late := time.NewTimer(maxTime)
	defer late.Stop()
	select {
	case <-late.C:
		return ""
	case <-b.arrived:
	}
	var p struct{ Code string }
	if json.Unmarshal(b.head, &p) != nil {
		return ""
	}
	return p.Code
}

// problemBody is a body whose head is read in advance. Close ends that read, too.
type problemBody struct {
	io.ReadCloser
	arrived chan struct{} // closed after the head was read
	head    []byte
	reader  io.Reader // of the head and the rest; nil: nobody has read yet
}

func (b *problemBody) readHead(limit int64) {
	b.head, _ = io.ReadAll(io.LimitReader(b.ReadCloser, limit)) // the caller gets the same error from the rest
	close(b.arrived)
}

// Read implements io.Reader.
func (b *problemBody) Read(p []byte) (int, error) {
	if b.reader == nil {
		<-b.arrived
		b.reader = io.MultiReader(bytes.NewReader(b.head), b.ReadCloser)
	}
	return b.reader.Read(p)
}

// pause is the time to wait after the n-th attempt (n ≥ 1): the server's Retry-After
// and a random backoff, so that clients with the same Retry-After do not come back
// at the same time.
func (o *TransportOptions) pause(n int, after time.Duration) time.Duration {
	d := o.MaxBackoff
	if shift := n - 1; shift < 32 && o.Backoff<<shift>>shift == o.Backoff {
		d = min(d, o.Backoff<<shift)
	}
	return after + d/2 + rand.N(d+1)
}
