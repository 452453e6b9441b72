package semelhttp

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

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
		p.Status, p.RetryAfter = c.BusyStatus, max(e.RetryAfter, 1)
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
	case semel.ErrUnavailable, semel.ErrCanceled, store.ErrCorrupt:
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
	return problem(CodeBodyUnreadable, err)
}
