package museum

// An observing proxy changes nothing and counts what the proxy does.
var observers = []Mutant{
	{
		Name: "an observing proxy refuses", Rule: "observe",
		Dir: sidecar, Func: "(*observer).forward", Package: sidecar, Run: "TestObserve_AnyRequest_ChangesNoByte",
		Old: "to.upstream.ServeHTTP(&observedWriter{w, s}, forwarded)", New: "to.ServeHTTP(&observedWriter{w, s}, forwarded)",
	},
	{
		Name: "an observing proxy counts every duplicate as answered", Rule: "observe",
		Dir: sidecar, Func: "(*observation).result", Package: sidecar, Run: "TestObserve_SameScript_CountsWhatProxyDoes",
		Old: "case semelhttp.CodeInProgress, semelhttp.CodeAttemptFailed: return observe.DuringFirst", New: "case semelhttp.CodeInProgress, semelhttp.CodeAttemptFailed: return observe.AfterFirst",
	},
	{
		Name: "an observing proxy does not see doubt", Rule: "observe",
		Dir: sidecar, Func: "(*observation).answer", Package: sidecar, Run: "TestObserve_SameScript_CountsWhatProxyDoes",
		Old: "s.doubt = observe.ServerError", New: "s.doubt = observe.None",
	},
	{
		Name: "an observing proxy remembers IDs in paths", Rule: "observe",
		Dir: "cmd/semel/internal/observe", Func: "CallerOf", Package: sidecar, Run: "TestObserve_TenantMissing_NamesCallersAndNextStep",
		Old: "shown(r.URL.Path)", New: "r.URL.Path",
	},
	{
		Name: "an observing proxy remembers callers without end", Rule: "observe",
		Dir: "cmd/semel/internal/observe", Func: "callers.add", Package: sidecar, Run: "TestObserve_TenantMissing_NamesCallersAndNextStep",
		Old: "len(c) >= maxCallers", New: "false",
	},
	{
		Name: "an observing proxy remembers keys without end", Rule: "observe",
		Dir: "cmd/semel/internal/observe", Func: "(*Memory).Claim", Package: sidecar, Run: "TestObserve_MoreKeysThanBound_ForgetsOlderHalf",
		Old: "m.newer.keys >= m.half", New: "false",
	},
}
