package museum

// A Guard with a secret hashes the tenant and the key of each call once.
var hashedKeys = []Mutant{
	{
		Name: "hashed keys: equal keys of two tenants look equal", Rule: "hashed",
		Dir: seam, Func: "Key.Hashed", Package: seam, Run: "TestHashed_OtherKeyOrSecret_Differs",
		Old: "k.Tenant, k.Value)", New: "k.Value)",
	},
	{
		Name: "hashed keys: tenant and key run together", Rule: "hashed",
		Dir: seam, Func: "keyedHash", Package: seam, Run: "TestHashed_OtherKeyOrSecret_Differs",
		Old: "uint32(len(field))", New: "0",
	},
	{
		Name: "hashed keys: the hash has no secret", Rule: "hashed",
		Dir: seam, Func: "keyedHash", Package: seam, Run: "TestHashed_OtherKeyOrSecret_Differs",
		Old: "hmac.New(sha256.New, secret)", New: "hmac.New(sha256.New, secret[:0])",
	},
	{
		Name: "hashed keys: a redeemed call is hashed again", Rule: "hashed",
		Dir: core, Func: "(*Call).storeKey", Package: core, Run: "TestHashKeys_EachWayToARecord_HashedOnce",
		Old: "if c.stored {", New: "if c.rerun {",
	},
	{
		Name: "hashed keys: the second key of a rerun is in the clear", Rule: "hashed",
		Dir: core, Func: "(*Guard).rerun", Package: core, Run: "TestHashKeys_Rerun_SecondKeyIsHashedOnce",
		Old: "time.Time{}, true", New: "time.Time{}, true\n	call.stored = true",
	},
	{
		Name: "hashed keys: an operator's Get looks for the key in the clear", Rule: "hashed",
		Dir: core, Func: "(*Guard).Get", Package: core, Run: "TestHashKeys_EachWayToARecord_HashedOnce",
		Old: "call.storeKey(&g.options)", New: "call.storeKey(&Options{})",
	},
	{
		Name: "hashed keys: a batch of transactions is in the clear", Rule: "hashed",
		Dir: core, Func: "(*txCall).init", Package: core, Run: "TestRunIn_HashKeys_HashedOnce",
		Old: "*t = txCall{pendingCall: g.newPendingCall(call)}", New: "call.stored = true\n	*t = txCall{pendingCall: g.newPendingCall(call)}",
	},
	{
		Name: "hashed keys: an empty secret turns them off", Rule: "hashed",
		Dir: core, Func: "(*Options).validate", Package: core, Run: "TestNew_UnfitHashKeys_IsRefused",
		Old: "o.HashKeys != nil && n < minHashKeys", New: "n > 0 && n < minHashKeys",
	},
	{
		Name: "hashed keys: a rule of the proxy stores keys in the clear", Rule: "hashed",
		Dir: sidecar, Func: "(*Proxy).options", Package: sidecar, Run: "TestHashKeys_Parked_HookAsksAboutTheHashThatTheServiceGot",
		Old: "HashKeys: p.HashKeys,", New: "",
	},
	{
		Name: "hashed keys: the service cannot tell which request the hook is asked about", Rule: "hashed",
		Dir: upstream, Func: "(*Upstream).rewrite", Package: sidecar, Run: "TestHashKeys_Parked_HookAsksAboutTheHashThatTheServiceGot",
		Old: "h.Set(KeyHashHeader, x.Key())", New: "h.Del(KeyHashHeader)",
	},
	{
		Name: "hashed keys: an import stores keys in the clear", Rule: "hashed",
		Dir: "cmd/semel/internal/importer", Func: "(*Defaults).record", Package: "cmd/semel/internal/importer", Run: "TestRecord_HashKeys_KeyIsTheHashOfTheRow",
		Old: "r.Key = r.Key.Hashed(d.HashKeys)", New: "",
	},
	{
		Name: "hashed keys: a start with other options than the records have says nothing", Rule: "hashed",
		Dir: program, Func: "WarnRecords", Package: program, Run: "TestWarnRecords_WrittenWithOtherOptions",
		Old: "otherKeys || isHashed(r.Key) != hashed", New: "otherKeys",
	},
	{
		Name: "a start without the secret that has hashed the records says nothing", Rule: "rule 12",
		Dir: program, Func: "WarnRecords", Package: program, Run: "TestWarnRecords_WrittenWithOtherOptions",
		Old: `id != "" && !slices.ContainsFunc`, New: `id == "" && !slices.ContainsFunc`,
	},
	{
		Name: "hashed keys: the log shows the query of a request", Rule: "hashed",
		Dir: "cmd/semel/internal/input", Func: "Path", Package: sidecar, Run: "TestLog_LinesAboutRequests",
		Old: "u.EscapedPath()", New: "u.RequestURI()",
	},
}
