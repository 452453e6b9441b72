// Package latency measures what a call adds to a handler, for each store.
package latency
