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

// WithoutURL returns an error of an HTTP client without the URL, which the package
// net/url puts into its text.
func WithoutURL(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}
