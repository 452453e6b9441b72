package semelmcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/driver"
	"github.com/semel-go/semel/store"
)

// refusal is the error of a call that did not run. The text is for the agent; the text of
// the cause is not.
type refusal struct {
	code, text string
	cause      error
}

func (r *refusal) Error() string { return r.code + ": " + r.text }
func (r *refusal) Unwrap() error { return r.cause }

func invalidCall(cause error) error {
	return &refusal{"CALL_INVALID", "Nothing was done: " + cause.Error(), cause}
}

const (
	asBefore = "Call the tool again with the same idempotency key and the same arguments"
	noNewKey = "Do not call it with a new key or other arguments: that could take effect a second time."
	parked   = "It is not known whether this call took effect, and it will not run again by itself. Do not repeat it with a new idempotency key. " +
		"Tell a person: somebody has to find out and decide. After that, the same call with the same key gets the decision."
)

// adviceAfter says how to go on after a run whose answer is not kept.
func adviceAfter(err error, u *unkept, policy semel.Policy) string {
	_, exhausted := errors.AsType[*semel.Failure](err)
	switch {
	case driver.IsNoEffect(u.cause):
		return "Nothing was done. " + asBefore + " to try again."
	case exhausted:
		return "This was the last attempt: the call is not tried again with this idempotency key. It is not known whether it took effect. Tell a person."
	case policy == semel.Park:
		return "OUTCOME_UNKNOWN: " + parked
	}
	return "It is not known whether this call took effect. " + asBefore + " to try again. " + noNewKey
}

// refusalOf is what the agent gets for an error of semel.Runner.
func refusalOf(ctx context.Context, operation string, err error) error {
	e, ok := errors.AsType[*semel.Error](err)
	if !ok {
		return misconfigured(ctx, operation, err)
	}
	seconds := int((max(driver.RetryHint(e), time.Second) + time.Second - 1) / time.Second)
	again := fmt.Sprintf("%s after %d s. %s", asBefore, seconds, noNewKey)
	is := func(reason error) bool { return errors.Is(e.Reason, reason) }
	switch {
	case is(semel.ErrInvalid):
		return invalidCall(cmp.Or(e.Cause, e.Reason))
	case is(semel.ErrMismatch):
		return &refusal{"PAYLOAD_MISMATCH", "Nothing was done now. This idempotency key was used before with other arguments. " +
			"To repeat the earlier call, send exactly its arguments. Use a new key only for an operation that is really new.", e}
	case is(semel.ErrInProgress):
		return &refusal{"IN_PROGRESS", "The first call with this idempotency key is not over. " + again, e}
	case is(semel.ErrLeaseLost):
		return &refusal{"LEASE_LOST", "The tool ran too long, and its result does not count. " + again, e}
	case is(semel.ErrReleased):
		return &refusal{"ATTEMPT_FAILED", "The first call with this idempotency key failed. " + again, e}
	case is(semel.ErrParked):
		return &refusal{"OUTCOME_UNKNOWN", parked, e}
	case is(semel.ErrNotKept):
		return &refusal{"RESULT_NOT_KEPT", "This call took effect, but its result was not kept. Do not repeat it. Look up the result in another way.", e}
	case is(store.ErrCorrupt):
		slog.ErrorContext(ctx, "semelmcp: a record cannot be read; calls with its key are refused", "operation", operation, "error", err)
		return &refusal{"RECORD_UNREADABLE", "Nothing was done now. An earlier call with this idempotency key may have taken effect, and the server cannot read its record. " +
			noNewKey + " Tell a person.", e}
	case is(semel.ErrUnavailable), is(semel.ErrCanceled):
		return &refusal{"STORE_UNAVAILABLE", "The server cannot look up at the moment whether this call was made before. " + again, e}
	}
	return misconfigured(ctx, operation, err)
}

func misconfigured(ctx context.Context, operation string, err error) error {
	slog.ErrorContext(ctx, "semelmcp: the tool is set up wrongly; the call is refused", "operation", operation, "error", err)
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the server cannot tell repeated calls apart, and has done nothing"}
}
