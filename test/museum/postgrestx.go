package museum

// PostgreSQL, Atomic: the record commits with the handler's writes, or neither does.
var postgresTxs = []Mutant{
	{
		Name: "PostgreSQL, Atomic: a commit that may be there is said to be none", Rule: "rule 9",
		File: "store/pgstore/run.go", Package: postgres, Run: "TestOnlyACommit",
		Old: "explain(\"commit\", cerr); !known {", New: "explain(\"commit\", cerr); false {",
	},
	{
		Name: "PostgreSQL, Atomic: what became of a commit is not asked when the caller left", Rule: "rule 9", Parent: "M20: complete on the request context",
		File: "store/pgstore/run.go", Package: postgres, Run: "TestACommitWhoseCallerHasLeft",
		Old: "t *ownTx) (is, known bool) {\n\tctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.aftermath)",
		New: "t *ownTx) (is, known bool) {\n\tctx, cancel := context.WithTimeout(ctx, a.aftermath)",
	},
	{
		Name: "PostgreSQL, Atomic: a pooler that lost the server passes for the server", Rule: "rule 9",
		File: "store/pgstore/errors.go", Package: postgres, Run: "TestACommitThatAPoolerLost",
		Old: "!strings.HasPrefix(c, \"08\")", New: "!strings.HasPrefix(c, \"080\")",
	},
	{
		Name: "PostgreSQL, Atomic: what another has settled is taken for one's own commit", Rule: "rule 4",
		File: "store/pgstore/run.go", Package: postgres, Run: "TestWhatAnotherHasSettled",
		Old: "is = err == nil && f.Record.Owner == won.Owner && f.Record.State.Terminal()", New: "is = err == nil && f.Record.State.Terminal()",
	},
	{
		Name: "PostgreSQL, Atomic: a try whose caller left is not noted", Rule: "rule 13", Parent: "M20: complete on the request context",
		File: "store/pgstore/run.go", Package: postgres, Run: "TestATryWhoseCallerHasLeft",
		Old: "\tif t.won == nil {\n\t\treturn nil\n\t}\n\tctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), aftermath)",
		New: "\tif t.won == nil {\n\t\treturn nil\n\t}\n\tctx, cancel := context.WithTimeout(ctx, aftermath)",
	},
	{
		Name: "PostgreSQL, Atomic: the handler's own unique violation is a lost race", Rule: "rule 13", Parent: "M9: 23505 swallowed in a transaction (CAMEL-24048)",
		File: "store/pgstore/run.go", Package: postgres, Run: "TestAUniqueViolationOfTheHandlersOwn",
		Old: "return ok && e.Code == uniqueViolation && (e.TableName == recordTable || strings.HasPrefix(e.TableName, recordTable+\"_p\"))",
		New: "return ok && e.Code == uniqueViolation && (e.TableName != \"\" || strings.HasPrefix(e.ConstraintName, recordTable))",
	},
	{
		Name: "PostgreSQL, Atomic: what is always refused is tried for ever", Rule: "rule 14",
		File: "store/pgstore/run.go", Package: postgres, Run: "TestWhatIsAlwaysRefused",
		Old: "if refused++; refused >= tries {", New: "if refused = 1; refused >= tries {",
	},
	{
		Name: "PostgreSQL, Atomic: a waiter runs what is about to be noted as failed", Rule: "rule 14",
		File: "store/pgstore/run.go", Package: postgres, Run: "TestAWaiterGivesAFailureTime",
		Old: "case !w.patient: //", New: "case !w.refused: //",
	},
	{
		Name: "PostgreSQL, Atomic: a duplicate waits for the row of a run in flight", Rule: "rule 14",
		File: "store/pgstore/tx.go", Package: postgres, Run: "TestADuplicateOfATakeOver",
		Old: "l.locked || f.Record.State.Terminal() && !over {", New: "l.locked || over || f.Record.State.Terminal() {",
	},
	{
		Name: "PostgreSQL, Atomic: a handler is not undone when the caller left", Rule: "atomic",
		File: "store/pgstore/tx.go", Package: postgres, Run: "TestAHandlerIsUndone",
		Old: "context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)", New: "context.WithTimeout(ctx, 5*time.Second)",
	},
	{
		Name: "PostgreSQL, Atomic: the transaction of a twin is served", Rule: "atomic",
		File: "store/pgstore/tx.go", Package: postgres, Run: "TestATransactionOfATwin",
		Old: "case err == nil && of != s.id:", New: "case err == nil && !of.Valid:",
	},
	{
		Name: "PostgreSQL, Atomic: a run joins the transaction of another store", Rule: "atomic",
		File: "store/pgstore/atomic.go", Package: postgres, Run: "TestARunOfAnotherStore",
		Old: "if in.s == s && !in.over.Load() {", New: "if !in.over.Load() {",
	},
	{
		Name: "PostgreSQL, Atomic: a copy goes to who has the connection now", Rule: "scope",
		File: "store/pgstore/handlertx.go", Package: postgres, Run: "TestTheHandlerCannotEnd",
		Old: "rows pgx.CopyFromSource) (int64, error) {\n\tif t.ended() {", New: "rows pgx.CopyFromSource) (int64, error) {\n\tif t.closed {",
	},
	{
		Name: "PostgreSQL, Atomic: all savepoints of a handler have one name", Rule: "atomic",
		File: "store/pgstore/handlertx.go", Package: postgres, Run: "TestSavepointsInEachOther",
		Old: "\tt.of.savepoints++\n", New: "\tt.of.savepoints = 1\n",
	},
	{
		Name: "PostgreSQL, Atomic: the look of the next run decides a commit", Rule: "lanes",
		File: "store/pgstore/owntx.go", Package: postgres, Run: "TestALookThatFailsFailsNot",
		Old: "if begun = done && err == nil; done {", New: "if begun = done && err == nil; begun {",
	},
	{
		Name: "PostgreSQL, Atomic: who was handed a connection cannot be undone", Rule: "atomic",
		File: "store/pgstore/owntx.go", Package: postgres, Run: "TestAFailureIsKeptAndTheConnection",
		Old: "t.line.tx, t.line.sent = l.tx, 1 //", New: "t.line.tx, t.line.sent = l.tx, 0 //",
	},
	{
		Name: "PostgreSQL, Atomic: a connection is handed past the hook that says whose it is", Rule: "scope",
		File: "store/pgstore/relay.go", Package: postgres, Run: "TestThePoolsHooks",
		Old: "if cfg.PrepareConn != nil || cfg.BeforeAcquire", New: "if cfg.BeforeAcquire",
	},
	{
		Name: "PostgreSQL, Atomic: who gets no connection keeps his place", Rule: "rule 14",
		File: "store/pgstore/owntx.go", Package: postgres, Run: "TestWhoGetsNoConnection",
		Old: "\tt.placed = true\n\tif l == nil || l.conn == nil {\n", New: "\tdefer func() { t.placed = t.conn != nil }()\n\tif l == nil || l.conn == nil {\n",
	},
	{
		Name: "PostgreSQL, Atomic: an answer lies where the connection reads the next", Rule: "rule 8",
		File: "store/pgstore/binary.go", Package: postgres, Run: "TestWhatARunIsGiven",
		Old: "*v = slices.Clone(b) // the row", New: "*v = slices.Clip(b) // the row",
	},
	{
		Name: "PostgreSQL, Atomic: a run does not know how high swept fences were", Rule: "rule 5",
		File: "store/pgstore/tx.go", Package: postgres, Run: "TestTheFenceOfARun",
		Old: "is.p, is.r = *p, p.Insert(now, uint64(l.swept))", New: "is.p, is.r = *p, p.Insert(now, 0)",
	},
	{
		Name: "PostgreSQL, Atomic: of different calls Admit forgives no lost key", Rule: "rule 3",
		File: "store/pgstore/admit.go", Package: postgres, Run: "TestAdmitLosesOneKeyOf",
		Old: "sql, args := t.db.sql.admits, []any(nil)", New: "sql, args := t.db.sql.inserts, []any(nil)",
	},
	{
		Name: "PostgreSQL, Atomic: a call runs within the run of its own key", Rule: "rule 2",
		File: "store/pgstore/tx.go", Package: postgres, Run: "TestACallInItsOwnHandler",
		Old: "if t.within.has(t.s, id) {", New: "if t.within.has(nil, id) {",
	},
	{
		Name: "PostgreSQL, Atomic: what runs around a handler in a transaction is forgotten", Rule: "rule 2",
		File: "store/pgstore/atomic.go", Package: postgres, Run: "TestACallInItsOwnHandler",
		Old: "ctx.Value(runsKey{}).(*runs)\n\treturn context.", New: "ctx.Value(runsKey{}).(*runs)\n\touter = nil\n\treturn context.",
	},
	{
		Name: "PostgreSQL, Atomic: a handler of a batch does not know its own key", Rule: "rule 2",
		File: "store/pgstore/inboxtry.go", Package: postgres, Run: "TestACallInItsOwnHandler/RunBatch",
		Old: "b.a.s.withRun(b.a.s.withTx(ctx, &l.tx, &l.over), y.running.id, &l.over)", New: "b.a.s.withTx(ctx, &l.tx, &l.over)",
	},
	{
		Name: "PostgreSQL, Atomic: a commit that waits holds up the run begun behind it", Rule: "lanes",
		File: "store/pgstore/owntx.go", Package: postgres, Run: "TestACommitThatWaitsHoldsUp",
		Old: "func() { close(next.late) }", New: "func() {}",
	},
	{
		Name: "PostgreSQL, Atomic: who was held up is in its own way", Rule: "rule 14",
		File: "store/pgstore/run.go", Package: postgres, Run: "TestWhoWasHeldUp",
		Old: "\t\t\theld = true\n", New: "\t\t\theld = false\n",
	},
	{
		Name: "PostgreSQL, Atomic: a handler of a whole batch does not know its keys", Rule: "rule 2",
		File: "store/pgstore/inboxtry.go", Package: postgres, Run: "TestACallInItsOwnHandler/RunWhole",
		Old: "\t\tl.runs.whole = y\n", New: "",
	},
	{
		Name: "PostgreSQL, Atomic: a run within another store's commits by itself", Rule: "atomic",
		File: "store/pgstore/owntx.go", Package: postgres, Run: "TestATransactionInsideAnother",
		Old: "\tl.in.outer, _ = outer.Value(txKey{}).(*txIn)\n", New: "",
	},
	{
		Name: "PostgreSQL, Atomic: what a handler left behind runs in a transaction that is over", Rule: "atomic",
		File: "store/pgstore/atomic.go", Package: postgres, Run: "TestTheContextOfAHandler",
		Old: "if in.s == s && !in.over.Load() {", New: "if in.s == s {",
	},
	{
		Name: "PostgreSQL, Atomic: the key of a handler that has returned is in progress", Rule: "rule 14",
		File: "store/pgstore/atomic.go", Package: postgres, Run: "TestTheContextOfAHandler",
		Old: "if r.s == s && !r.over.Load() && (", New: "if r.s == s && (",
	},
}
