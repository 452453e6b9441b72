package museum

// A request has to mean the same to the proxy and to the service: its key, its tenant, its site
// and its client. A replay must not fill the memory while a hook decides about it.
var sidecarRequests = []Mutant{
	{
		Name: "replays fill the memory while the authorizer is asked", Rule: "limits",
		Dir: sidecar, Func: "(*Proxy).mayReplay", Package: sidecar, Run: "TestReplay_HookIsSlow",
		Old: "v.Hold(n)", New: "v.Hold(0)",
	},
	{
		Name: "a replay that is refused before the authorizer was asked tells that the operation is done", Rule: "limits",
		Dir: sidecar, Func: "limited", Package: sidecar, Run: "TestReplay_HookIsSlow",
		Old: "p = problem.AuthorizerUnavailable", New: "p = problem.ReplaysFull",
	},
	{
		Name: "a trusted gateway on a Unix socket loses the address of its client", Rule: "http",
		Dir: upstream, Func: "(*Upstream).forwarded", Package: upstream, Run: "TestTrustForwarded_UnixSocket",
		Old: `len(out["X-Forwarded-For"]) == 0`, New: `len(out["X-Forwarded-For"]) > 1`,
	},
	{
		Name: "the authorizer is not told the address that a gateway on a Unix socket has sent", Rule: "http",
		Dir: hooks, Func: "(*Hook).asked", Package: hooks, Run: "TestAuthorize_UnixPeer",
		Old: "case err != nil:", New: "case err != nil && h == nil:",
	},
	{
		Name: "a trailer with the name of a tenant that has an underscore passes", Rule: "scope",
		Dir: upstream, Func: "New", Package: sidecar, Run: "TestTrailer_LooksProtected",
		Old: "u.protected[hyphened(name)]", New: "u.protected[name]",
	},
	{
		Name: "sidecar: a body of brackets takes many times its size in memory", Rule: "isolation",
		Dir: sidecar, Func: "(*fieldReader).skip", Package: sidecar, Run: "TestKeyFrom_DeepBody_RefusedAndMemoryBounded",
		Old: "depth > maxDepth", New: "depth < 0",
	},
	{
		Name: "a field in other capitals is no key for the proxy, and one for the service", Rule: "scope",
		Dir: sidecar, Func: "(*fieldReader).otherCapitals", Package: sidecar, Run: "TestKeyFrom_OtherCapitals",
		Old: "strings.EqualFold(want, name)", New: "want == name",
	},
	{
		Name: "a reopened record forgets its steps before a message is redriven", Rule: "steps",
		Dir: "cmd/semel/internal/cli", Func: "type inspectReopenCmd", Package: "cmd/semel/internal/cli", Run: "TestInspectReopen_Default",
		Old: `default:"7d"`, New: `default:"1d"`,
	},
	{
		Name: "the sites of a trusted gateway share their answers", Rule: "http",
		Dir: sidecar, Func: "compared", Package: sidecar, Run: "TestTrustForwarded_OtherForwardedHost",
		Old: "append(names, forwardedHost)", New: "names",
	},
	{
		Name: "methods that the server protects are one operation", Rule: "scope",
		Dir: door, Func: "routeWith", Package: door, Run: "TestOperation_ProtectedMethod",
		Old: "route(r, capitals)", New: "route(r, nil)",
	},
	{
		Name: "the overview says that no saga is stuck beside a record that cannot be read", Rule: "console",
		Dir: consoleDir, Func: "(*Console).overview", Package: consoleDir, Run: "TestOverview_RecordCannotBeRead",
		Old: "if data.Sagas, err = c.inDoubt(ctx, true); err != nil {",
		New: `data.Sagas, err = c.inDoubt(ctx, true)
	data.Sagas.Unreadable = 0
	if err != nil {`,
	},
}
