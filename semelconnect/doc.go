// Package semelconnect makes a unary method of a Connect server take effect once,
// although its client sends the request again, and gives each duplicate the first answer.
//
//	protect, err := semelconnect.NewInterceptor(guard, semelconnect.Options{Tenant: account})
//	...
//	bankv1connect.NewBankHandler(bank, connect.WithInterceptors(authenticate, protect))
//
// The client sends a key in the header "Idempotency-Key", and the same key with each
// repeat. The operation is the full name of the method, such as "/bank.v1.Bank/Pay". The
// request message is the payload: another message with the same key is refused. A
// request without a key runs as if there were no interceptor, unless
// Options.Required names its method.
//
// # What is kept
//
// The response message is kept, or the code, message and details of an error. A replay
// has the header "Idempotent-Replayed: true". Headers and trailers that the method has
// set are not kept. An error of the method counts by its code:
//
//   - The answer, which is kept: CodeInvalidArgument, CodeNotFound, CodeAlreadyExists,
//     CodeFailedPrecondition, CodeOutOfRange.
//   - Nothing was done, so the next duplicate runs the method again:
//     CodeUnauthenticated, CodePermissionDenied, CodeUnimplemented, CodeAborted.
//   - In doubt, so the Guard's policy decides: all others, and a plain error. A client
//     also returns CodeUnavailable and CodeResourceExhausted after its server has done
//     the work.
//
// semel.NoEffect(err) says that nothing was done, whatever the code. Semel does not
// recover a panic: the call is in doubt, and the panic goes on.
//
// If a reconciler or an operator knows what a parked call has answered, the verdict is
// semel.Happened(Outcome(resp)). A result in another form, such as the JSON of the console,
// is not sent: duplicates then learn that the request took effect, and its response is not
// kept.
//
// # Refusals
//
//	CodeInvalidArgument     no key, a malformed key, or another message with the key
//	CodeUnauthenticated     the tenant is not known
//	CodeAborted             in progress, or the lease is lost: repeat with the same key
//	CodeFailedPrecondition  not known whether it took effect; or it failed for good; or
//	                        it took effect, and the response is not kept; or its
//	                        record cannot be read: the log says why
//	CodeUnavailable         the store, or the service that knows the tenant, does not
//	                        answer; or the first attempt failed: repeat with the same key
//	CodeUnimplemented       a stream with a key, or of a method in Options.Required
//	CodeInternal            the interceptor is set up wrongly
//
// Aborted and Unavailable have the header "Retry-After" in seconds. Each refusal has the header
// "Semel-Refusal" with its reason, and a detail google.rpc.ErrorInfo with the domain "semel" and
// the reason in capitals, except the two that tell how the request ended: it failed for
// good, or its response is not kept.
//
// A method may call another service that Semel protects, by package semelconnect or semelgrpc,
// and return its refusal. Then this interceptor does not keep the refusal. "outcome_unknown" counts as doubt, and so does a
// code that always does, such as CodeUnavailable. Each other refusal says that nothing was
// done.
//
// # Limits
//
// Streams with a key are refused, because they are not protected, and so are streams of the
// methods in Options.Required. An interceptor outside of this one finds in a replay a
// response whose Any is a proto.Message, but not of the generated type. The payload is the
// message's deterministic encoding, which a new version of the schema or of the protobuf
// library may change. The response's type must be linked into the program.
package semelconnect
