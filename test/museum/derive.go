package museum

// Rule 15: a derived key depends on the parent and the name, and on nothing
// that changes between attempts.
var derivations = []Mutant{
	derives("the attempt", "step+fmt.Sprint(x.attempt)"),
	derives("the fence", "step+fmt.Sprint(x.lease.Fence)"),
	derives("the owner", "step+fmt.Sprint(x.lease.Owner)"),
	derives("the secrets", "step+fmt.Sprint(len(x.g.opt.Secrets))"),
	{
		Name: "a derived key does not depend on its step", Rule: "rule 15",
		File: "execution.go", Package: core, Run: "TestDerivedKeys",
		Old: "b = append(b, step...)", New: "b = append(b, step[:0]...)",
	},
	{
		Name: "a derived key does not depend on its tenant", Rule: "rule 15",
		File: "execution.go", Package: core, Run: "TestDerivedKeys",
		Old: "parent := k.Digest()", New: "k.Tenant = \"\"\n\tparent := k.Digest()",
	},
	{
		Name: "all steps are one", Rule: "rule 15",
		File: "execution.go", Package: core, Run: "TestACompletedStep",
		Old: `child.Operation += "#" + name`, New: `child.Operation += "#step"`,
	},
	{
		Name: "a step is new with each attempt", Rule: "rule 15",
		File: "execution.go", Package: core, Run: "TestACompletedStep",
		Old: `child.Operation += "#" + name`, New: `child.Operation += "#" + name + fmt.Sprint(x.attempt)`,
	},
}

func derives(from, step string) Mutant {
	return Mutant{
		Name: "a derived key depends on " + from, Rule: "rule 15",
		File: "execution.go", Package: core, Run: "TestDerivedKeys|TestAReconcilerGets",
		Old: "{ return derive(x.lease.Key, step) }", New: "{ return derive(x.lease.Key, " + step + ") }",
	}
}
