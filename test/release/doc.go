// Package release tests what users get: the modules, programs and container
// image that scripts/release makes. "make release-test" runs it.
package release
