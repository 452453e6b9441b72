package semelconnect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/driver"
	"github.com/semel-go/semel/semelhttp"
	"github.com/semel-go/semel/store"
)

const (
	keyHeader    = "Idempotency-Key"
	replayHeader = "Idempotent-Replayed"
	// codec names the encoding of kept messages: a google.protobuf.Any.
	codec = "protobuf-any"
)

// Options says how requests are identified. Tenant is required.
type Options struct {
	// Tenant names the account that the key of a request belongs to. [Shared] is for
	// keys that are unique over all accounts. An error, or an empty name, refuses a
	// request that has a key: as CodeUnavailable if the error wraps
	// semel.ErrUnavailable, and else as CodeUnauthenticated.
	Tenant func(ctx context.Context, req connect.AnyRequest) (string, error)
	// Required are the full names of methods that need a key: "/bank.v1.Bank/Pay".
	// Without one they are refused as CodeInvalidArgument, and streams always, as
	// CodeUnimplemented.
	Required []string
	// Wait is how long a duplicate waits for the end of the first request. Zero: it is
	// refused at once as CodeAborted.
	Wait time.Duration
}

// Shared is a Tenant for keys that are unique over all accounts.
func Shared(context.Context, connect.AnyRequest) (string, error) { return semel.Shared, nil }

type interceptor struct {
	run     semel.Runner
	options Options
}

// NewInterceptor makes an interceptor for handlers that runs unary methods once for each
// key. Clients pass it unchanged. Put it after the interceptor that authenticates. run is
// a *semel.Guard. The error reports everything that is wrong with run and o. Safe for
// concurrent use. A method finds its semel.Execution with semel.FromContext.
func NewInterceptor(run semel.Runner, o Options) (connect.Interceptor, error) {
	var errs []error
	if run == nil {
		errs = append(errs, errors.New("semelconnect: run: is nil; pass a *semel.Guard"))
	}
	if o.Tenant == nil {
		errs = append(errs, errors.New("semelconnect: Options.Tenant: is nil; name the account, or set Shared"))
	}
	for _, m := range o.Required {
		if !strings.HasPrefix(m, "/") || strings.Count(m, "/") != 2 {
			errs = append(errs, fmt.Errorf(`semelconnect: Options.Required: %q is not a full method name such as "/bank.v1.Bank/Pay"`, m))
		}
	}
	o.Required = slices.Clone(o.Required)
	return &interceptor{run, o}, errors.Join(errs...)
}

// WrapStreamingClient implements connect.Interceptor.
func (i *interceptor) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

// WrapStreamingHandler refuses streams that carry a key, and those that need one.
func (i *interceptor) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		if slices.Contains(i.options.Required, conn.Spec().Procedure) {
			return refuse(connect.CodeUnimplemented, "stream", 0, "the server requires an idempotency key for this method, and cannot protect a stream; nothing was done")
		}
		if len(conn.RequestHeader()[keyHeader]) > 0 {
			return refuse(connect.CodeUnimplemented, "stream", 0, "a stream cannot be repeated by an idempotency key; send it without the key")
		}
		return next(ctx, conn)
	}
}

// WrapUnary runs a method once for each key.
func (i *interceptor) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		if req.Spec().IsClient {
			return next(ctx, req)
		}
		key, err := semelhttp.ParseKey(req.Header()[keyHeader])
		switch {
		case err != nil:
			return nil, refuse(connect.CodeInvalidArgument, "key_malformed", 0, "the header Idempotency-Key is malformed: "+err.Error())
		case key == "" && slices.Contains(i.options.Required, req.Spec().Procedure):
			return nil, refuse(connect.CodeInvalidArgument, "key_missing", 0,
				"this method needs the header Idempotency-Key: send a new UUID with each new request, and the same with each repeat")
		case key == "":
			return next(ctx, req)
		}
		return i.once(ctx, key, req, next)
	}
}

// once runs a request that has a key.
func (i *interceptor) once(ctx context.Context, key string, req connect.AnyRequest, next connect.UnaryFunc) (connect.AnyResponse, error) {
	method := req.Spec().Procedure
	tenant, err := i.options.Tenant(ctx, req)
	switch err = driver.ReadableError(err); {
	case errors.Is(err, semel.ErrUnavailable): // the service that knows the account does not answer
		return nil, refusalOf(ctx, method, &semel.Error{Reason: semel.ErrUnavailable, Operation: method, Cause: err})
	case err != nil, driver.CheckTenant(tenant) != nil:
		return nil, refuse(connect.CodeUnauthenticated, "tenant_missing", 0, "the account that the idempotency key belongs to is not known")
	}
	payload, err := payloadOf(req.Any())
	if err != nil {
		return nil, misconfigured(ctx, method, err)
	}
	var own connect.AnyResponse // nil: the method did not run, or failed
	call := semel.Call{Operation: method, Tenant: tenant, Key: key, Payload: payload, Wait: i.options.Wait}
	res, err := i.run.Run(ctx, call, func(ctx context.Context, _ *semel.Execution) (store.Outcome, error) {
		resp, err := next(ctx, req)
		if err != nil {
			return store.Outcome{}, judge(err)
		}
		own = resp
		return encode(resp.Any()), nil
	})
	if e, ok := errors.AsType[*unkept](err); ok {
		return nil, e.error
	}
	if f, ok := errors.AsType[*semel.Failure](err); ok {
		return nil, errorOf(f, res.Replayed)
	}
	if err != nil && !errors.Is(err, semel.ErrOutcomeNotStored) { // with it, the result is valid
		return nil, refusalOf(ctx, method, err)
	}
	if own != nil && !res.Replayed { // a replay after a run: that run was undone, and another one committed before it was repeated
		return own, nil
	}
	msg, err := decode(res.Outcome)
	if err != nil {
		return nil, refusalOf(ctx, method, &semel.Error{Reason: semel.ErrNotKept, Operation: method, Cause: err})
	}
	resp := connect.NewResponse(&replay{msg})
	resp.Header().Set(replayHeader, "true")
	return resp, nil
}

// replay is a message whose type only its name tells: connect.NewResponse needs a
// static type.
type replay struct{ proto.Message }

// payloadOf compares requests by their type and their deterministic encoding.
func payloadOf(req any) (semel.Payload, error) {
	msg, ok := req.(proto.Message)
	if !ok {
		return semel.Payload{}, fmt.Errorf("the request is a %T, and not a proto.Message", req)
	}
	body, err := proto.MarshalOptions{Deterministic: true}.Marshal(msg)
	return semel.Bytes([]byte(msg.ProtoReflect().Descriptor().FullName()), body), err
}

// Outcome keeps resp as the response of a parked call: pass it to semel.Happened, in
// semel.Options.Reconcile or for Guard.Resolve. Duplicates get it as they get the response
// of a method. Of any other result, duplicates learn only that the request took effect.
func Outcome(resp proto.Message) store.Outcome { return encode(resp) }

// encode keeps a response. The method has had its effect, so a response that cannot be
// encoded leaves a tombstone.
func encode(resp any) store.Outcome {
	msg, ok := resp.(proto.Message)
	if !ok {
		return store.Outcome{Gone: true}
	}
	wrapped, err := anypb.New(msg)
	if err != nil {
		return store.Outcome{Gone: true}
	}
	body, err := proto.Marshal(wrapped)
	if err != nil {
		return store.Outcome{Gone: true}
	}
	return store.Outcome{Body: body, Codec: codec}
}

func decode(o store.Outcome) (proto.Message, error) {
	if o.Gone || o.Codec != codec {
		return nil, fmt.Errorf("no message is kept; the codec is %q", o.Codec)
	}
	var wrapped anypb.Any
	if err := proto.Unmarshal(o.Body, &wrapped); err != nil {
		return nil, err
	}
	return wrapped.UnmarshalNew()
}
