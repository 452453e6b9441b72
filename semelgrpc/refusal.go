package semelgrpc

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/driver"
	"github.com/semel-go/semel/store"
)

// retrySoon is the RetryInfo if no better time is known.
const retrySoon = time.Second

// The domain of each ErrorInfo of a refusal, and the reasons about which judge asks.
const (
	domain         = "semel"
	outcomeUnknown = "OUTCOME_UNKNOWN"
	resultNotKept  = "RESULT_NOT_KEPT"
	failed         = "FAILED"
)

// refuse makes the error of a request that Semel does not run. after is the RetryInfo;
// zero: none.
func refuse(code codes.Code, reason string, after time.Duration, text string) error {
	details := []protoadapt.MessageV1{&errdetails.ErrorInfo{Domain: domain, Reason: reason}}
	if after > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(after)})
	}
	s := status.New(code, text)
	if detailed, err := s.WithDetails(details...); err == nil {
		s = detailed
	}
	return s.Err()
}

// refusalOf is what the client gets for an error of semel.Runner. The texts of causes are
// not for clients.
func refusalOf(ctx context.Context, method string, err error) error {
	if f, ok := errors.AsType[*semel.Failure](err); ok {
		return refuse(codes.FailedPrecondition, failed, 0, "the operation failed, and is not tried again with this key: "+f.Error())
	}
	e, ok := errors.AsType[*semel.Error](err)
	if !ok {
		return misconfigured(ctx, method, err)
	}
	again := max(driver.RetryHint(e), retrySoon)
	is := func(reason error) bool { return errors.Is(e.Reason, reason) }
	switch {
	case is(semel.ErrMismatch):
		return refuse(codes.InvalidArgument, "PAYLOAD_MISMATCH", 0,
			"this idempotency-key was used before for another request; repeat the first request as it was, or use a new key")
	case is(semel.ErrInProgress):
		return refuse(codes.Aborted, "IN_PROGRESS", again, "the first request with this idempotency-key is in progress; repeat it with the same key")
	case is(semel.ErrLeaseLost):
		return refuse(codes.Aborted, "LEASE_LOST", again, "the method ran longer than its lease; repeat the request with the same idempotency-key to get the recorded answer")
	case is(semel.ErrParked):
		return refuse(codes.FailedPrecondition, outcomeUnknown, 0,
			"it is not known whether the request took effect; an operator has to decide; do not send it with a new idempotency-key")
	case is(semel.ErrNotKept):
		return refuse(codes.FailedPrecondition, resultNotKept, 0, "the request took effect, but its response is not kept")
	case is(semel.ErrReleased):
		return refuse(codes.Unavailable, "ATTEMPT_FAILED", again, "the first request with this idempotency-key failed; repeat it with the same key")
	case is(store.ErrCorrupt):
		slog.ErrorContext(ctx, "semelgrpc: a record cannot be read; requests with its key are refused", "method", method, "error", err)
		return refuse(codes.FailedPrecondition, "RECORD_UNREADABLE", 0,
			"an earlier request with this idempotency-key may have taken effect, and its record cannot be read; an operator has to repair it; do not send the request with a new idempotency-key")
	case is(semel.ErrUnavailable), is(semel.ErrCanceled):
		if is(semel.ErrCanceled) && ctx.Err() != nil {
			return status.FromContextError(ctx.Err()).Err()
		}
		return refuse(codes.Unavailable, "STORE_UNAVAILABLE", again, "repeated requests cannot be recognised at the moment; repeat the request with the same idempotency-key")
	}
	return misconfigured(ctx, method, err)
}

func misconfigured(ctx context.Context, method string, err error) error {
	slog.ErrorContext(ctx, "semelgrpc: the interceptor is set up wrongly; the request is refused", "method", method, "error", err)
	return refuse(codes.Internal, "MISCONFIGURED", 0, "the server cannot tell repeated requests apart, and has done nothing")
}
