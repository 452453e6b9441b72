package input

import (
	"crypto/tls"
	"errors"
	"net/http"
	"net/url"
	"strings"
)

// Masked is a URL for logs: without a password, and without its query, because both
// can contain secrets.
func Masked(u *url.URL) string {
	if u == nil {
		return ""
	}
	shown := *u
	if shown.RawQuery != "" {
		shown.RawQuery = "…"
	}
	shown.Fragment, shown.RawFragment = "", ""
	return shown.Redacted()
}

// Path is the path of a URL for logs and records: without the query, which can contain
// secrets, and at most 120 bytes and a sign that the rest is missing.
func Path(u *url.URL) string {
	const most = 120
	path := u.EscapedPath()
	if len(path) > most {
		return path[:most] + "…"
	}
	return path
}

// Method is the method of a request for logs and records: at most 20 bytes and a sign that the
// rest is missing, because a client can send a method of any length.
func Method(r *http.Request) string {
	const most = 20
	if len(r.Method) > most {
		return r.Method[:most] + "…"
	}
	return r.Method
}

// WithoutURL returns an error of an HTTP client without the URL, which the package
// net/url puts into its text.
func WithoutURL(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// WithoutQuotes returns an error of an HTTP client with a text that ends before the first
// quotation mark, because it can quote a part of an answer, such as a cookie. A certificate
// that is refused is no part of an answer.
func WithoutQuotes(err error) error {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); err == nil || ok {
		return err
	}
	text, _, quoted := strings.Cut(err.Error(), `"`)
	if !quoted {
		return err
	}
	return &cutError{text + "…", err}
}

type cutError struct {
	text string
	err  error
}

func (e *cutError) Error() string { return e.text }
func (e *cutError) Unwrap() error { return e.err }
