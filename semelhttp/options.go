package semelhttp

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel"
)

// Options configures Middleware and Accept. Nil and zero fields mean the
// defaults.
type Options struct {
	// Operation names the operation of a request. Nil: Route. Accept and
	// Middleware must get the same name for the same work.
	Operation func(r *http.Request) string
	// Methods are protected; others pass through. Nil: POST and PATCH.
	// Accept ignores it.
	Methods []string
	// KeyHeaders are names under which the key may come, one of them in a
	// request. Nil: Idempotency-Key.
	KeyHeaders []string
	// Strict refuses bare keys: only quoted strings, as draft-07 has them.
	Strict bool
	// Optional lets a request without a key pass unprotected, so that
	// semel.FromContext is false. By default it is refused.
	Optional bool
	// KeyFrom makes the key of a request that brings none, such as from the
	// fields of its body that name the operation. Give it a prefix that
	// clients do not use, for their own keys belong to the same tenant. Empty:
	// there is no key. An error is the client's fault: 400.
	KeyFrom func(r *http.Request, body io.Reader) (string, error)
	// Payload is what requests with one key must have in common. Nil: the
	// method, the path, the raw query, the media type and all bytes of the
	// body. So a multipart form must be sent again with the same boundary;
	// name what counts here if clients cannot. An error is the client's: 400.
	Payload func(r *http.Request, body io.Reader) (semel.Payload, error)

	// MaxBody is the largest request body, in bytes: 10 MiB by default. A
	// larger one is refused before anything is claimed.
	MaxBody int64
	// TempDir is where bodies over 64 KiB are put. Empty: os.TempDir.
	TempDir string
	// MaxResponse is how much of an answer is buffered, in bytes: 1 MiB by
	// default. A larger one is streamed and not kept. Above the Guard's
	// MaxOutcome it only costs memory.
	MaxResponse int
	// HoldFlush lets a flush do nothing, so that an answer within MaxResponse
	// is kept although its handler flushes: for reverse proxies, which do so
	// with every answer whose length they do not know.
	HoldFlush bool

	// Keep reports whether the answer with this status is kept and replayed.
	// Of those not kept a 4xx says that nothing happened, any other that it
	// is not known. In a transaction the handler's writes are committed with
	// an answer that is kept, and undone with any other. Nil: 2xx, 3xx, and
	// 4xx but 401, 403, 408, 425 and 429.
	Keep func(status int) bool
	// NoStore keeps that the request was answered, but never the body: for
	// answers that hold secrets. The headers that say nothing of the body, such
	// as Location, are kept.
	NoStore bool
	// ReplayHeaders are kept and replayed. Nil: Content-Type,
	// Content-Encoding, Content-Language, Content-Disposition, Content-Range,
	// Location, Link, ETag, Last-Modified, Retry-After and Allow. Empty: none.
	// Cookies, credentials and challenges, CORS, Date, Age, framing and
	// hop-by-hop headers never are, even if listed.
	ReplayHeaders []string
	// ReplayedHeader marks a replay: "Idempotent-Replayed" by default.
	ReplayedHeader string
	// CacheReplays leaves "Cache-Control: no-store" off replays.
	CacheReplays bool
	// Authorize is asked before a kept answer is shown, for rights may have
	// been lost since. An error is a 403, of which nothing is told. Nil: who
	// has the key and is its tenant may see the answer.
	Authorize func(r *http.Request) error

	// Wait is how long a duplicate waits for the first request's answer; the
	// request can ask for less by "Prefer: wait=n". Zero: not at all.
	Wait time.Duration
	// BusyStatus is 409 (the default) or 429: for a request in progress.
	BusyStatus int
	// Detach lets a handler go on when its client has gone. Its context then
	// ends only when its lease is lost, and has no deadline of the request's.
	// Without it who hangs up cancels the handler, and where that leaves doubt it
	// runs again, or under Park the key is parked: set it for what must not stop
	// half-way.
	Detach bool

	// DocsURL is where the API's use of keys is documented. Problems then
	// link to it. Empty: their types point to this package's documentation.
	DocsURL string
	// Refuse writes refusals in place of the problem document; Retry-After is
	// set already. It must not send Problem.Err.
	Refuse func(w http.ResponseWriter, r *http.Request, p Problem)
}

const (
	defaultKeyHeader      = "Idempotency-Key"
	defaultReplayedHeader = "Idempotent-Replayed"
	outcomeHeader         = "Semel-Outcome"
	defaultDocs           = "https://pkg.go.dev/github.com/semel-go/semel/semelhttp"
)

// config is Options with the defaults set and names canonical.
type config struct {
	Options
	replayable map[string]bool
	docs       string
}

func (o *Options) config() (*config, error) {
	c := &config{}
	if o != nil {
		c.Options = *o
	}
	if c.Operation == nil {
		c.Operation = Route
	}
	if len(c.Methods) == 0 {
		c.Methods = []string{http.MethodPost, http.MethodPatch}
	}
	if len(c.KeyHeaders) == 0 {
		c.KeyHeaders = []string{defaultKeyHeader}
	}
	c.KeyHeaders = canonical(c.KeyHeaders)
	if c.ReplayHeaders == nil {
		c.ReplayHeaders = defaultReplayHeaders
	}
	c.replayable = allowList(c.ReplayHeaders)
	if c.MaxBody == 0 {
		c.MaxBody = 10 << 20
	}
	if c.MaxResponse == 0 {
		c.MaxResponse = 1 << 20
	}
	if c.Keep == nil {
		c.Keep = keepDefault
	}
	if c.ReplayedHeader == "" {
		c.ReplayedHeader = defaultReplayedHeader
	}
	c.ReplayedHeader = textproto.CanonicalMIMEHeaderKey(c.ReplayedHeader)
	if c.BusyStatus == 0 {
		c.BusyStatus = http.StatusConflict
	}
	if c.docs = c.DocsURL; c.docs == "" {
		c.docs = defaultDocs
	}
	return c, c.validate()
}

// validate reports all that is wrong.
func (c *config) validate() error {
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("semelhttp: "+format, args...))
	}
	for i, m := range c.Methods {
		if !isToken(m) {
			bad("Methods[%d]: %q is not a method", i, m)
		}
	}
	for i, h := range c.KeyHeaders {
		if !isToken(h) {
			bad("KeyHeaders[%d]: %q is not a header's name", i, h)
		}
		if slices.Index(c.KeyHeaders, h) != i {
			bad("KeyHeaders[%d]: %q is listed twice", i, h)
		}
	}
	for i, h := range c.ReplayHeaders {
		if !isToken(h) {
			bad("ReplayHeaders[%d]: %q is not a header's name", i, h)
		}
	}
	if !isToken(c.ReplayedHeader) {
		bad("ReplayedHeader: %q is not a header's name", c.ReplayedHeader)
	}
	if c.MaxBody < 0 {
		bad("MaxBody: is %d; it must not be negative", c.MaxBody)
	}
	if c.MaxResponse < 0 {
		bad("MaxResponse: is %d; it must not be negative", c.MaxResponse)
	}
	if c.Wait < 0 {
		bad("Wait: is %v; it must not be negative", c.Wait)
	}
	if c.BusyStatus != http.StatusConflict && c.BusyStatus != http.StatusTooManyRequests {
		bad("BusyStatus: is %d; it must be 409 or 429", c.BusyStatus)
	}
	if _, err := url.Parse(c.docs); err != nil || hasControl(c.docs) || strings.ContainsAny(c.docs, "<>") {
		bad("DocsURL: %q is not a URL", c.docs)
	}
	return errors.Join(errs...)
}

func canonical(names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = textproto.CanonicalMIMEHeaderKey(n)
	}
	return out
}
