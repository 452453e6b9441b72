// Package semelgrpc makes a unary method of a gRPC server take effect once, although
// its client sends the request again, and gives each duplicate the first answer.
//
//	protect, err := semelgrpc.UnaryServerInterceptor(guard, semelgrpc.Options{Tenant: account, Required: required})
//	...
//	grpc.NewServer(
//		grpc.ChainUnaryInterceptor(authenticate, protect),
//		grpc.ChainStreamInterceptor(semelgrpc.StreamServerInterceptor(required...)))
//
// The client sends a key in the metadata "idempotency-key", and the same key with each
// repeat. The operation is the full name of the method, such as "/bank.v1.Bank/Pay". The
// request message is the payload: another message with the same key is refused. A
// request without a key runs as if there were no interceptor, unless
// Options.Required names its method.
//
// # What is kept
//
// The response message is kept, or the code, message and details of an error. A replay
// has the header "idempotent-replayed: true". Headers and trailers that the method has
// set are not kept. An error of the method counts by its code:
//
//   - The answer, which is kept: InvalidArgument, NotFound, AlreadyExists,
//     FailedPrecondition, OutOfRange.
//   - Nothing was done, so the next duplicate runs the method again: Unauthenticated,
//     PermissionDenied, Unimplemented, Aborted.
//   - In doubt, so the Guard's policy decides: Unknown, Internal, DeadlineExceeded,
//     Canceled, DataLoss; and Unavailable and ResourceExhausted, because a client of gRPC
//     also returns them after its server has done the work.
//
// A plain error is Unknown, and the error of an ended context is DeadlineExceeded or
// Canceled. semel.NoEffect(err) says that nothing was done, whatever the code. Semel does
// not recover a panic: the call is in doubt, and the panic goes on to the interceptors
// outside.
//
// If a reconciler or an operator knows what a parked call has answered, the verdict is
// semel.Happened(Outcome(resp)). A result in another form, such as the JSON of the console,
// is not sent: duplicates then learn that the request took effect, and its response is not
// kept.
//
// # Refusals
//
// Each refusal has a google.rpc.ErrorInfo with the domain "semel" and a reason. If the
// client may send the same request again, a google.rpc.RetryInfo says after which time.
//
//	InvalidArgument     KEY_MISSING, KEY_MALFORMED, PAYLOAD_MISMATCH
//	Unauthenticated     TENANT_MISSING
//	Aborted             IN_PROGRESS, LEASE_LOST (with RetryInfo)
//	FailedPrecondition  OUTCOME_UNKNOWN, RESULT_NOT_KEPT, FAILED, RECORD_UNREADABLE
//	Unavailable         STORE_UNAVAILABLE, ATTEMPT_FAILED (with RetryInfo)
//	Unimplemented       STREAM
//	Internal            MISCONFIGURED
//
// A method may call another service that Semel protects, by package semelgrpc or semelconnect,
// and return its refusal. Then this interceptor does not keep the refusal. OUTCOME_UNKNOWN
// counts as doubt, and so does a code that always does, such as Unavailable. Each other refusal
// says that nothing was done. FAILED and RESULT_NOT_KEPT are results and no refusals: they are
// kept.
//
// # Limits
//
// Streams are not protected. StreamServerInterceptor refuses each stream that carries a key,
// and each stream of a required method. The payload is the message's deterministic encoding,
// which a new version of the protobuf library or of the message's schema may change;
// duplicates of earlier requests are then refused as PAYLOAD_MISMATCH. The response's type
// must be linked into the program.
package semelgrpc
