package semelfiber

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/gofiber/fiber/v3"
	"github.com/valyala/fasthttp"

	"github.com/semel-go/semel/semelhttp"
)

// newRequest copies the request of c, because Fiber uses its buffers again and Semel
// keeps the key. The body is not copied; semelhttp does that.
func newRequest(ctx context.Context, c fiber.Ctx) (*http.Request, error) {
	from := c.Request()
	uri := string(from.Header.RequestURI())
	u, err := url.ParseRequestURI(uri)
	if err != nil {
		return nil, err
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
	if from.IsBodyStream() {
		r.Body, r.ContentLength = io.NopCloser(from.BodyStream()), max(-1, int64(from.Header.ContentLength()))
	} else {
		body := from.Body()
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	return r, nil
}

// copyHeader makes h equal to the response header of c. The server sets the length, and
// does not send its default type for an empty body.
func copyHeader(h http.Header, c fiber.Ctx) {
	clear(h)
	for name, value := range c.Response().Header.All() {
		h.Add(string(name), string(value))
	}
	h.Del("Content-Length")
	if isEmpty(c.Response()) && h.Get("Content-Type") == fiber.MIMETextPlainCharsetUTF8 {
		h.Del("Content-Type")
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
	err         error // of a request that is not protected

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
	if err := from.BodyWriteTo(w); err != nil && !errors.Is(err, http.ErrBodyNotAllowed) {
		if x.broken = !semelhttp.Broken(r); !x.broken {
			http.Error(w, "the answer broke off", http.StatusBadGateway)
		}
	}
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
		to.SetBodyStream(io.MultiReader(bytes.NewReader(x.sent), brokenReader{}), -1)
	}
}

// brokenReader makes Fiber close the connection, so that the answer does not look whole.
type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errBroken }
