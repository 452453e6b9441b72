// Package coalesce gathers concurrent requests into shared round trips. It is
// for people who write stores.
//
// Requests that come while a flush is in flight wait, and go together in the
// next one. Nothing waits for a time, and there is no background goroutine: when
// requests come one by one, one that meets an idle [Lane] is flushed at once, on
// its caller's goroutine, so a lone caller pays nothing for the gathering; a
// goroutine lives only while requests are queued. The one timer is for what
// waits behind a flush that hangs.
package coalesce
