// Package httpmethod finds the methods that a header replaces the method of a request by.
package httpmethod

import (
	"net/http"
	"slices"
	"strings"
)

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
