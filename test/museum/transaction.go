package museum

// Section 2, Atomic: the record and the handler's writes stand or fall
// together.
var transactions = []Mutant{
	{
		Name: "the writes of a failed handler stay", Rule: "atomic",
		File: "atomic.go", Package: core, Run: "TestInATransactionRecordAndEffect",
		Old: "err := t.tx.Nested(t.ctx, t.handle)", New: "err := t.handle()",
	},
	{
		Name: "the record of a failed call stays", Rule: "atomic",
		File: "atomic.go", Package: core, Run: "TestInATransactionRecordAndEffect",
		Old: "err = tx.Nested(ctx, t.run)", New: "err = t.run()",
	},
	{
		Name: "a failure of the transaction is swallowed", Rule: "atomic", Parent: "M9: CAMEL-24048",
		File: "atomic.go", Package: core, Run: "TestAFailureOfTheTransaction",
		Old: "\tif serr != nil {\n\t\tt.kept = nil\n", New: "\tif false {\n\t\tt.kept = nil\n",
	},
	{
		Name: "an undo that failed passes for one that worked", Rule: "atomic", Parent: "M9: CAMEL-24048",
		File: "atomic.go", Package: core, Run: "TestAFailedRollback",
		Old: "if err != nil && err != error(said) {", New: "if false {",
	},
	{
		Name: "a lost race in a transaction goes on", Rule: "rule 3", Parent: "M15: granit-dotnet#1151",
		File: "atomic.go", Package: core, Run: "TestALostRaceInATransaction",
		Old: "\t\t\tif !f.Won {\n", New: "\t\t\tif false {\n",
	},
	{
		Name: "a run counts as final before its commit", Rule: "rule 9", Parent: "M7: CAMEL-24046",
		File: "execution.go", Package: core, Run: "TestInATransactionRecordAndEffect",
		Old: "if !x.keeps {", New: "if false {",
	},
}
