package semelhttp

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/httpname"
)

// Options configures Middleware and Accept. Nil and zero fields mean the defaults.
type Options struct {
	// Operation returns the operation of a request. Nil: Route. Each of Methods is then an
	// operation of its own.
	Operation func(r *http.Request) string
	// Methods are the protected methods; other requests pass through. Capitals do not
	// count, and a header such as X-HTTP-Method-Override counts as a second method.
	// Nil: POST and PATCH. Accept ignores it.
	Methods []string
	// KeyHeaders are the names of the header with the key. A request may have one of
	// them. Nil: Idempotency-Key.
	KeyHeaders []string
	// Strict accepts quoted keys only, as in draft-07, and refuses bare ones.
	Strict bool
	// Optional lets a request without a key pass unprotected; semel.FromContext then
	// finds no execution. By default such a request is refused. With KeyFrom the tenant and
	// the body are needed before it is known whether there is a key, so that a request
	// without a tenant, or with a body over MaxBody, is refused all the same.
	Optional bool
	// KeyFrom makes the key of a request that has none, for example from the fields of
	// its body that identify the operation. Clients' own keys belong to the same tenant,
	// so give the made keys a prefix that clients do not use. An empty key means that
	// there is none. An error is the client's fault: 400. One that wraps
	// semel.ErrUnavailable is not: 503.
	KeyFrom func(r *http.Request, body io.Reader) (string, error)
	// Payload is what requests with one key must have in common. Nil: the method, the
	// path with the prefix that http.StripPrefix has cut off, the raw query, the media type,
	// the FingerprintHeaders and all bytes of the body. A multipart body is compared by its parts, because each repeat may have
	// another boundary, unless the head of a part is over 64 KiB. An error is the client's
	// fault: 400.
	Payload func(r *http.Request, body io.Reader) (semel.Payload, error)
	// FingerprintHeaders are the request headers that requests with one key must have
	// in common, because they change what a request means; "Host" stands for the host
	// name. Nil: Host, Content-Encoding, Content-Range, Range, If-Match, If-None-Match,
	// If-Modified-Since, If-Unmodified-Since, X-HTTP-Method-Override, X-HTTP-Method,
	// X-Method-Override, SOAPAction, X-Amz-Target, Depth, Destination, Overwrite and the
	// types of events: Ce-Type, Ce-Subject, Event-Type, X-Event-Type, X-Event-Name,
	// X-Event-Key, X-GitHub-Event, X-Gitlab-Event, X-Gitea-Event, X-Shopify-Topic and
	// X-WC-Webhook-Topic. Empty: none. Payload does not use them.
	FingerprintHeaders []string

	// MaxBody is the largest request body, in bytes: 10 MiB by default. A larger one
	// is refused before the key is claimed.
	MaxBody int64
	// TempDir is the directory for bodies over 64 KiB. Empty: os.TempDir.
	TempDir string
	// MaxResponse is how much of an answer is buffered, in bytes: 1 MiB by default. A
	// larger answer is streamed and not kept. A value above the Guard's MaxOutcome
	// only costs memory.
	MaxResponse int
	// HoldFlush ignores a handler's flushes, so that an answer within MaxResponse is
	// kept. Use it for reverse proxies, which flush each answer of unknown length.
	HoldFlush bool

	// Judge says what an answer is: the result, a sign that nothing happened, or
	// neither. In a transaction, the handler's writes are committed with a kept answer
	// and undone with any other. Nil: the function Judge.
	Judge func(a Answer) Verdict
	// NoStore keeps the status and nothing else, for answers that contain secrets in
	// their body or in a header such as Location.
	NoStore bool
	// ReplayHeaders are the headers that are kept and replayed. Nil: those that describe
	// the answer, and those by which a browser reads it and protects its user;
	// docs/http.md lists them. Empty: none. Cookies, credentials and challenges, Date,
	// Age, framing and hop-by-hop headers are never kept, even if listed.
	ReplayHeaders []string
	// RefusalOrigins are the origins, such as https://shop.example, whose pages may read
	// refusals; "*" stands for all origins, without credentials. Nil: none, so that a
	// page of another origin only learns that its request failed.
	RefusalOrigins []string
	// Authorize is asked before a kept answer is sent, because the client may have
	// lost its rights since, and before any refusal that tells that the key was used
	// before. An error becomes a 403 that does not contain the error's text. Nil: each client of the key's tenant may see the answer.
	Authorize func(r *http.Request) error

	// Wait is how long a duplicate waits for the first request's answer. A request can
	// ask for less with "Prefer: wait=n". Zero: it does not wait.
	Wait time.Duration
	// BusyStatus is the status for a request in progress: 409 (the default) or 429.
	BusyStatus int
	// Detach lets a handler go on after its client has left. Its context then ends
	// only when its lease is lost, and has no deadline of the request. By default a
	// client that leaves cancels the handler, which can leave doubt: set Detach for
	// work that must not stop half-way.
	Detach bool

	// DocsURL is the page that documents the use of keys in your API. Problems then
	// link to it. Empty: their types lead to docs/reference/errors.md in the repository.
	DocsURL string
	// Refuse writes a refusal instead of the problem document. Retry-After and the
	// headers for RefusalOrigins are already set. Refuse must not send Problem.Err.
	Refuse func(w http.ResponseWriter, r *http.Request, p Problem)
}

const (
	defaultKeyHeader = "Idempotency-Key"
	replayedHeader   = "Idempotent-Replayed"
	outcomeHeader    = "Semel-Outcome"
	refusalHeader    = "Semel-Refusal"
	resultHeader     = "Semel-Result"
	defaultDocs      = "https://github.com/semel-go/semel/blob/main/docs/reference/errors.md"
)

// config is Options with the defaults set and the header names canonical.
type config struct {
	Options
	replayable map[string]bool // header names
	compares   map[string]bool // FingerprintHeaders
	docs       string
}

func (o *Options) config() (*config, error) {
	c := &config{}
	if o != nil {
		c.Options = *o
	}
	if len(c.Methods) == 0 {
		c.Methods = []string{http.MethodPost, http.MethodPatch}
	}
	if c.Operation == nil {
		c.Operation = routeWith(c.Methods)
	}
	if len(c.KeyHeaders) == 0 {
		c.KeyHeaders = []string{defaultKeyHeader}
	}
	c.KeyHeaders = httpname.Canonical(c.KeyHeaders)
	if c.FingerprintHeaders == nil {
		c.FingerprintHeaders = defaultFingerprintHeaders
	}
	c.FingerprintHeaders = httpname.Canonical(c.FingerprintHeaders)
	slices.Sort(c.FingerprintHeaders)
	c.compares = map[string]bool{}
	for _, name := range c.FingerprintHeaders {
		c.compares[name] = true
	}
	if c.ReplayHeaders == nil {
		c.ReplayHeaders = defaultReplayHeaders
	}
	c.replayable = allowList(c.ReplayHeaders)
	c.MaxBody = cmp.Or(c.MaxBody, 10<<20)
	c.MaxResponse = cmp.Or(c.MaxResponse, 1<<20)
	if c.Judge == nil {
		c.Judge = Judge
	}
	c.BusyStatus = cmp.Or(c.BusyStatus, http.StatusConflict)
	if c.docs = c.DocsURL; c.docs == "" {
		c.docs = defaultDocs
	}
	return c, c.validate()
}

// validate returns an error that names every wrong option.
func (c *config) validate() error {
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("semelhttp: "+format, args...))
	}
	for i, m := range c.Methods {
		if !httpname.IsToken(m) {
			bad("Methods[%d]: %q is not a method", i, m)
		}
	}
	for i, h := range c.KeyHeaders {
		if !httpname.IsToken(h) {
			bad("KeyHeaders[%d]: %q is not a header name", i, h)
		}
		if slices.Index(c.KeyHeaders, h) != i {
			bad("KeyHeaders[%d]: %q is listed twice", i, h)
		}
	}
	for i, h := range c.ReplayHeaders {
		if !httpname.IsToken(h) {
			bad("ReplayHeaders[%d]: %q is not a header name", i, h)
		}
	}
	for i, h := range c.FingerprintHeaders {
		if !httpname.IsToken(h) {
			bad("FingerprintHeaders[%d]: %q is not a header name", i, h)
		}
	}
	for i, o := range c.RefusalOrigins {
		if u, err := url.Parse(o); o != "*" && (err != nil || u.Scheme == "" || u.Host == "" || u.Path != "" || u.RawQuery != "") {
			bad("RefusalOrigins[%d]: %q is not an origin; write one such as https://shop.example, or *", i, o)
		}
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
