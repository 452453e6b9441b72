package museum

// What stands between a client and a service in another language must not make
// two effects of one request, nor take for an answer what is none.
var sidecars = []Mutant{
	{
		Name: "that no answer came is kept as the answer", Rule: "doubt",
		File: "cmd/semel/internal/upstream/answer.go", Package: sidecar, Run: "TestKeep5xx_NoAnswer_StaysInDoubt",
		Old: "\tlevel := slog.LevelWarn\n",
		New: "\tif r.Context().Value(keep5xxKey{}) != nil {\n\t\tsemelhttp.Final(r)\n\t}\n\tlevel := slog.LevelWarn\n",
	},
	{
		Name: "a protected GET is sent twice", Rule: "sent twice",
		File: "cmd/semel/internal/upstream/request.go", Package: sidecar, Run: "TestProtectedGet_ConnectionBreaks_SentOnce",
		Old: "\tif keyed {\n\t\tpreventResend(pr.Out)\n\t}\n", New: "",
	},
	{
		Name: "trailers of a request are lost", Rule: "http",
		File: "cmd/semel/internal/upstream/request.go", Package: upstream, Run: "TestRequestTrailers_ReachUpstream",
		Old: "\tu.trailers(pr)\n", New: "",
	},
	{
		Name: "a trailer is a header that decides", Rule: "scope",
		File: "cmd/semel/internal/upstream/trailer.go", Package: sidecar, Run: "TestTrailer_ProtectedName_Dropped",
		Old: " && !u.opt.Protected[name]", New: "",
	},
	{
		Name: "what was sent on an earlier connection does not count", Rule: "rule 9",
		File: "cmd/semel/internal/upstream/sent.go", Package: upstream, Run: "TestNotSent_SentOnEarlierConnection_False",
		Old: "\t\ts.doubt = true\n\t}\n\tif s.conn, _ = c.(*conn)", New: "\t}\n\tif s.conn, _ = c.(*conn)",
	},
	{
		Name: "a path without its last slash is of no rule", Rule: "policy",
		File: "cmd/semel/internal/proxy/router.go", Package: sidecar, Run: "TestRules_PathWithoutFinalSlash|TestRules_RootRule",
		Old: "\th, _ = d.subtrees.Handler(&dir)\n", New: "\th = d.rest\n",
	},
	{
		Name: "a host in capitals is of no rule", Rule: "policy",
		File: "cmd/semel/internal/proxy/router.go", Package: sidecar, Run: "TestRule_HostInCapitalsOrWithDot_Applies",
		Old: "host = config.Host(host); host == r.Host {", New: "host = config.Host(host); host != \"\" {",
	},
	{
		Name: "the proxy's secrets key nothing", Rule: "rule 12",
		File: "cmd/semel/internal/proxy/route.go", Package: sidecar, Run: "TestSecrets_Rotated_OldStillCompares",
		Old: ", Secrets: p.Secrets,", New: ",",
	},
	{
		Name: "a reconciler is asked about another tenant", Rule: "rule 17",
		File: "cmd/semel/internal/hook/reconcile.go", Package: hooks, Run: "TestReconcile_KeyNotUTF8_NotAsked",
		Old: "if !utf8.ValidString(v) {", New: "if false && !utf8.ValidString(v) {",
	},
}
