package museum

// Calls of remote methods: the key, the account and the message of a request, and the
// code that answers it.
var rpcs = []Mutant{
	{
		Name: "gRPC: a code that leaves doubt is kept as the answer", Rule: "rule 9",
		Dir: rpc, Func: "judge", Package: rpc, Run: "TestUnary_EachCode_FollowsTheTable",
		Old: "case effects[s.Code()] == kept:", New: "case effects[s.Code()] != nothingDone:",
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
		Name: "Connect: a code that leaves doubt is kept as the answer", Rule: "rule 9",
		Dir: conn, Func: "judge", Package: conn, Run: "TestUnary_EachCode_FollowsTheTable",
		Old: "case ok && effects[e.Code()] == kept:", New: "case ok && effects[e.Code()] != nothingDone:",
	},
	{
		Name: "Connect: NoEffect leaves the key in doubt", Rule: "rule 9",
		Dir: conn, Func: "judge", Package: conn, Run: "TestUnary_NoEffect_KeyIsFreeForAnyMessage",
		Old: "driver.IsNoEffect(err)", New: "driver.IsNoEffect(err) && !ok",
	},
	{
		Name: "Connect: accounts share their keys", Rule: "scope",
		Dir: conn, Func: "(*interceptor).once", Package: conn, Run: "TestUnary_SameKeyOfTwoTenants_EachRunsOnce",
		Old: "Tenant: tenant", New: "Tenant: semel.Shared",
	},
	{
		Name: "Connect: a stream with a key passes unprotected", Rule: "http",
		Dir: conn, Func: "(*interceptor).WrapStreamingHandler", Package: conn, Run: "TestStream_WithKey_IsRefused",
		Old: "len(conn.RequestHeader()[keyHeader]) > 0", New: "len(conn.RequestHeader()[keyHeader]) > 1",
	},
}
