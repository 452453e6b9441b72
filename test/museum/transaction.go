package museum

// Section 2, Atomic: the record and the handler's writes stand or fall
// together.
var transactions = []Mutant{
	{
		Name: "the writes of a failed handler stay", Rule: "atomic",
		Dir: core, Func: "(*txCall).run", Package: core, Run: "TestRunIn_HandlerEnds_RecordAndWritesCommitTogether",
		Old: "handlerErr, err := nested(ctx, t.tx, func() (err error) { o, err = fn(handlerCtx, x) return err })",
		New: "var handlerErr, err error; o, handlerErr = fn(handlerCtx, x)",
	},
	{
		Name: "the record of a failed call stays", Rule: "atomic",
		Dir: core, Func: "(*Guard).runIn", Package: core, Run: "TestRunIn_HandlerEnds_RecordAndWritesCommitTogether",
		Old: "runErr, err := nested(ctx, tx, func() error { x, err := t.claim(ctx) if x == nil { return err } return t.run(ctx, x, fn) })",
		New: "var err error; runErr := func() error { x, err := t.claim(ctx); if x == nil { return err }; return t.run(ctx, x, fn) }()",
	},
	{
		Name: "a failure of the transaction is swallowed", Rule: "atomic", Parent: "M9: CAMEL-24048",
		Dir: core, Func: "(*txCall).settle", Package: core, Run: "TestRunIn_SettleFails_CallerGetsError",
		Old: "if settleErr != nil {", New: "if false {",
	},
	{
		Name: "an undo that failed passes for one that worked", Rule: "atomic", Parent: "M9: CAMEL-24048",
		Dir: core, Func: "nested", Package: core, Run: "TestRunIn_RollbackFails_IsNoFailure",
		Old: "if err == error(failed) {", New: "if true {",
	},
	{
		Name: "a lost race in a transaction goes on", Rule: "rule 3", Parent: "M15: granit-dotnet#1151",
		Dir: core, Func: "(*txCall).claim", Package: core, Run: "TestRunIn_SwapLost_RunsNothing",
		Old: "if !f.Won {", New: "if false {",
	},
	{
		Name: "a run counts as final before its commit", Rule: "rule 9", Parent: "M7: CAMEL-24046",
		Dir: core, Func: "(*Execution).complete", Package: core, Run: "TestRunIn_HandlerEnds_RecordAndWritesCommitTogether",
		Old: "if !x.mayComplete {", New: "if false {",
	},
}
