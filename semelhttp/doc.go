// Package semelhttp makes HTTP requests take effect once. A client sends an
// Idempotency-Key with a POST or PATCH and may send it again as often as it
// needs; the handler runs once, and every duplicate gets the first answer.
//
// [Middleware] protects a handler, [Accept] takes a request now for work that
// is done later, and [Transport] is the client's side: it gives each request a
// key and keeps key and bytes the same over its retries. The package follows
// draft-ietf-httpapi-idempotency-key-header-07, which expired without
// becoming a standard. What is promised is the Guard's promise: see package
// semel.
//
// # Requests
//
// The key is the value of Idempotency-Key, bare or as a quoted string, which
// are the same key: 1 to 255 printable ASCII characters. The body is read
// whole, and hashed, before anything is claimed: in memory, or in a temporary
// file if it is over 64 KiB. A request that is refused, cut short or too large
// leaves no trace.
//
// # Answers
//
// An answer is kept before it is sent. Kept are 2xx, 3xx and those 4xx that
// will not change; not 401, 403, 408, 425 and 429, which say that nothing was
// done, and not 5xx, which say that nobody knows. [Final] and [NoEffect] let a
// handler say otherwise. Duplicates get the status, the body byte for byte,
// and the headers of an allow-list.
//
// The answer is buffered up to Options.MaxResponse. When it grows larger, or
// is flushed, "done, body not kept" is stored and the rest is streamed;
// duplicates then get the status, and of the headers that are kept those that
// say nothing of the body, such as Location. Only in a transaction, and with
// semel.Options.Rerun, it is buffered to its end, however large: limit what such
// handlers answer. Hijacking and protocol upgrades are refused with
// http.ErrNotSupported. Informational answers (1xx) pass at once. Trailers reach
// the first caller only. An answer shorter than the Content-Length that it
// declared is not kept either.
//
// # Headers
//
//	Idempotent-Replayed: true       this is an earlier request's answer
//	Semel-Outcome: not-kept         done, but the body was not kept
//	Semel-Outcome: not-stored       done, but not known to be kept; a duplicate may run again
//	Semel-Outcome: unknown          nobody knows whether it was done
//	Semel-Outcome: unprotected      the store was down; a duplicate runs again
//
// # Problems
//
// A refusal is a problem document (RFC 9457) whose member "code" is stable:
//
//	400  key_missing           the operation needs a key
//	400  key_malformed         the key is not one, or there are several
//	400  body_unreadable       the body did not arrive whole
//	400  payload_malformed     the body is not what the key check needs
//	401  tenant_missing         it is not known whose key this is
//	403  replay_forbidden      the caller may not see the earlier answer
//	409  in_progress           the first request is still running
//	409  outcome_unknown       nobody knows whether it was done
//	409  lease_lost            the handler was too slow; the same request gets the recorded answer
//	410  reservation_expired   what was accepted is over
//	413  body_too_large        the body is over the limit
//	422  payload_mismatch      the key was used with another payload
//	500  attempts_exhausted    all attempts failed, for good
//	500  failed                the operation failed, for good
//	500  payload_unverifiable  the earlier payload cannot be compared with this one
//	500  upgrade_unsupported   the handler tried to switch protocols
//	500  misconfigured         the server is set up wrongly
//	503  attempt_failed        the attempt that was waited for failed; nothing was kept
//	503  store_unavailable     the store did not answer; the handler did not run, or its transaction was
//	                           rolled back, or is in doubt: send the same key again
//	503  spool_unavailable     there is no room for the body
package semelhttp
