package semelhttp

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"
)

// Problem is a refusal: the answer to a request that gets no handler's answer.
type Problem struct {
	Status int
	// Code is stable and for programs. The package documentation lists the codes.
	Code string
	// Title explains Code, and Detail says how to go on: for people, in English.
	Title, Detail string
	// RetryAfter is the time after which the client may send the same request
	// again; zero: not known. For a request in progress it is the rest of the lease,
	// which is renewed while the first request runs.
	RetryAfter time.Duration
	// Err is the cause, for the server's own logs; nil: none beside Code. Never send
	// it to the client.
	Err error
}

// The codes of problems.
const (
	CodeKeyMissing          = "key_missing"
	CodeKeyMalformed        = "key_malformed"
	CodeBodyUnreadable      = "body_unreadable"
	CodePayloadMalformed    = "payload_malformed"
	CodeTenantMissing       = "tenant_missing"
	CodeReplayForbidden     = "replay_forbidden"
	CodeInProgress          = "in_progress"
	CodeOutcomeUnknown      = "outcome_unknown"
	CodeLeaseLost           = "lease_lost"
	CodeReservationExpired  = "reservation_expired"
	CodeBodyTooLarge        = "body_too_large"
	CodePayloadMismatch     = "payload_mismatch"
	CodeAttemptsExhausted   = "attempts_exhausted"
	CodeFailed              = "failed"
	CodePayloadUnverifiable = "payload_unverifiable"
	CodeUpgradeUnsupported  = "upgrade_unsupported"
	CodeMisconfigured       = "misconfigured"
	CodeAttemptFailed       = "attempt_failed"
	CodeStoreUnavailable    = "store_unavailable"
	CodeSpoolUnavailable    = "spool_unavailable"
)

// retrySoon is the Retry-After of a problem whose end is not known.
const retrySoon = time.Second

// problems contains no text from a request or an error. If draft-07 has a title for
// a problem, this is the title.
var problems = map[string]Problem{
	CodeKeyMissing: {Status: http.StatusBadRequest, Title: "Idempotency-Key is missing",
		Detail: "This operation needs an idempotency key in the request header. Make a new key for each new operation, and send the same key when you repeat one."},
	CodeKeyMalformed: {Status: http.StatusBadRequest, Title: "Idempotency-Key is malformed"}, // Detail: keyMalformed
	CodeBodyUnreadable: {Status: http.StatusBadRequest, Title: "Request body did not arrive",
		Detail: "The request body could not be read to its end. Nothing was done; repeat the request with the same key."},
	CodePayloadMalformed: {Status: http.StatusBadRequest, Title: "Request body is malformed",
		Detail: "The request body does not have the form, or the fields, by which repeated requests are recognised. Nothing was done."},
	CodeTenantMissing: {Status: http.StatusUnauthorized, Title: "Owner of the Idempotency-Key is not known",
		Detail: "Keys belong to the caller who made them, and this request does not say who its caller is. Authenticate, and repeat the request with the same key."},
	CodeReplayForbidden: {Status: http.StatusForbidden, Title: "Earlier answer may not be shown",
		Detail: "This operation was requested before with this key. You are not, or no longer, allowed to see its answer."},
	CodeInProgress: {Status: http.StatusConflict, Title: "A request is outstanding for this Idempotency-Key",
		Detail: "The first request with this key is still running, or its next attempt is not due. Repeat the request with the same key after the time that Retry-After says."},
	CodeOutcomeUnknown: {Status: http.StatusConflict, Title: "Outcome is not known",
		Detail: "The first request with this key was interrupted, and nobody knows yet whether it took effect. It is not run again until that is known. Do not send it with a new key."},
	CodeLeaseLost: {Status: http.StatusConflict, Title: "Request took too long", RetryAfter: retrySoon,
		Detail: "Another attempt may have taken this request over, so this one's answer does not count. Repeat the request with the same key to get the recorded answer."},
	CodeReservationExpired: {Status: http.StatusGone, Title: "Reservation has expired",
		Detail: "What was accepted with this key is over, and its answer is no longer kept."},
	CodeBodyTooLarge: {Status: http.StatusRequestEntityTooLarge, Title: "Request body is too large"}, // Detail: bodyProblem
	CodePayloadMismatch: {Status: http.StatusUnprocessableEntity, Title: "Idempotency-Key is already used",
		Detail: "This key was used before for another request. Repeat the first request exactly as it was, or use a new key."},
	CodeAttemptsExhausted: {Status: http.StatusInternalServerError, Title: "All attempts failed",
		Detail: "The operation was tried as often as is allowed, and failed each time. It is not tried again with this key."},
	CodeFailed: {Status: http.StatusInternalServerError, Title: "Operation failed for good",
		Detail: "The operation failed, and will not be tried again with this key."},
	CodePayloadUnverifiable: {Status: http.StatusInternalServerError, Title: "Earlier request cannot be compared",
		Detail: "The server can no longer tell whether this is the request for which the key was first used. Nothing was done."},
	CodeUpgradeUnsupported: {Status: http.StatusInternalServerError, Title: "Protocol cannot be switched",
		Detail: "A request with an idempotency key cannot switch to another protocol."},
	CodeMisconfigured: {Status: http.StatusInternalServerError, Title: "Server is set up wrongly",
		Detail: "The server cannot tell repeated requests apart, and has done nothing."},
	CodeAttemptFailed: {Status: http.StatusServiceUnavailable, Title: "The attempt that was waited for failed", RetryAfter: retrySoon,
		Detail: "The first request with this key failed, and its answer was not kept. Repeat the request with the same key."},
	CodeStoreUnavailable: {Status: http.StatusServiceUnavailable, Title: "Repeated requests cannot be recognised at the moment", RetryAfter: retrySoon,
		Detail: "Repeat the request with the same key. With another key it could be done twice: the server may have been cut off in the middle."},
	CodeSpoolUnavailable: {Status: http.StatusServiceUnavailable, Title: "No room for the request body", RetryAfter: retrySoon,
		Detail: "Nothing was done. Repeat the request with the same key."},
}

func problem(code string, err error) *Problem {
	p := problems[code]
	p.Code, p.Err = code, err
	return &p
}

// document is a Problem in the form of RFC 9457. It has no instance, because that
// would be the key.
type document struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	Code   string `json:"code"`
}

// refuse answers the request with a problem.
func (c *config) refuse(w http.ResponseWriter, r *http.Request, p *Problem) {
	h := w.Header()
	if p.RetryAfter > 0 {
		h.Set("Retry-After", retryAfter(p.RetryAfter))
	}
	if c.Refuse != nil {
		c.Refuse(w, r, *p)
		return
	}
	body, err := json.Marshal(document{c.docs + "#" + p.Code, p.Title, p.Status, p.Detail, p.Code})
	if err != nil { // impossible: strings and a number can be encoded
		panic(fmt.Sprintf("semelhttp: problem document: %v", err))
	}
	if c.DocsURL != "" {
		h.Add("Link", "<"+c.DocsURL+`>; rel="describedby"; type="text/html"`)
	}
	h.Set("Content-Type", "application/problem+json")
	h.Set("Content-Language", "en")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(p.Status)
	_, _ = w.Write(body) // a client that has left does not need it
}

// retryAfter is d in whole seconds, rounded up, so that no client comes too early.
func retryAfter(d time.Duration) string {
	return strconv.FormatInt(int64(max(1, math.Ceil(d.Seconds()))), 10)
}
