package semelmcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/driver"
)

// Options says how calls are identified. Tenant and Key are required.
type Options struct {
	// Tenant names the account that the key of a call belongs to, such as the UserID of
	// req.Extra.TokenInfo; Extra is nil without HTTP. [Shared] is for keys that are
	// unique over all accounts. An error, or an empty name, refuses the call: as
	// STORE_UNAVAILABLE if the error wraps semel.ErrUnavailable, and else as
	// TENANT_MISSING.
	Tenant func(ctx context.Context, req *mcp.CallToolRequest) (string, error)
	// Key finds the key of a call: [FromArgument], [FromMeta], [Hash], or [First] of
	// several.
	Key KeySource
	// Operation names the work, as in semel.Call. Empty: the name of the tool. Set it if
	// servers whose tools have equal names share a store.
	Operation string
	// Payload is what duplicates must have in common. Nil: all arguments.
	Payload func(req *mcp.CallToolRequest) (semel.Payload, error)
	// Wait is how long a duplicate waits for the end of the first call. Zero: it is
	// refused at once as IN_PROGRESS.
	Wait time.Duration
}

// Shared is a Tenant for keys that are unique over all accounts.
func Shared(context.Context, *mcp.CallToolRequest) (string, error) { return semel.Shared, nil }

// check returns everything that is wrong.
func (o *Options) check(run semel.Runner, hasHandler bool) error {
	var errs []error
	if run == nil {
		errs = append(errs, errors.New("semelmcp: run: is nil; pass a *semel.Guard or a store's Atomic"))
	}
	if !hasHandler {
		errs = append(errs, errors.New("semelmcp: the handler is nil"))
	}
	if o.Tenant == nil {
		errs = append(errs, errors.New("semelmcp: Options.Tenant: is nil; name the account, or set Shared"))
	}
	if o.Key == nil {
		errs = append(errs, errors.New("semelmcp: Options.Key: is nil; set FromArgument, FromMeta or Hash"))
	}
	if o.Operation != "" {
		if err := driver.CheckOperation(o.Operation); err != nil {
			errs = append(errs, fmt.Errorf("semelmcp: Options.Operation: %w", err))
		}
	}
	return errors.Join(errs...)
}

// call makes the call of a request. The error is for the agent.
func (o *Options) call(ctx context.Context, req *mcp.CallToolRequest) (semel.Call, error) {
	call := semel.Call{Operation: o.Operation, Wait: o.Wait}
	if call.Operation == "" {
		call.Operation = req.Params.Name
	}
	var err error
	call.Tenant, err = o.Tenant(ctx, req)
	switch err = driver.ReadableError(err); {
	case errors.Is(err, semel.ErrUnavailable): // the service that knows the account does not answer
		return call, refusalOf(ctx, call.Operation, &semel.Error{Reason: semel.ErrUnavailable, Operation: call.Operation, Cause: err})
	case err != nil, driver.CheckTenant(call.Tenant) != nil:
		return call, &refusal{"TENANT_MISSING", "Nothing was done. The server does not know for which account the tool was called. Sign in, and call it again.", err}
	}
	if call.Key, err = o.Key(req); err != nil {
		err = driver.ReadableError(err)
		if errors.Is(err, ErrNoKey) {
			return call, &refusal{"KEY_MISSING", "Nothing was done: " + err.Error(), err}
		}
		return call, invalidCall(err)
	}
	if o.Payload != nil {
		call.Payload, err = o.Payload(req)
	} else {
		call.Payload = semel.JSON(argumentsOf(req))
	}
	if err != nil {
		return call, invalidCall(driver.ReadableError(err))
	}
	return call, nil
}

// argumentsOf returns the arguments of a call; without any, an empty object.
func argumentsOf(req *mcp.CallToolRequest) json.RawMessage {
	if len(req.Params.Arguments) == 0 {
		return json.RawMessage("{}")
	}
	return req.Params.Arguments
}
