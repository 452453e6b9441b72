package museum

// Atomic: the record and the handler's writes commit together or not at all.
var transactions = []Mutant{
	{
		Name: "the writes of a failed handler are not undone", Rule: "atomic",
		Dir: core, Func: "(*txCall).run", Package: core, Run: "TestRunIn_HandlerEnds_RecordAndWritesCommitTogether",
		Old: "handlerErr, err := nested(ctx, t.tx, func() (err error) { o, err = fn(handlerCtx, x) return err })",
		New: "var handlerErr, err error; o, handlerErr = fn(handlerCtx, x)",
	},
	{
		Name: "the record of a failed call is not undone", Rule: "atomic",
		Dir: core, Func: "(*Guard).runIn", Package: core, Run: "TestRunIn_HandlerEnds_RecordAndWritesCommitTogether",
		Old: "runErr, err := nested(ctx, tx, func() error { x, err := t.claimInTx(ctx) if x == nil { return err } return t.run(ctx, x, fn) })",
		New: "var err error; runErr := func() error { x, err := t.claimInTx(ctx); if x == nil { return err }; return t.run(ctx, x, fn) }()",
	},
	{
		Name: "a failed settlement in a transaction is ignored", Rule: "atomic", Parent: "M9: CAMEL-24048",
		Dir: core, Func: "(*txCall).settle", Package: core, Run: "TestRunIn_SettleFails_CallerGetsError",
		Old: "if settleErr != nil {", New: "if false {",
	},
	{
		Name: "a failed rollback of a savepoint is ignored", Rule: "atomic", Parent: "M9: CAMEL-24048",
		Dir: core, Func: "nested", Package: core, Run: "TestRunIn_RollbackFails_IsNoFailure",
		Old: "if err == error(failed) {", New: "if true {",
	},
	{
		Name: "a caller whose swap lost in a transaction runs the handler", Rule: "rule 3", Parent: "M15: granit-dotnet#1151",
		Dir: core, Func: "(*txCall).claimInTx", Package: core, Run: "TestRunIn_SwapLost_RunsNothing",
		Old: "if !f.Won {", New: "if false {",
	},
	{
		Name: "Complete succeeds before the commit", Rule: "rule 9", Parent: "M7: CAMEL-24046",
		Dir: core, Func: "(*Execution).complete", Package: core, Run: "TestRunIn_HandlerEnds_RecordAndWritesCommitTogether",
		Old: "if !x.mayComplete {", New: "if false {",
	},
}
