package museum

// PostgreSQL, Atomic: the record commits with the handler's writes, or neither does.
var postgresTxs = []Mutant{
	{
		Name: "PostgreSQL, Atomic: a commit that may be there is said to be none", Rule: "rule 9",
		Dir: postgres, Func: "(*Atomic).try", Package: postgres, Run: "TestOnlyACommit",
		Old: `explain("commit", cerr); !known {`, New: `explain("commit", cerr); false {`,
	},
	{
		Name: "PostgreSQL, Atomic: what became of a commit is not asked when the caller left", Rule: "rule 9", Parent: "M20: complete on the request context",
		Dir: postgres, Func: "(*Atomic).committed", Package: postgres, Run: "TestACommitWhoseCallerHasLeft",
		Old: `
			t *ownTx) (is, known bool) {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.aftermath)`,
		New: `
			t *ownTx) (is, known bool) {
			ctx, cancel := context.WithTimeout(ctx, a.aftermath)`,
	},
	{
		Name: "PostgreSQL, Atomic: a pooler that lost the server passes for the server", Rule: "rule 9",
		Dir: postgres, Func: "refused", Package: postgres, Run: "TestACommitThatAPoolerLost",
		Old: `!strings.HasPrefix(c, "08")`, New: `!strings.HasPrefix(c, "080")`,
	},
	{
		Name: "PostgreSQL, Atomic: what another has settled is taken for one's own commit", Rule: "rule 4",
		Dir: postgres, Func: "(*Store).cameOf", Package: postgres, Run: "TestWhatAnotherHasSettled",
		Old: "is = err == nil && f.Record.Owner == won.Owner && f.Record.State.Terminal()",
		New: "is = err == nil && f.Record.State.Terminal()",
	},
	{
		Name: "PostgreSQL, Atomic: a try whose caller left is not noted", Rule: "rule 13", Parent: "M20: complete on the request context",
		Dir: postgres, Func: "(*Atomic).noteAttempt", Package: postgres, Run: "TestATryWhoseCallerHasLeft",
		Old: `
			if t.won == nil {
				return nil
			}
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), aftermath)`,
		New: `
			if t.won == nil {
				return nil
			}
			ctx, cancel := context.WithTimeout(ctx, aftermath)`,
	},
	{
		Name: "PostgreSQL, Atomic: the handler's own unique violation is a lost race", Rule: "rule 13", Parent: "M9: 23505 swallowed in a transaction (CAMEL-24048)",
		Dir: postgres, Func: "lostRace", Package: postgres, Run: "TestAUniqueViolationOfTheHandlersOwn",
		Old: `return ok && e.Code == uniqueViolation && (e.TableName == recordTable || strings.HasPrefix(e.TableName, recordTable+"_p"))`,
		New: `return ok && e.Code == uniqueViolation && (e.TableName != "" || strings.HasPrefix(e.ConstraintName, recordTable))`,
	},
	{
		Name: "PostgreSQL, Atomic: what is always refused is tried for ever", Rule: "rule 14",
		Dir: postgres, Func: "(*Atomic).Run", Package: postgres, Run: "TestWhatIsAlwaysRefused",
		Old: "if refused++; refused >= tries {", New: "if refused = 1; refused >= tries {",
	},
	{
		Name: "PostgreSQL, Atomic: a waiter runs what is about to be noted as failed", Rule: "rule 14",
		Dir: postgres, Func: "(*waiter).admit", Package: postgres, Run: "TestAWaiterGivesAFailureTime",
		Old: "case !w.patient:", New: "case !w.refused:",
	},
	{
		Name: "PostgreSQL, Atomic: a duplicate waits for the row of a run in flight", Rule: "rule 14",
		Dir: postgres, Func: "(*looked).found", Package: postgres, Run: "TestADuplicateOfATakeOver",
		Old: "l.locked || f.Record.State.Terminal() && !over {", New: "l.locked || over || f.Record.State.Terminal() {",
	},
	{
		Name: "PostgreSQL, Atomic: a handler is not undone when the caller left", Rule: "atomic",
		Dir: postgres, Func: "(*storeTx).undo", Package: postgres, Run: "TestAHandlerIsUndone",
		Old: "context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)", New: "context.WithTimeout(ctx, 5*time.Second)",
	},
	{
		Name: "PostgreSQL, Atomic: the transaction of a twin is served", Rule: "atomic",
		Dir: postgres, Func: "(*Store).isOurs", Package: postgres, Run: "TestATransactionOfATwin",
		Old: "case err == nil && of != s.id:", New: "case err == nil && !of.Valid:",
	},
	{
		Name: "PostgreSQL, Atomic: a run joins the transaction of another store", Rule: "atomic",
		Dir: postgres, Func: "(*Store).inside", Package: postgres, Run: "TestARunOfAnotherStore",
		Old: "if in.s == s && !in.over.Load() {", New: "if !in.over.Load() {",
	},
	{
		Name: "PostgreSQL, Atomic: a copy goes to who has the connection now", Rule: "scope",
		Dir: postgres, Func: "(*handlerTx).CopyFrom", Package: postgres, Run: "TestTheHandlerCannotEnd",
		Old: `
			rows pgx.CopyFromSource) (int64, error) {
			if t.ended() {`,
		New: `
			rows pgx.CopyFromSource) (int64, error) {
			if t.closed {`,
	},
	{
		Name: "PostgreSQL, Atomic: all savepoints of a handler have one name", Rule: "atomic",
		Dir: postgres, Func: "(*handlerTx).Begin", Package: postgres, Run: "TestSavepointsInEachOther",
		Old: "t.of.savepoints++", New: "t.of.savepoints = 1",
	},
	{
		Name: "PostgreSQL, Atomic: the look of the next run decides a commit", Rule: "lanes",
		Dir: postgres, Func: "(*ownTx).commit", Package: postgres, Run: "TestALookThatFailsFailsNot",
		Old: "if begun = done && err == nil; done {", New: "if begun = done && err == nil; begun {",
	},
	{
		Name: "PostgreSQL, Atomic: who was handed a connection cannot be undone", Rule: "atomic",
		Dir: postgres, Func: "(*ownTx).begin", Package: postgres, Run: "TestAFailureIsKeptAndTheConnection",
		Old: "t.line.tx, t.line.sent = l.tx, 1", New: "t.line.tx, t.line.sent = l.tx, 0",
	},
	{
		Name: "PostgreSQL, Atomic: a connection is handed past the hook that says whose it is", Rule: "scope",
		Dir: postgres, Func: "newRelay", Package: postgres, Run: "TestThePoolsHooks",
		Old: "if cfg.PrepareConn != nil || cfg.BeforeAcquire", New: "if cfg.BeforeAcquire",
	},
	{
		Name: "PostgreSQL, Atomic: who gets no connection keeps his place", Rule: "rule 14",
		Dir: postgres, Func: "(*ownTx).begin", Package: postgres, Run: "TestWhoGetsNoConnection",
		Old: `
			t.placed = true
			if l == nil || l.conn == nil {`,
		New: `
			defer func() { t.placed = t.conn != nil }()
			if l == nil || l.conn == nil {`,
	},
	{
		Name: "PostgreSQL, Atomic: an answer lies where the connection reads the next", Rule: "rule 8",
		Dir: postgres, Func: "scanBinary", Package: postgres, Run: "TestWhatARunIsGiven",
		Old: "*v = slices.Clone(b)", New: "*v = slices.Clip(b)",
	},
	{
		Name: "PostgreSQL, Atomic: a run does not know how high swept fences were", Rule: "rule 5",
		Dir: postgres, Func: "(*storeTx).claim", Package: postgres, Run: "TestTheFenceOfARun",
		Old: "is.p, is.r = *p, p.Insert(now, uint64(l.swept))", New: "is.p, is.r = *p, p.Insert(now, 0)",
	},
	{
		Name: "PostgreSQL, Atomic: of different calls Admit forgives no lost key", Rule: "rule 3",
		Dir: postgres, Func: "(*storeTx).insertAbsent", Package: postgres, Run: "TestAdmitLosesOneKeyOf",
		Old: "sql, args := t.db.sql.admits, []any(nil)", New: "sql, args := t.db.sql.inserts, []any(nil)",
	},
	{
		Name: "PostgreSQL, Atomic: a call runs within the run of its own key", Rule: "rule 2",
		Dir: postgres, Func: "(*storeTx).claim", Package: postgres, Run: "TestACallInItsOwnHandler",
		Old: "if t.within.has(t.s, id) {", New: "if t.within.has(nil, id) {",
	},
	{
		Name: "PostgreSQL, Atomic: what runs around a handler in a transaction is forgotten", Rule: "rule 2",
		Dir: postgres, Func: "(*Store).withRun", Package: postgres, Run: "TestACallInItsOwnHandler",
		Old: `
			ctx.Value(runsKey{}).(*runs)
			return context.`,
		New: `
			ctx.Value(runsKey{}).(*runs)
			outer = nil
			return context.`,
	},
	{
		Name: "PostgreSQL, Atomic: a handler of a batch does not know its own key", Rule: "rule 2",
		Dir: postgres, Func: "(*batch).try", Package: postgres, Run: "TestACallInItsOwnHandler/RunBatch",
		Old: "b.a.s.withRun(b.a.s.withTx(ctx, &l.tx, &l.over), y.running.id, &l.over)", New: "b.a.s.withTx(ctx, &l.tx, &l.over)",
	},
	{
		Name: "PostgreSQL, Atomic: a commit that waits holds up the run begun behind it", Rule: "lanes",
		Dir: postgres, Func: "(*ownTx).commit", Package: postgres, Run: "TestACommitThatWaitsHoldsUp",
		Old: "func() { close(next.late) }", New: "func() {}",
	},
	{
		Name: "PostgreSQL, Atomic: who was held up is in its own way", Rule: "rule 14",
		Dir: postgres, Func: "(*Atomic).Run", Package: postgres, Run: "TestWhoWasHeldUp",
		Old: "held = true", New: "held = false",
	},
	{
		Name: "PostgreSQL, Atomic: a handler of a whole batch does not know its keys", Rule: "rule 2",
		Dir: postgres, Func: "(*batch).try", Package: postgres, Run: "TestACallInItsOwnHandler/RunWhole",
		Old: "l.runs.whole = y", New: "",
	},
	{
		Name: "PostgreSQL, Atomic: a run within another store's commits by itself", Rule: "atomic",
		Dir: postgres, Func: "(*ownTx).lend", Package: postgres, Run: "TestATransactionInsideAnother",
		Old: "l.in.outer, _ = outer.Value(txKey{}).(*txIn)", New: "",
	},
	{
		Name: "PostgreSQL, Atomic: what a handler left behind runs in a transaction that is over", Rule: "atomic",
		Dir: postgres, Func: "(*Store).inside", Package: postgres, Run: "TestTheContextOfAHandler",
		Old: "if in.s == s && !in.over.Load() {", New: "if in.s == s {",
	},
	{
		Name: "PostgreSQL, Atomic: the key of a handler that has returned is in progress", Rule: "rule 14",
		Dir: postgres, Func: "(*runs).has", Package: postgres, Run: "TestTheContextOfAHandler",
		Old: "if r.s == s && !r.over.Load() && (", New: "if r.s == s && (",
	},
}
