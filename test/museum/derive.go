package museum

// Rule 15: a derived key depends on the parent and the name, and on nothing
// that changes between attempts.
var derivations = []Mutant{
	derives("the attempt", "name+fmt.Sprint(x.attempt)"),
	derives("the fence", "name+fmt.Sprint(x.lease.Fence)"),
	derives("the owner", "name+fmt.Sprint(x.lease.Owner)"),
	derives("the secrets", "name+fmt.Sprint(len(x.guard.options.Secrets))"),
	{
		Name: "an operator gets the key of the call for that of its step", Rule: "rule 15",
		Dir: "cmd/semel/internal/cli", Func: "(*view).addDownstreamKeys", Package: "cmd/semel/internal/cli", Run: "TestInspectGet_DownstreamKey_IsTheHandlers",
		Old: `k.Operation + "#" + name[:i]`, New: "k.Operation",
	},
	{
		Name: "a verdict is kept for a day", Rule: "rule 7",
		Dir: "cmd/semel/internal/cli", Func: "type inspectResolveCmd", Package: "cmd/semel/internal/cli", Run: "TestInspectGet_DownstreamKey_IsTheHandlers",
		Old: `default:"7d" help:"How long the verdict`, New: `default:"1d" help:"How long the verdict`,
	},
	{
		Name: "a derived key does not depend on its step", Rule: "rule 15",
		Dir: seam, Func: "Key.Downstream", Package: core, Run: "TestDownstreamKey_AnyAttempt_StableAndDistinct",
		Old: "b = append(b, name...)", New: "b = append(b, name[:0]...)",
	},
	{
		Name: "a derived key does not depend on its tenant", Rule: "rule 15",
		Dir: seam, Func: "Key.Downstream", Package: core, Run: "TestDownstreamKey_AnyAttempt_StableAndDistinct",
		Old: "parent := k.Digest()",
		New: `
			k.Tenant = ""
			parent := k.Digest()`,
	},
}

func derives(from, name string) Mutant {
	return Mutant{
		Name: "a derived key depends on " + from, Rule: "rule 15",
		Dir: core, Func: "(*Execution).DownstreamKey", Package: core, Run: "TestDownstreamKey_AnyAttempt_StableAndDistinct|TestReconcile_DownstreamKey_IsTheHandlers",
		Old: "x.key.Downstream(name)", New: "x.key.Downstream(" + name + ")",
	}
}
