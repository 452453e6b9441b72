// Package chaos kills and freezes real processes that share a real store, and
// checks what is left. It has only tests; it kills only what it started.
package chaos
