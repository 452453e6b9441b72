// Package httpname checks and compares the names of methods and headers of HTTP, and finds
// the methods that a header replaces the method of a request by.
package httpname

import (
	"net/http"
	"net/textproto"
	"slices"
	"strings"
)

// IsToken reports whether s can be a header name or a method (RFC 9110).
func IsToken(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}

// Canonical returns the names in the form of the keys of http.Header.
func Canonical(names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = textproto.CanonicalMIMEHeaderKey(n)
	}
	return out
}

// overrideHeaders are the headers that frameworks read a method from.
var overrideHeaders = [...]string{"X-Http-Method-Override", "X-Http-Method", "X-Method-Override"}

// OverrideHeaders returns the canonical names of the headers that frameworks read a method
// from.
func OverrideHeaders() []string { return slices.Clone(overrideHeaders[:]) }

// Overrides returns the methods in such headers, in capitals. Nil: there are none.
func Overrides(h http.Header) (methods []string) {
	for _, name := range overrideHeaders {
		for _, m := range h[name] {
			methods = append(methods, strings.ToUpper(m))
		}
	}
	return methods
}
