package semelfiber

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/gofiber/fiber/v3"
	"github.com/valyala/fasthttp"

	"github.com/semel-go/semel/semelhttp"
)

// newRequest copies the request of c, because Fiber uses its buffers again and Semel
// keeps the key. It notes in x what only a protected request needs.
func newRequest(ctx context.Context, c fiber.Ctx, x *exchange) *http.Request {
	from := c.Request()
	uri := string(from.Header.RequestURI())
	u, err := url.ParseRequestURI(uri)
	if err != nil { // Fiber serves it
		x.uriErr = err
		path, query, _ := strings.Cut(uri, "?")
		u = &url.URL{Path: path, RawQuery: query}
	}
	r := (&http.Request{
		Method: string(from.Header.Method()), URL: u, RequestURI: uri, Host: string(from.Header.Host()),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{},
		RemoteAddr: c.RequestCtx().RemoteAddr().String(), TLS: c.RequestCtx().TLSConnectionState(),
		Pattern: c.Route().Path,
	}).WithContext(ctx)
	for name, value := range from.Header.All() {
		r.Header.Add(string(name), string(value))
	}
	r.Header.Del("Host")
	r.Header.Del("Transfer-Encoding")
	for _, name := range c.Route().Params {
		r.SetPathValue(name, strings.Clone(c.Params(name)))
	}
	r.Body, r.ContentLength = bodyOf(c)
	x.body = r.Body
	return r
}

// Bodies that cannot be compared. semelhttp answers errors.ErrUnsupported with 500
// (misconfigured), but only if it needs the body: for a request that it protects.
var (
	errPreParsed = fmt.Errorf("semelfiber: Fiber has parsed the multipart form, so its bytes are lost and repeats cannot be recognised; "+
		"set fiber.Config.DisablePreParseMultipartForm: %w", errors.ErrUnsupported)
	errChunked = fmt.Errorf("semelfiber: the request body has no Content-Length, and a stream of Fiber does not tell its end from a lost connection; "+
		"unset fiber.Config.StreamRequestBody, or let clients send a Content-Length: %w", errors.ErrUnsupported)
)

// bodyOf returns the body as the client has sent it, and its length. The body is not
// copied; semelhttp does that.
func bodyOf(c fiber.Ctx) (io.ReadCloser, int64) {
	from := c.Request()
	declared := int64(from.Header.ContentLength())
	switch {
	case isPreParsed(c):
		return io.NopCloser(brokenReader{errPreParsed}), -1
	case !from.IsBodyStream():
		body := from.Body()
		return io.NopCloser(bytes.NewReader(body)), int64(len(body))
	case declared < 0:
		return io.NopCloser(brokenReader{errChunked}), -1
	}
	return io.NopCloser(&streamBody{stream: from.BodyStream(), left: declared}), declared
}

// isPreParsed reports whether Fiber has read the body as a form. It does that before any
// handler if the form has a length and no encoding.
func isPreParsed(c fiber.Ctx) bool {
	from := c.Request()
	return !c.App().Config().DisablePreParseMultipartForm && !from.IsBodyStream() && from.Header.ContentLength() > 0 &&
		len(from.Header.MultipartFormBoundary()) > 0 && len(from.Header.Peek(fiber.HeaderContentEncoding)) == 0
}

// streamBody is a streamed request body of known length. Fiber's own stream ends with
// io.EOF even if the connection ended early.
type streamBody struct {
	stream io.Reader
	left   int64 // bytes
}

// Read implements io.Reader.
func (b *streamBody) Read(p []byte) (int, error) {
	n, err := b.stream.Read(p)
	b.left -= int64(n)
	if b.left > 0 && errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// copyHeader makes h equal to the response header of c. The server sets the length, does
// not send its default type for an empty body, and, unlike net/http, guesses no type.
func copyHeader(h http.Header, c fiber.Ctx) {
	clear(h)
	for name, value := range c.Response().Header.All() {
		h.Add(string(name), string(value))
	}
	h.Del("Content-Length")
	switch empty := isEmpty(c.Response()); {
	case empty && h.Get("Content-Type") == fiber.MIMETextPlainCharsetUTF8:
		h.Del("Content-Type")
	case !empty && len(h["Content-Type"]) == 0:
		h["Content-Type"] = nil
	}
}

func isEmpty(r *fasthttp.Response) bool { return !r.IsBodyStream() && len(r.Body()) == 0 }

// exchange is one request. It is the server's http.ResponseWriter for semelhttp: it
// holds the answer until send.
type exchange struct {
	c           fiber.Ctx
	body        io.ReadCloser // the body of the request that semelhttp got
	ran         bool
	unprotected bool
	uriErr      error // a protected request is refused for it
	err         error // of a request that is not protected, or uriErr

	header http.Header
	status int
	sent   []byte
	broken bool // the stream broke off after semelhttp had sent a part
}

// Header implements http.ResponseWriter.
func (x *exchange) Header() http.Header { return x.header }

// WriteHeader implements http.ResponseWriter.
func (x *exchange) WriteHeader(status int) {
	if status >= 200 && x.status == 0 {
		x.status = status
	}
}

// Write implements http.ResponseWriter.
func (x *exchange) Write(p []byte) (int, error) {
	x.WriteHeader(http.StatusOK)
	x.sent = append(x.sent, p...)
	return len(p), nil
}

// answer gives the answer of the chain to semelhttp.
func (x *exchange) answer(w http.ResponseWriter, r *http.Request) {
	from := x.c.Response()
	if x.c.RequestCtx().Hijacked() {
		x.c.RequestCtx().Hijack(nil)
		w.WriteHeader(http.StatusSwitchingProtocols) // semelhttp refuses it
		return
	}
	copyHeader(w.Header(), x.c)
	status := from.StatusCode()
	if status == http.StatusOK && isEmpty(from) {
		return // no answer
	}
	w.WriteHeader(status)
	if err := writeBody(w, from); err != nil && !errors.Is(err, http.ErrBodyNotAllowed) {
		if x.broken = !semelhttp.Broken(r); !x.broken {
			http.Error(w, "the answer broke off", http.StatusBadGateway)
		}
	}
}

// writeBody writes the body to w. A stream that is not as long as it declares is broken;
// without Semel, Fiber closes the connection of its client.
func writeBody(w io.Writer, from *fasthttp.Response) error {
	declared := int64(from.Header.ContentLength())
	if !from.IsBodyStream() || declared < 0 {
		return from.BodyWriteTo(w)
	}
	n, err := io.Copy(w, from.BodyStream())
	if err == nil && n != declared {
		err = fmt.Errorf("semelfiber: the stream has %d bytes instead of the declared %d", n, declared)
	}
	return err
}

var errBroken = errors.New("semelfiber: the stream broke off")

// send makes the answer of semelhttp the answer of Fiber.
func (x *exchange) send() {
	to := x.c.Response()
	to.Reset()
	to.Header.SetNoDefaultContentType(true) // Fiber's default is text/plain
	for name, values := range x.header {
		for _, value := range values {
			to.Header.Add(name, value)
		}
	}
	to.SetStatusCode(x.status)
	to.SetBodyRaw(x.sent)
	if x.broken {
		to.SetBodyStream(io.MultiReader(bytes.NewReader(x.sent), brokenReader{errBroken}), -1)
	}
}

// brokenReader fails with err. In an answer it makes Fiber close the connection, so that
// the answer does not look whole.
type brokenReader struct{ err error }

// Read implements io.Reader.
func (b brokenReader) Read([]byte) (int, error) { return 0, b.err }
