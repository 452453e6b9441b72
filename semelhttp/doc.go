// Package semelhttp makes HTTP requests take effect once. A client sends an
// Idempotency-Key with a POST or PATCH and may repeat the request; the handler runs
// once, and every duplicate gets the first answer.
//
//	once, err := semelhttp.Middleware(guard, account, nil)
//	mux.Handle("POST /payments", once(payments))
//
// Here account is a [TenantFunc]: it returns the tenant that a request belongs to.
// [Middleware] protects a handler. [Accept] takes a request now for work that is
// done later. [Transport] is the client's side: it gives each request a key and
// repeats it. The promise depends on the Guard's policy; see package semel.
//
// The package follows draft-ietf-httpapi-idempotency-key-header-07, which expired
// without becoming a standard. The guide docs/http.md in the repository has the whole
// contract: keys, bodies, kept answers, streaming and headers.
//
// # Problems
//
// A refusal is a problem document (RFC 9457) with a stable member "code". Its type is the
// address of the code in docs/reference/errors.md, which says what the client may do:
//
//	400  key_missing           the operation needs a key
//	400  key_malformed         the key is malformed, or there are several
//	400  body_unreadable       the body did not arrive completely
//	400  payload_malformed     the body lacks the form or the fields that are compared
//	401  tenant_missing        the request does not say who the caller is
//	403  replay_forbidden      the caller may not see the earlier answer
//	409  in_progress           the first request is still running
//	409  outcome_unknown       nobody knows whether the operation took effect
//	409  lease_lost            the handler was too slow; the same request gets the recorded answer
//	410  reservation_expired   the accepted request and its result have expired
//	413  body_too_large        the body is over the limit
//	422  payload_mismatch      the key was used with another payload
//	500  attempts_exhausted    all attempts failed, for good
//	500  failed                the operation failed, for good
//	500  payload_unverifiable  the earlier payload cannot be compared with this one
//	500  record_unreadable     the record of the earlier request cannot be read; the log says why
//	500  upgrade_unsupported   the handler tried to switch protocols
//	500  answer_missing        the handler returned, or its context ended, before it wrote an answer;
//	                           a handler that means an empty 200 has to call w.WriteHeader(200)
//	500  misconfigured         the server is configured wrongly
//	503  attempt_failed        the attempt that this request waited for failed; nothing was kept
//	503  store_unavailable     the store did not answer: send the same key again. The handler did not
//	                           run, or its transaction was rolled back or is in doubt
//	503  spool_unavailable     the server has no space for the body
package semelhttp
