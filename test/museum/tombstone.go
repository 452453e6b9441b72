package museum

// Rule 10: a result too large to keep leaves a tombstone, and never a second
// execution.
var tombstones = []Mutant{
	{
		Name: "a result that is too large is not recorded", Rule: "rule 10", Parent: "M11: fiber#4287, granit-dotnet#1151",
		File: "run.go", Package: core, Run: "TestAResultTooLarge",
		Old: "return store.Settlement{State: store.Completed, Attempt: 0, Outcome: g.fit(o), Keep: g.opt.Retention}",
		New: "s := store.Settlement{State: store.Completed, Attempt: 0, Outcome: g.fit(o), Keep: g.opt.Retention}\n" +
			"\tif s.Outcome.Gone {\n\t\ts.State = store.Released\n\t}\n\treturn s",
	},
	{
		Name: "a result that is too large is replayed empty", Rule: "rule 10", Parent: "M11: fiber#4287",
		File: "run.go", Package: core, Run: "TestAResultTooLarge",
		Old: "o.Body, o.Gone = nil, true", New: "o.Body = nil",
	},
	{
		Name: "a result has no limit", Rule: "rule 10",
		File: "run.go", Package: core, Run: "TestAResultTooLarge",
		Old: "if size+len(o.Body) > g.opt.MaxOutcome {", New: "if false {",
	},
	{
		Name: "headers have no limit", Rule: "rule 10",
		File: "run.go", Package: core, Run: "TestHeadersCount",
		Old: "size += len(h.Name) + len(h.Value)", New: "size += 0 * len(h.Name)",
	},
	{
		Name: "a tombstone passes for an answer", Rule: "rule 10",
		File: "visit.go", Package: core, Run: "TestAResultTooLarge",
		Old: "if r.Outcome.Gone {", New: "if false {",
	},
	{
		Name: "what the store cannot keep is not recorded", Rule: "rule 10", Parent: "M11: DynamoDB, 400 KB an item",
		File: "settle.go", Package: core, Run: "TestAnOutcomeTooLargeForTheStore",
		Old: "case err == nil || answered(err):", New: "case err == nil || answered(err) || errors.Is(err, store.ErrTooLarge):",
	},
	{
		Name: "a failure that is too large is an empty answer", Rule: "rule 10",
		File: "run.go", Package: core, Run: "TestAFailureTooLarge",
		Old: "State: store.Failed, Outcome: g.fit(o)", New: "State: store.Failed, Outcome: Outcome{Code: len(g.fit(o).Body)}",
	},
	{
		Name: "a result that cannot be encoded runs again", Rule: "rule 10",
		File: "do.go", Package: core, Run: "TestAResultThatCannotBeEncoded",
		Old: "return Outcome{Gone: true}, nil", New: "return Outcome{}, err",
	},
}
