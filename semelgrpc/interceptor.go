package semelgrpc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/driver"
	"github.com/semel-go/semel/semelhttp"
	"github.com/semel-go/semel/store"
)

const (
	keyHeader    = "idempotency-key"
	replayHeader = "idempotent-replayed"
	// codec names the encoding of kept messages: a google.protobuf.Any.
	codec = "protobuf-any"
)

// Options says how requests are identified. Tenant is required.
type Options struct {
	// Tenant names the account that the key of a request belongs to, from the context
	// that the interceptors before have filled. [Shared] is for keys that are unique
	// over all accounts. An error, or an empty name, refuses a request that has a key:
	// as Unavailable if the error wraps semel.ErrUnavailable, and else as
	// Unauthenticated.
	Tenant func(ctx context.Context) (string, error)
	// Required are the full names of methods that need a key: "/bank.v1.Bank/Pay".
	// Without one they are refused as InvalidArgument. Pass the names to
	// StreamServerInterceptor, too: a required method that is a stream is refused there.
	Required []string
	// Wait is how long a duplicate waits for the end of the first request. Zero: it is
	// refused at once as Aborted.
	Wait time.Duration
}

// Shared is a Tenant for keys that are unique over all accounts.
func Shared(context.Context) (string, error) { return semel.Shared, nil }

// UnaryServerInterceptor makes an interceptor that runs unary methods once for each key.
// Put it after the interceptor that authenticates. run is a *semel.Guard. The error
// reports everything that is wrong with run and o. The interceptor is safe for
// concurrent use. A method finds its semel.Execution with semel.FromContext.
func UnaryServerInterceptor(run semel.Runner, o Options) (grpc.UnaryServerInterceptor, error) {
	var errs []error
	if run == nil {
		errs = append(errs, errors.New("semelgrpc: run: is nil; pass a *semel.Guard"))
	}
	if o.Tenant == nil {
		errs = append(errs, errors.New("semelgrpc: Options.Tenant: is nil; name the account, or set Shared"))
	}
	for _, m := range o.Required {
		if !strings.HasPrefix(m, "/") || strings.Count(m, "/") != 2 {
			errs = append(errs, fmt.Errorf(`semelgrpc: Options.Required: %q is not a full method name such as "/bank.v1.Bank/Pay"`, m))
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	o.Required = slices.Clone(o.Required)
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		required := slices.Contains(o.Required, info.FullMethod)
		key, err := semelhttp.ParseKey(metadata.ValueFromIncomingContext(ctx, keyHeader))
		switch {
		case err != nil:
			return nil, refuse(codes.InvalidArgument, "KEY_MALFORMED", 0, "the metadata idempotency-key is malformed: "+err.Error())
		case key == "" && required:
			return nil, refuse(codes.InvalidArgument, "KEY_MISSING", 0,
				"this method needs the metadata idempotency-key: send a new UUID with each new request, and the same with each repeat")
		case key == "":
			return handler(ctx, req)
		}
		return o.run(ctx, run, key, req, info.FullMethod, handler)
	}, nil
}

// run runs a request that has a key.
func (o *Options) run(ctx context.Context, run semel.Runner, key string, req any, method string, handler grpc.UnaryHandler) (any, error) {
	tenant, err := o.Tenant(ctx)
	switch err = driver.ReadableError(err); {
	case errors.Is(err, semel.ErrUnavailable): // the service that knows the account does not answer
		return nil, refusalOf(ctx, method, &semel.Error{Reason: semel.ErrUnavailable, Operation: method, Cause: err})
	case err != nil, driver.CheckTenant(tenant) != nil:
		return nil, refuse(codes.Unauthenticated, "TENANT_MISSING", 0, "the account that the idempotency-key belongs to is not known")
	}
	payload, err := payloadOf(req)
	if err != nil {
		return nil, misconfigured(ctx, method, err)
	}
	call := semel.Call{Operation: method, Tenant: tenant, Key: key, Payload: payload, Wait: o.Wait}
	res, err := run.Run(ctx, call, func(ctx context.Context, _ *semel.Execution) (store.Outcome, error) {
		resp, err := handler(ctx, req)
		if err != nil {
			return store.Outcome{}, judge(err)
		}
		return encode(resp), nil
	})
	if own, ok := errors.AsType[*unkept](err); ok {
		return nil, own.error
	}
	if f, ok := errors.AsType[*semel.Failure](err); ok {
		st, ours := keptStatus(f)
		if !ours {
			return nil, refusalOf(ctx, method, f)
		}
		markReplay(ctx, res.Replayed)
		return nil, st.Err()
	}
	if err != nil && !errors.Is(err, semel.ErrOutcomeNotStored) { // with it, the result is valid
		return nil, refusalOf(ctx, method, err)
	}
	msg, err := decode(res.Outcome)
	if err != nil {
		return nil, refusalOf(ctx, method, &semel.Error{Reason: semel.ErrNotKept, Operation: method, Cause: err})
	}
	markReplay(ctx, res.Replayed)
	return msg, nil
}

// markReplay sets the header of a replay. Without a server's stream in ctx, as in a
// direct call of the interceptor, there is no header to set.
func markReplay(ctx context.Context, replayed bool) {
	if replayed {
		_ = grpc.SetHeader(ctx, metadata.Pairs(replayHeader, "true"))
	}
}

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

// StreamServerInterceptor refuses streams that carry a key as Unimplemented, so that no
// client believes that they are protected. It also refuses all streams of the required
// methods, which are full names as in Options.Required. All other streams pass.
func StreamServerInterceptor(required ...string) grpc.StreamServerInterceptor {
	required = slices.Clone(required)
	return func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		if slices.Contains(required, info.FullMethod) {
			return refuse(codes.Unimplemented, "STREAM", 0, "the server requires an idempotency-key for this method, and cannot protect a stream; nothing was done")
		}
		if len(metadata.ValueFromIncomingContext(ss.Context(), keyHeader)) > 0 {
			return refuse(codes.Unimplemented, "STREAM", 0, "a stream cannot be repeated by an idempotency-key; send it without the key")
		}
		return handler(srv, ss)
	}
}
