package museum

// PostgreSQL: a handler that ends its transaction by a connection that it got while the id of
// the transaction was not known, and partitions that are gone.
var postgresEnds = []Mutant{
	{
		Name: "PostgreSQL, batches: a savepoint that is gone is a failed attempt", Rule: "atomic",
		Dir: postgres, Func: "(*batchTry).afterHandler", Package: postgres, Run: "TestRunBatch_HandlerCommitsAndFails",
		Old: "pgwire.Code(err) == noSavepoint", New: "err == nil",
	},
	{
		Name: "PostgreSQL: a handler that got its connection while rows were open is not checked", Rule: "atomic",
		Dir: handlertx, Func: "(*State).Check", Package: postgres, Run: "TestAtomic_HandlerSpoilsTransaction_EffectAndRecordAgree",
		Old: "case s.unnamed.Load() && s.Lock.isSet:", New: "case s.unnamed.Load() && xid != \"\":",
	},
	{
		Name: "PostgreSQL: a handler that got its connection while rows were open commits and fails unseen", Rule: "atomic",
		Dir: handlertx, Func: "(*State).EndedUnnamed", Package: postgres, Run: "TestAtomic_HandlerSpoilsTransaction_EffectAndRecordAgree",
		Old: "return s.HasOther(ctx, conn, limit)", New: "return false",
	},
	{
		Name: "PostgreSQL: the id of the handler's next transaction is taken for that of its own", Rule: "atomic",
		Dir: handlertx, Func: "(*State).lend", Package: postgres, Run: "TestAtomic_HandlerCommitsAndBeginsByConnInRows_Parked",
		Old: "|| s.unnamed.Load() ||", New: "||",
	},
	{
		Name: "PostgreSQL: a handler commits in a batch by a connection that it got in rows, and panics", Rule: "atomic",
		Dir: postgres, Func: "(*batchRun).try", Package: postgres, Run: "TestAtomic_HandlerCommitsAndBeginsByConnInRows_Parked",
		Old: "(batch.txStatus() == noTx || t.endedUnnamed(ctx))", New: "batch.txStatus() == noTx",
	},
	{
		Name: "PostgreSQL, Atomic.In: a handler begins another transaction unseen", Rule: "atomic",
		Dir: handlertx, Func: "(*State).HasOther", Package: postgres, Run: "TestIn_HandlerBeginsOtherTransaction_NamesTheRule",
		Old: "return ok && e.Code == DivisionByZero", New: "return ok && e.Code == \"\"",
	},
	{
		Name: "PostgreSQL: a partition that is gone ends each sweep before the others", Rule: "rule 7",
		Dir: postgres, Func: "(*Store).isGone", Package: postgres, Run: "TestSweep_PartitionDropped_OthersAreSwept",
		Old: "pgwire.Code(err) == pgwire.UndefinedTable &&", New: "err == nil &&",
	},
	{
		Name: "PostgreSQL: each second pass of a sweep ends at once after a partition is gone", Rule: "rule 7",
		Dir: postgres, Func: "(*Store).Sweep", Package: postgres, Run: "TestSweep_PartitionDropped_EachPassSweepsOthers",
		Old: "start = table.Place{}", New: "return store.SweepResult{}, errGone(\"\")",
	},
	{
		Name: "PostgreSQL: each second pass of a sweep ends at once after the last partition is gone", Rule: "rule 7",
		Dir: postgres, Func: "(*Store).Sweep", Package: postgres, Run: "TestSweep_PartitionDropped_EachPassSweepsOthers",
		Old: "if s.notesGone(start.Part, err) {", New: "if false {",
	},
	{
		Name: "PostgreSQL: a partition that is gone ends a list before the others", Rule: "rule 7",
		Dir: postgres, Func: "(*Store).pages", Package: postgres, Run: "TestList_PartitionDropped_OthersAreListed",
		Old: "s.isGone(err)", New: "false",
	},
	{
		Name: "PostgreSQL: a failed statement after Conn in rows counts as the end of the transaction", Rule: "atomic",
		Dir: handlertx, Func: "(*State).EndedUnnamed", Package: postgres, Run: "TestAtomic_StatementFailsAfterConnUnnamed_CountsAttempt",
		Old: "if !IsUnread(conn) {", New: "if conn.PgConn().TxStatus() == 'E' {\nreturn true\n}\nif !IsUnread(conn) {",
	},
	{
		Name: "PostgreSQL: an open query that fails counts as the end of the transaction", Rule: "atomic",
		Dir: handlertx, Func: "(*State).EndedUnnamed", Package: postgres, Run: "TestAtomic_StatementFailsAfterConnUnnamed_CountsAttempt",
		Old: "&& !hasFailedUnread(conn, limit)", New: "&& (true || !hasFailedUnread(conn, limit))",
	},
	{
		Name: "PostgreSQL: a ticket is given for a parked record that the standby may not have", Rule: "durable",
		Dir: seam, Func: "(*Record).IsAnswer", Package: postgres, Run: "TestStandbyAway_ReserveFindsUnconfirmed_NoTicket",
		Old: "|| r.State == Unknown", New: "",
	},
	{
		Name: "PostgreSQL: a ticket is given for a claim that the standby may not have", Rule: "durable",
		Dir: seam, Func: "(*Record).IsAnswer", Package: postgres, Run: "TestStandbyAway_ReserveFindsUnconfirmed_NoTicket",
		Old: "r.State == Processing &&", New: "r.State == Processing && r.Created.IsZero() &&",
	},
}
