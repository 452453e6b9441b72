package input

import (
	"errors"
	"net/url"
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

// WithoutURL returns an error of an HTTP client without the URL, which the package
// net/url puts into its text.
func WithoutURL(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}
