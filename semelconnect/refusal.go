package semelconnect

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/driver"
	"github.com/semel-go/semel/store"
)

// refusalHeader has the reason of a refusal, so that another Semel outside knows that the
// error is no result of the method. A result has none. A gRPC client does not see headers in
// an error, so a detail of the type ErrorInfo, with this domain, has the reason as well, like
// that of package semelgrpc. outcomeHeader is as in package semelhttp.
const (
	domain         = "semel"
	refusalHeader  = "Semel-Refusal"
	outcomeHeader  = "Semel-Outcome"
	outcomeUnknown = "outcome_unknown"
	result         = ""
)

// refuse makes the error of a request that Semel does not run. after is the header
// Retry-After; zero: none.
func refuse(code connect.Code, reason string, after time.Duration, text string) error {
	e := connect.NewError(code, errors.New(text))
	if reason != result {
		e.Meta().Set(refusalHeader, reason)
		if d, err := connect.NewErrorDetail(&errdetails.ErrorInfo{Domain: domain, Reason: strings.ToUpper(reason)}); err == nil {
			e.AddDetail(d)
		}
	}
	if reason == outcomeUnknown {
		e.Meta().Set(outcomeHeader, "unknown")
	}
	if after > 0 {
		e.Meta().Set("Retry-After", strconv.Itoa(int(math.Ceil(after.Seconds()))))
	}
	return e
}

// refusalIn is the reason for which another Semel has refused a call of the method. That Semel
// keeps the result. Empty: e is no such refusal. The results that semelgrpc names are none.
func refusalIn(e *connect.Error) string {
	if reason := e.Meta().Get(refusalHeader); reason != "" {
		return reason
	}
	for _, d := range e.Details() {
		v, err := d.Value()
		info, ok := v.(*errdetails.ErrorInfo)
		if err == nil && ok && info.Domain == domain && info.Reason != "FAILED" && info.Reason != "RESULT_NOT_KEPT" {
			return strings.ToLower(info.Reason)
		}
	}
	return ""
}

// refusalOf is what the client gets for an error of semel.Runner. The texts of causes are
// not for clients.
func refusalOf(ctx context.Context, method string, err error) error {
	e, ok := errors.AsType[*semel.Error](err)
	if !ok {
		return misconfigured(ctx, method, err)
	}
	again := max(driver.RetryHint(e), time.Second)
	is := func(reason error) bool { return errors.Is(e.Reason, reason) }
	switch {
	case is(semel.ErrMismatch):
		return refuse(connect.CodeInvalidArgument, "payload_mismatch", 0,
			"this idempotency key was used before for another request; repeat the first request as it was, or use a new key")
	case is(semel.ErrInProgress):
		return refuse(connect.CodeAborted, "in_progress", again, "the first request with this idempotency key is in progress; repeat it with the same key")
	case is(semel.ErrLeaseLost):
		return refuse(connect.CodeAborted, "lease_lost", again, "the method ran longer than its lease; repeat the request with the same idempotency key to get the recorded answer")
	case is(semel.ErrParked):
		return refuse(connect.CodeFailedPrecondition, outcomeUnknown, 0,
			"it is not known whether the request took effect; an operator has to decide; do not send it with a new idempotency key")
	case is(semel.ErrNotKept):
		return refuse(connect.CodeFailedPrecondition, result, 0, "the request took effect, but its response is not kept")
	case is(semel.ErrReleased):
		return refuse(connect.CodeUnavailable, "attempt_failed", again, "the first request with this idempotency key failed; repeat it with the same key")
	case is(store.ErrCorrupt):
		slog.ErrorContext(ctx, "semelconnect: a record cannot be read; requests with its key are refused", "method", method, "error", err)
		return refuse(connect.CodeFailedPrecondition, "record_unreadable", 0, "an earlier request with this idempotency key may have taken effect, and its record cannot be read; an operator has to repair it; do not send the request with a new idempotency key")
	case is(semel.ErrUnavailable), is(semel.ErrCanceled):
		return refuse(connect.CodeUnavailable, "store_unavailable", again, "repeated requests cannot be recognised at the moment; repeat the request with the same idempotency key")
	}
	return misconfigured(ctx, method, err)
}

func misconfigured(ctx context.Context, method string, err error) error {
	slog.ErrorContext(ctx, "semelconnect: the interceptor is set up wrongly; the request is refused", "method", method, "error", err)
	return refuse(connect.CodeInternal, "misconfigured", 0, "the server cannot tell repeated requests apart, and has done nothing")
}
