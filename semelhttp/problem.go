package semelhttp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/driver"
	"github.com/semel-go/semel/store"
)

// Problem is a refusal: the answer to a request that gets no handler's answer.
type Problem struct {
	Status int
	// Code is stable and for programs. The package documentation lists the codes.
	Code string
	// Title explains Code, and Detail says how to go on: for people, in English.
	Title, Detail string
	// RetryAfter is the time after which the client may send the same request
	// again; zero: not known. For a request in progress it is short, and grows with
	// the time that the first request has been running.
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
	CodeRecordUnreadable    = "record_unreadable"
	CodeUpgradeUnsupported  = "upgrade_unsupported"
	CodeMisconfigured       = "misconfigured"
	CodeAnswerMissing       = "answer_missing"
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
		Detail: "An earlier request with this key has no certain result, and nobody knows yet whether it took effect. It is not run again until that is known. Do not send it with a new key."},
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
	CodeRecordUnreadable: {Status: http.StatusInternalServerError, Title: "Record of the earlier request cannot be read",
		Detail: "An earlier request with this key may have taken effect, and the server cannot read its record. Nothing was done now. An operator has to repair it; do not send the request with a new key."},
	CodeUpgradeUnsupported: {Status: http.StatusInternalServerError, Title: "Protocol cannot be switched",
		Detail: "A request with an idempotency key cannot switch to another protocol."},
	CodeAnswerMissing: {Status: http.StatusInternalServerError, Title: "Server gave no answer",
		Detail: "The operation was begun, but it ended without an answer. Repeat the request with the same key; do not send it with a new one."},
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
	if p.Code == CodeOutcomeUnknown {
		h.Set(outcomeHeader, outcomeUnknown)
	}
	if p.Code != CodeFailed && p.Code != CodeAttemptsExhausted { // these are results
		h.Set(refusalHeader, p.Code)
	}
	AllowOrigin(w, r, c.RefusalOrigins)
	if c.Refuse != nil {
		c.Refuse(w, r, *p)
		return
	}
	switch p.Code {
	case CodeMisconfigured:
		slog.ErrorContext(r.Context(), "semelhttp: the handler is set up wrongly; requests are answered 500", "method", r.Method, "error", p.Err)
	case CodeRecordUnreadable:
		logUnreadable(r, p.Err)
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

func logUnreadable(r *http.Request, err error) {
	slog.ErrorContext(r.Context(), "semelhttp: a record cannot be read; requests with its key are refused", "method", r.Method, "error", err)
}

// retryAfter is d in whole seconds, rounded up, so that no client comes too early.
func retryAfter(d time.Duration) string {
	return strconv.FormatInt(int64(max(1, math.Ceil(d.Seconds()))), 10)
}

// problemOf maps the error of a call to the problem that the client gets. The
// handler did not run, or its answer does not count.
func (c *config) problemOf(err error) *Problem {
	if e, ok := errors.AsType[*semel.Error](err); ok {
		p := c.problemOfReason(e)
		p.Err = err
		return p
	}
	if f, ok := errors.AsType[*semel.Failure](err); ok {
		if f.Code == semel.CodeAttemptsExhausted {
			return problem(CodeAttemptsExhausted, err)
		}
		return problem(CodeFailed, err)
	}
	if errors.Is(err, errUpgrade) {
		return problem(CodeUpgradeUnsupported, err)
	}
	return problem(CodeMisconfigured, err) // a Runner that follows its contract returns no other error
}

func (c *config) problemOfReason(e *semel.Error) *Problem {
	var p *Problem
	switch e.Reason {
	case semel.ErrInProgress:
		p = problem(CodeInProgress, e)
		p.Status, p.RetryAfter = c.BusyStatus, max(driver.RetryHint(e), 1)
	case semel.ErrReleased:
		p = problem(CodeAttemptFailed, e)
		p.RetryAfter = max(p.RetryAfter, e.RetryAfter)
	case semel.ErrMismatch:
		p = problem(CodePayloadMismatch, e)
	case semel.ErrUnverifiable:
		p = problem(CodePayloadUnverifiable, e)
	case semel.ErrParked:
		p = problem(CodeOutcomeUnknown, e)
	case semel.ErrExpired:
		p = problem(CodeReservationExpired, e)
	case semel.ErrLeaseLost:
		p = problem(CodeLeaseLost, e)
	case store.ErrCorrupt:
		p = problem(CodeRecordUnreadable, e)
	case semel.ErrUnavailable, semel.ErrCanceled:
		p = problem(CodeStoreUnavailable, e)
		p.RetryAfter = max(p.RetryAfter, e.RetryAfter)
	case semel.ErrInvalid:
		// Operation, tenant and key are valid here, so the payload cannot be hashed or the
		// Guard is invalid.
		if p = problem(CodeMisconfigured, e); c.Payload != nil {
			p = problem(CodePayloadMalformed, e)
		}
	default:
		p = problem(CodeMisconfigured, e)
	}
	return p
}

// silenceProblem is the answer for a handler that wrote none. ended is how its context
// had ended when it returned. The status is 504 if its time was over. A handler that simply
// returned may have meant 200, as for net/http, so the problem tells its author what to
// write.
func silenceProblem(ended, err error) *Problem {
	p := problem(CodeAnswerMissing, err)
	switch {
	case errors.Is(ended, context.DeadlineExceeded):
		p.Status = http.StatusGatewayTimeout
	case ended == nil:
		p.Detail += " To the author of the handler: " + writeOK
	}
	return p
}

// logSilence logs that a handler wrote no answer. Clients hang up as often as they like, so that
// this is no error of the handler.
func (c *config) logSilence(r *http.Request, ended error, status int) {
	level, why := slog.LevelError, "the handler returned without an answer, so the call is in doubt; "+writeOK
	switch {
	case c.Refuse != nil: // it logs what it wants
		return
	case errors.Is(ended, context.DeadlineExceeded):
		level, why = slog.LevelWarn, "the time of the request was over before the handler wrote an answer, so the call is in doubt"
	case ended != nil:
		level, why = slog.LevelInfo, "the client left before the handler wrote an answer, so the call is in doubt; Options.Detach lets the handler go on"
	}
	slog.Log(r.Context(), level, "semelhttp: "+why, "method", r.Method, "status", status)
}

// writeOK is the cure for a handler that means 200 and writes nothing.
const writeOK = "a handler that means an empty 200 has to write it with w.WriteHeader(http.StatusOK)."

// keyMalformed does not repeat the key, because it may be secret.
func keyMalformed(err error) *Problem {
	p := problem(CodeKeyMalformed, err)
	p.Detail = fmt.Sprintf("The idempotency key is malformed: %v. A key has 1 to %d printable ASCII characters.", err, maxKey)
	return p
}

// bodyProblem maps the error of a body that could not be spooled.
func (c *config) bodyProblem(err error) *Problem {
	outer, ok := errors.AsType[*http.MaxBytesError](err)
	if ok || errors.Is(err, errTooLarge) {
		limit := c.MaxBody
		if ok {
			limit = outer.Limit
		}
		p := problem(CodeBodyTooLarge, err)
		p.Detail = fmt.Sprintf("The request body is over the limit of %d bytes. Nothing was done.", limit)
		return p
	}
	if _, ok := errors.AsType[spoolError](err); ok {
		return problem(CodeSpoolUnavailable, err)
	}
	if errors.Is(err, errors.ErrUnsupported) { // an adapter cannot read the body in this configuration of its server
		return problem(CodeMisconfigured, err)
	}
	return problem(CodeBodyUnreadable, err)
}
