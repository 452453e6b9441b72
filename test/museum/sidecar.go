package museum

// What stands between a client and a service in another language must not make
// two effects of one request, nor take for an answer what is none.
var sidecars = []Mutant{
	{
		Name: "that no answer came is kept as the answer", Rule: "doubt",
		Dir: upstream, Func: "(*Upstream).onFailure", Package: sidecar, Run: "TestKeep5xx_NoAnswer_StaysInDoubt",
		Old: "level := slog.LevelWarn",
		New: `
			if r.Context().Value(keep5xxKey{}) != nil {
				semelhttp.Final(r)
			}
			level := slog.LevelWarn`,
	},
	{
		Name: "a protected GET is sent twice", Rule: "sent twice",
		Dir: upstream, Func: "(*Upstream).rewrite", Package: sidecar, Run: "TestProtectedGet_ConnectionBreaks_SentOnce",
		Old: `
			if keyed {
				preventResend(pr.Out)
			}`,
		New: "",
	},
	{
		Name: "trailers of a request are lost", Rule: "http",
		Dir: upstream, Func: "(*Upstream).rewrite", Package: upstream, Run: "TestRequestTrailers_ReachUpstream",
		Old: "u.trailers(pr)", New: "",
	},
	{
		Name: "a trailer is a header that decides", Rule: "scope",
		Dir: upstream, Func: "(*Upstream).trailerAllowed", Package: sidecar, Run: "TestTrailer_ProtectedName_Dropped",
		Old: "&& !u.opt.Protected[name]", New: "",
	},
	{
		Name: "what was sent on an earlier connection does not count", Rule: "rule 9",
		Dir: upstream, Func: "(*transmission).gotConn", Package: upstream, Run: "TestNotSent_SentOnEarlierConnection_False",
		Old: `
				s.doubt = true
			}
			if s.conn, _ = c.(*conn)`,
		New: `
			}
			if s.conn, _ = c.(*conn)`,
	},
	{
		Name: "a path without its last slash is of no rule", Rule: "policy",
		Dir: sidecar, Func: "(*router).find", Package: sidecar, Run: "TestRules_PathWithoutFinalSlash|TestRules_RootRule",
		Old: "h, _ = d.subtrees.Handler(&dir)", New: "h = d.rest",
	},
	{
		Name: "a host in capitals is of no rule", Rule: "policy",
		Dir: sidecar, Func: "plainHost", Package: sidecar, Run: "TestRule_HostInCapitalsOrWithDot_Applies",
		Old: "host = config.Host(host); host == r.Host {", New: `host = config.Host(host); host != "" {`,
	},
	{
		Name: "the proxy's secrets key nothing", Rule: "rule 12",
		Dir: sidecar, Func: "(*Proxy).options", Package: sidecar, Run: "TestSecrets_Rotated_OldStillCompares",
		Old: ", Secrets: p.Secrets,", New: ",",
	},
	{
		Name: "a reconciler is asked about another tenant", Rule: "rule 17",
		Dir: hooks, Func: "(*Hook).Reconcile", Package: hooks, Run: "TestReconcile_KeyNotUTF8_NotAsked",
		Old: "if !utf8.ValidString(v) {", New: "if false && !utf8.ValidString(v) {",
	},
}
