package museum

// Calls of remote methods and of tools: the key, the account and the message of a request,
// and the answer that is kept.
var rpcs = []Mutant{
	{
		Name: "gRPC: a code that leaves doubt is kept as the answer", Rule: "rule 9",
		Dir: rpc, Func: "judge", Package: rpc, Run: "TestUnary_EachCode_FollowsTheTable",
		Old: "case effects[s.Code()] == kept:", New: "case effects[s.Code()] != nothingDone:",
	},
	{
		Name: "gRPC: a failure inside NoEffect is kept", Rule: "doubt",
		Dir: rpc, Func: "judge", Package: rpc, Run: "TestUnary_HandlerMarksOrReturnsPlainError",
		Old: "if driver.IsNoEffect(err) {", New: "if _, failed := errors.AsType[*semel.Failure](err); driver.IsNoEffect(err) && !failed {",
	},
	{
		Name: "gRPC: the details of a kept error are lost", Rule: "rule 8",
		Dir: rpc, Func: "failureOf", Package: rpc, Run: "TestUnary_EachCode_FollowsTheTable",
		Old: "Data: data", New: "Data: data[:0]",
	},
	{
		Name: "gRPC: the request message is not compared", Rule: "rule 12",
		Dir: rpc, Func: "payloadOf", Package: rpc, Run: "TestUnary_Refused_HasReasonAndNoEffect",
		Old: "FullName()), body)", New: "FullName()), body[:0])",
	},
	{
		Name: "gRPC: the refusal of another Semel is kept as the result", Rule: "rule 9",
		Dir: rpc, Func: "judge", Package: rpc, Run: "TestUnary_MethodReturnsRefusal",
		Old: ", effects[s.Code()] == kept && refusal != \"\":", New: ":",
	},
	{
		Name: "gRPC: a call that another Semel has parked counts as not done", Rule: "doubt",
		Dir: rpc, Func: "judge", Package: rpc, Run: "TestUnary_MethodReturnsRefusal",
		Old: "case refusal == outcomeUnknown:", New: "case false:",
	},
	{
		Name: "Connect: the refusal of another Semel is kept as the result", Rule: "rule 9",
		Dir: conn, Func: "judge", Package: conn, Run: "TestUnary_MethodReturnsRefusal",
		Old: ", ok && effects[e.Code()] == kept && refusal != \"\":", New: ":",
	},
	{
		Name: "Connect: the refusal of a gRPC server is kept as the result", Rule: "rule 9",
		Dir: conn, Func: "refusalIn", Package: "test/refusals", Run: "TestUnary_RefusalOverTheOtherProtocol",
		Old: "info.Domain == domain", New: "info.Domain == \"\"",
	},
	{
		Name: "Connect: a gRPC client cannot tell a refusal from a result", Rule: "rule 9",
		Dir: conn, Func: "refuse", Package: "test/refusals", Run: "TestUnary_RefusalOverTheOtherProtocol",
		Old: "e.AddDetail(d)", New: "_ = d",
	},
	{
		Name: "Connect: a call that another Semel has parked counts as not done", Rule: "doubt",
		Dir: conn, Func: "judge", Package: conn, Run: "TestUnary_MethodReturnsRefusal",
		Old: "case refusal == outcomeUnknown:", New: "case false:",
	},
	{
		Name: "Connect: a code that leaves doubt is kept as the answer", Rule: "rule 9",
		Dir: conn, Func: "judge", Package: conn, Run: "TestUnary_EachCode_FollowsTheTable",
		Old: "case ok && effects[e.Code()] == kept:", New: "case ok && effects[e.Code()] != nothingDone:",
	},
	{
		Name: "Connect: NoEffect leaves the key in doubt", Rule: "rule 9",
		Dir: conn, Func: "judge", Package: conn, Run: "TestUnary_NoEffect_KeyIsFreeForAnyMessage",
		Old: "driver.IsNoEffect(err)", New: "driver.IsNoEffect(err) && err == nil",
	},
	{
		Name: "Connect: a failure inside NoEffect is kept", Rule: "doubt",
		Dir: conn, Func: "judge", Package: conn, Run: "TestUnary_NoEffect_KeyIsFreeForAnyMessage",
		Old: "if driver.IsNoEffect(err) {", New: "if _, failed := errors.AsType[*semel.Failure](err); driver.IsNoEffect(err) && !failed {",
	},
	{
		Name: "Connect: the client gets the response of a run that was undone", Rule: "atomic",
		Dir: conn, Func: "(*interceptor).once", Package: conn, Run: "TestUnary_RunIsUndone",
		Old: "own != nil && !res.Replayed", New: "own != nil",
	},
	{
		Name: "Connect: accounts share their keys", Rule: "scope",
		Dir: conn, Func: "(*interceptor).once", Package: conn, Run: "TestUnary_SameKeyOfTwoTenants_EachRunsOnce",
		Old: "Tenant: tenant", New: "Tenant: semel.Shared",
	},
	{
		Name: "Connect: a stream with a key passes unprotected", Rule: "http",
		Dir: conn, Func: "(*interceptor).WrapStreamingHandler", Package: conn, Run: "TestStream_WithKeyOrRequired_IsRefused",
		Old: "len(conn.RequestHeader()[keyHeader]) > 0", New: "len(conn.RequestHeader()[keyHeader]) > 1",
	},
	{
		Name: "MCP: a result with IsError and without a verdict is kept", Rule: "rule 9",
		Dir: tool, Func: "judge", Package: tool, Run: "TestTool_EachAnswer_FollowsTheTable",
		Old: "case res.IsError && res.GetError() == nil:", New: "case res.IsError && res.GetError() == nil && false:",
	},
	{
		Name: "MCP: a result that asks for input is kept", Rule: "rule 9",
		Dir: tool, Func: "judge", Package: tool, Run: "TestTool_NeedsInput",
		Old: "case res.InputRequests != nil:", New: "case res.InputRequests != nil && false:",
	},
	{
		Name: "MCP: the agent may think that a parked call did nothing", Rule: "rule 9",
		Dir: tool, Func: "adviceAfter", Package: tool, Run: "TestTool_EachAnswer_FollowsTheTable",
		Old: "case policy == semel.Park:", New: "case policy == semel.Park && false:",
	},
	{
		Name: "MCP: the content of a kept error is lost", Rule: "rule 8",
		Dir: tool, Func: "failureOf", Package: tool, Run: "TestTool_EachAnswer_FollowsTheTable",
		Old: "o.Body...)", New: "o.Body[:0]...)",
	},
	{
		Name: "MCP: a replay without content does not show its output", Rule: "rule 8",
		Dir: tool, Func: "decode", Package: tool, Run: "TestTool_Result_FirstAndReplayAreEqual",
		Old: "res.Content = nil", New: "_ = res.Content",
	},
	{
		Name: "MCP: the arguments are not compared", Rule: "rule 12",
		Dir: tool, Func: "(*Options).call", Package: tool, Run: "TestTool_Refused_SaysWhatToDo",
		Old: "semel.JSON(argumentsOf(req))", New: "semel.NoPayload()",
	},
	{
		Name: "MCP: a derived key leaves out the arguments' values", Rule: "rule 12",
		Dir: tool, Func: "Hash", Package: tool, Run: "TestKeySource_EachCall",
		Old: "chosen[name] = v", New: "chosen[name] = v == nil",
	},
	{
		Name: "gRPC: the hint for a run in progress is the rest of its lease", Rule: "http",
		Dir: rpc, Func: "refusalOf", Package: rpc, Run: "TestUnary_InProgressOnAnotherServer",
		Old: "driver.RetryHint(e)", New: "e.RetryAfter",
	},
	{
		Name: "Connect: the hint for a run in progress is the rest of its lease", Rule: "http",
		Dir: conn, Func: "refusalOf", Package: conn, Run: "TestUnary_InProgressOnAnotherServer",
		Old: "driver.RetryHint(e)", New: "e.RetryAfter",
	},
	{
		Name: "MCP: the hint for a run in progress is the rest of its lease", Rule: "http",
		Dir: tool, Func: "refusalOf", Package: tool, Run: "TestTool_InProgress_TellsWhenToCallAgain",
		Old: "driver.RetryHint(e)", New: "e.RetryAfter",
	},
	{
		Name: "gRPC: a stream that needs a key runs without one", Rule: "http",
		Dir: rpc, Func: "StreamServerInterceptor", Package: rpc, Run: "TestStream_Required_IsRefusedWithoutKey",
		Old: "slices.Contains(required, info.FullMethod)", New: "false",
	},
	{
		Name: "Connect: a stream that needs a key runs without one", Rule: "http",
		Dir: conn, Func: "(*interceptor).WrapStreamingHandler", Package: conn, Run: "TestStream_WithKeyOrRequired_IsRefused",
		Old: "slices.Contains(i.options.Required, conn.Spec().Procedure)", New: "false",
	},
	{
		Name: "gRPC: an outage of the account service tells the client to sign in", Rule: "http",
		Dir: rpc, Func: "(*Options).run", Package: rpc, Run: "TestUnary_TenantCannotBeFound_OutageIsUnavailable",
		Old: "errors.Is(err, semel.ErrUnavailable):", New: "false:",
	},
	{
		Name: "Connect: an outage of the account service tells the client to sign in", Rule: "http",
		Dir: conn, Func: "(*interceptor).once", Package: conn, Run: "TestUnary_TenantCannotBeFound_OutageIsUnavailable",
		Old: "errors.Is(err, semel.ErrUnavailable):", New: "false:",
	},
	{
		Name: "gRPC: the result of a reconciler reaches no duplicate", Rule: "rule 17",
		Dir: rpc, Func: "Outcome", Package: rpc, Run: "TestOutcome_OfParkedCall_DuplicateGetsResponse",
		Old: "encode(resp)", New: `store.Outcome{Body: encode(resp).Body, Codec: "json"}`,
	},
	{
		Name: "Connect: the result of a reconciler reaches no duplicate", Rule: "rule 17",
		Dir: conn, Func: "Outcome", Package: conn, Run: "TestOutcome_OfParkedCall_DuplicateGetsResponse",
		Old: "encode(resp)", New: `store.Outcome{Body: encode(resp).Body, Codec: "json"}`,
	},
	{
		Name: "MCP: the result of a reconciler reaches no duplicate", Rule: "rule 17",
		Dir: tool, Func: "Outcome", Package: tool, Run: "TestOutcome_OfParkedCall_DuplicateGetsResult",
		Old: "encode(res, out)", New: `store.Outcome{Body: encode(res, out).Body, Codec: "json"}`,
	},
	{
		Name: "MCP: a result whose encoding panics leaves the call in doubt", Rule: "rule 10",
		Dir: tool, Func: "encode", Package: tool, Run: "TestTool_ResultPanicsWhenEncodedOrDecoded_RunsOnce",
		Old: "if recover() != nil {", New: "if false {",
	},
	{
		Name: "MCP: a result whose decoding panics ends the process at each replay", Rule: "rule 8",
		Dir: tool, Func: "decode", Package: tool, Run: "TestTool_ResultPanicsWhenEncodedOrDecoded_RunsOnce",
		Old: "if p := recover(); p != nil {", New: "if p := any(nil); p != nil {",
	},
	{
		Name: "MCP: a client sends the key of another call's arguments", Rule: "scope",
		Dir: tool, Func: "checkKey", Package: tool, Run: "TestKeySource_KeyInTheFormOfHash_IsRefused",
		Old: "if strings.HasPrefix(key, hashPrefix) {", New: "if false {",
	},
}
