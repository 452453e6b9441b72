// Package semelmcp makes a tool of an MCP server take effect once, although an agent
// calls it again, and gives each duplicate the first result. It wraps the handlers of
// the official Go SDK.
//
//	once, err := semelmcp.Tool(guard, semelmcp.Options{
//		Tenant: account,
//		Key:    semelmcp.FromArgument("idempotency_key"),
//	}, pay)
//	…
//	mcp.AddTool(server, &mcp.Tool{Name: "pay"}, once)
//
// [Tool] wraps a typed handler, and [RawTool] a handler for Server.AddTool. The
// operation is the name of the tool. In the handler, semel.FromContext finds the
// execution. If the handler needs input from the user, let it do its work after that.
//
// # The key
//
// A model sees the arguments of a tool, and not the _meta of a call. If the model
// repeats calls, use [FromArgument]: describe the argument in the input schema, so that
// the model makes a new key for each new operation. If the program around the model
// repeats calls, use [FromMeta]. [Hash] derives the key from arguments. Then two calls
// that are meant as two, such as two equal payments on one day, count as duplicates for
// semel.Options.Retention. A call without a key is refused, and its agent is told which
// key to send.
//
// With each source a repeat has no further effect, so the tool may set
// Annotations.IdempotentHint.
//
// # What is kept
//
// The handler's error decides, as in semel.Do. A result with IsError counts by the error
// that its SetError was given:
//
//	the handler returned                            the call
//	a result without IsError                        is kept
//	semel.Final(err) or a *semel.Failure            is kept: duplicates get the error's text, or the result with IsError
//	semel.NoEffect(err)                             did nothing: the key is free again
//	a result with InputRequests                     did nothing: the call comes again with the input
//	any other error, or IsError without an error    is in doubt: the Guard's policy decides
//
// The agent gets the error's text, and after it a sentence that says whether and how to
// call again. The SDK refuses arguments that do not fit the input schema before the
// handler of Tool runs, so they use up no key. The SDK does not recover a panic: the
// call is in doubt, and the process ends, unless a receiving middleware recovers it.
//
// A *jsonrpc.Error of the handler stays a protocol error, also in semel.NoEffect. All
// other errors become results with IsError, because models see no protocol errors.
//
// A replay has "semel/replayed": true in its _meta. The first result is encoded as JSON
// and decoded again, so that the first caller gets what the others get. In an Out with
// fields of type any, large numbers lose digits then. If a method of Out panics there, the
// call is kept without its result, as one that is too large.
//
// If a reconciler or an operator knows what a parked call has answered, the verdict is
// semel.Happened(Outcome(res, out)). A result in another form, such as the JSON of the
// console, is not sent: the agent then gets RESULT_NOT_KEPT.
//
// # Refusals
//
// A call that does not run gets a result with IsError whose text begins with one of
// these codes, and says in words why, and whether the agent may call again:
//
//	KEY_MISSING        the call has no key
//	CALL_INVALID       the key or the arguments are not valid
//	TENANT_MISSING     the account is not known
//	PAYLOAD_MISMATCH   the key was used with other arguments
//	IN_PROGRESS        the first call runs, here or elsewhere; call again after some seconds
//	LEASE_LOST         the tool ran longer than its lease; the same
//	ATTEMPT_FAILED     the call that this one waited for failed; the same
//	STORE_UNAVAILABLE  the store did not answer; the same
//	RECORD_UNREADABLE  the record of an earlier call cannot be read; a person has to repair it
//	OUTCOME_UNKNOWN    the call is parked; a person has to decide
//	RESULT_NOT_KEPT    the call took effect, and its result was too large to keep, or
//	                   cannot be encoded or decoded, or an operator gave it in another form
//
// A server that is set up wrongly answers with the protocol error CodeInternalError.
// On the server, a receiving middleware finds the *semel.Error of a refusal in
// CallToolResult.GetError.
//
// # Limits
//
// The payload is all arguments as JSON, unless Options.Payload says otherwise. Arguments
// that the client leaves out differ from arguments that have their default. Prompts and
// resources are not protected. Progress and log messages of the handler go to the first
// caller only.
package semelmcp
