// Package coalesce lets concurrent requests share round trips. It is for authors
// of stores.
//
// Requests that arrive while a flush is in flight are queued, and the next flush
// takes them together. A single request that finds an idle [Batcher] is flushed at
// once, on its caller's goroutine, so that a single caller pays nothing. There is
// no background goroutine: one runs only while requests are queued. The only
// timer makes requests overtake a flush that hangs.
package coalesce
