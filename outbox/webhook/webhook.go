package webhook

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/semel-go/semel/internal/httpname"
	"github.com/semel-go/semel/outbox"
)

// Endpoint is where the messages of a receiver go.
type Endpoint struct {
	URL string
	// Secret signs the requests: 24 to 64 random bytes that only the receiver knows. Nil:
	// they are not signed.
	Secret []byte
}

// Options configures a sink. Nil and zero fields mean the defaults.
type Options struct {
	// Client sends the requests. If receivers choose their URLs, give it a transport that
	// does not reach your own network. Nil: a client that follows no redirects.
	Client *http.Client
	// Timeout limits each request: 10 s by default.
	Timeout time.Duration
	// Parallel is how many requests one call of Publish sends at once: 64 by default.
	Parallel int
	// Now is the clock for the timestamps. Nil: time.Now. For tests.
	Now func() time.Time
}

type sink struct {
	endpoint func(ctx context.Context, m *outbox.Message) (Endpoint, error)
	options  Options
}

// New makes a sink. Endpoint returns the receiver of a message; an error of it delays the
// message, unless it is marked by outbox.Poison. Nil options mean the defaults.
func New(endpoint func(ctx context.Context, m *outbox.Message) (Endpoint, error), o *Options) (outbox.Sink, error) {
	if endpoint == nil {
		return nil, errors.New("webhook: New: the endpoint function is nil")
	}
	var d Options
	if o != nil {
		d = *o
	}
	d.Timeout, d.Parallel = cmp.Or(d.Timeout, 10*time.Second), cmp.Or(d.Parallel, 64)
	if d.Timeout < 0 || d.Parallel < 0 {
		return nil, fmt.Errorf("webhook: New: Timeout %v and Parallel %d must not be negative", d.Timeout, d.Parallel)
	}
	if d.Client == nil {
		d.Client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	if d.Now == nil {
		d.Now = time.Now
	}
	return &sink{endpoint, d}, nil
}

// Publish implements outbox.Sink.
func (s *sink) Publish(ctx context.Context, messages []outbox.Message, answer func(i int, err error)) {
	outbox.EachInTurn(ctx, messages, outbox.Limits{Parallel: s.options.Parallel, Time: s.options.Timeout, Hint: "see whether the receiver answers"}, answer, s.send)
}

// largestAnswer is how much of a response is read, so that its connection is used again.
const largestAnswer = 64 << 10

func (s *sink) send(ctx context.Context, m *outbox.Message) error {
	to, err := s.endpoint(ctx, m)
	if err = cmp.Or(err, ctx.Err()); err != nil { // the look-up may have outlasted the lease
		return fmt.Errorf("webhook: endpoint of topic %q: %w", m.Topic, err)
	}
	req, err := s.request(ctx, m, to)
	if err != nil {
		return outbox.Poison(fmt.Errorf("webhook: %w", err))
	}
	shown := req.URL.Scheme + "://" + req.URL.Host // the rest can be a secret
	res, err := s.options.Client.Do(req)
	if err != nil {
		return fmt.Errorf("webhook: POST to %s: %w", shown, withoutURL(err))
	}
	_, _ = io.CopyN(io.Discard, res.Body, largestAnswer) // the status has said all
	_ = res.Body.Close()
	if res.StatusCode >= 200 && res.StatusCode < 300 {
		return nil
	}
	err = fmt.Errorf("webhook: POST to %s: status %d", shown, res.StatusCode)
	switch {
	case isFinal(res.StatusCode):
		return outbox.Poison(err)
	case res.StatusCode == http.StatusTooManyRequests || res.StatusCode == http.StatusServiceUnavailable:
		pause, _ := httpname.ParseRetryAfter(res.Header.Get("Retry-After"), s.options.Now())
		return outbox.RetryAfter(err, pause)
	}
	return err
}

// isFinal reports whether a status says that the same request will always be refused.
func isFinal(status int) bool {
	switch status {
	case http.StatusBadRequest, http.StatusMethodNotAllowed, http.StatusGone, http.StatusRequestEntityTooLarge, http.StatusRequestURITooLong,
		http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity, http.StatusRequestHeaderFieldsTooLarge, http.StatusNotImplemented:
		return true
	}
	return false
}

// ownHeaders are set by the sink or by the client, and not by messages.
var ownHeaders = map[string]bool{
	"Idempotency-Key": true, idHeader: true, timestampHeader: true, signatureHeader: true,
	"Host": true, "Content-Length": true, "Transfer-Encoding": true, "Connection": true, "Trailer": true, "Upgrade": true,
}

// request makes the request. Its errors are about the message or the URL.
func (s *sink) request(ctx context.Context, m *outbox.Message, to Endpoint) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to.URL, bytes.NewReader(m.Body))
	if err != nil {
		return nil, errors.New("the endpoint is no URL") // the cause can quote a part of a password
	}
	if req.URL.Scheme != "http" && req.URL.Scheme != "https" || req.URL.Host == "" {
		return nil, fmt.Errorf("the endpoint is no http or https URL: its scheme is %q and its host %q", req.URL.Scheme, req.URL.Host)
	}
	for _, h := range m.Headers {
		name := textproto.CanonicalMIMEHeaderKey(h.Name)
		if !isToken(h.Name) {
			return nil, fmt.Errorf("header %q: HTTP has no such name", h.Name)
		}
		if strings.ContainsFunc(h.Value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
			return nil, fmt.Errorf("header %q: the value has a control character", h.Name)
		}
		if !ownHeaders[name] {
			req.Header.Add(name, h.Value)
		}
	}
	id := headerID(m.ID)
	req.Header.Set("Idempotency-Key", quote(id))
	timestamp := strconv.FormatInt(s.options.Now().Unix(), 10)
	req.Header.Set(idHeader, id)
	req.Header.Set(timestampHeader, timestamp)
	if len(to.Secret) > 0 {
		req.Header.Set(signatureHeader, sign(to.Secret, id, timestamp, m.Body))
	}
	return req, nil
}

// withoutURL is an error of package net/http without the URL, which package net/url puts
// into its text.
func withoutURL(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// headerID is an ID for headers: the ID, or its hash if it has other characters than
// printable ASCII, which receivers read in different ways, or a space at an end, which HTTP
// takes away.
func headerID(id string) string {
	if !strings.ContainsFunc(id, func(r rune) bool { return r < ' ' || r > '~' }) && strings.TrimSpace(id) == id {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "sha256-" + hex.EncodeToString(sum[:])
}

// quote is a headerID as a string of RFC 9651.
func quote(id string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(id) + `"`
}

// isToken reports whether HTTP takes a name of a header.
func isToken(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
	})
}
