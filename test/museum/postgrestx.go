package museum

// PostgreSQL, Atomic: the record commits with the handler's writes, or neither does.
var postgresTxs = []Mutant{
	{
		Name: "PostgreSQL, Atomic: a commit that may be there is said to be none", Rule: "rule 9",
		Dir: postgres, Func: "(*Atomic).try", Package: postgres, Run: "TestAtomic_CommitFails_InDoubtOnlyIfUnknown",
		Old: `pgwire.Explain("commit", commitErr); !known {`, New: `pgwire.Explain("commit", commitErr); false {`,
	},
	{
		Name: "PostgreSQL, Atomic: what became of a commit is not asked when the caller left", Rule: "rule 9", Parent: "M20: complete on the request context",
		Dir: postgres, Func: "(*Atomic).committed", Package: postgres, Run: "TestAtomic_CallerLeavesAtCommit_OutcomeFound",
		Old: `
			t *ownTx) (committed, known bool) {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.cleanupTimeout)`,
		New: `
			t *ownTx) (committed, known bool) {
			ctx, cancel := context.WithTimeout(ctx, a.cleanupTimeout)`,
	},
	{
		Name: "PostgreSQL, Atomic: a pooler that lost the server passes for the server", Rule: "rule 9",
		Dir: "store/pgstore/internal/pgwire", Func: "Refused", Package: postgres, Run: "TestAtomic_PoolerLosesCommit_OutcomeFound",
		Old: `!strings.HasPrefix(c, "08")`, New: `!strings.HasPrefix(c, "080")`,
	},
	{
		Name: "PostgreSQL, Atomic: what another has settled is taken for one's own commit", Rule: "rule 4",
		Dir: postgres, Func: "(*Store).committedAndSettled", Package: postgres, Run: "TestAtomic_OtherOwnerSettled_NotOwnCommit",
		Old: "settled = err == nil && f.Record.Owner == won.Owner && f.Record.State.Terminal()",
		New: "settled = err == nil && f.Record.State.Terminal()",
	},
	{
		Name: "PostgreSQL, Atomic: a try whose caller left is not noted", Rule: "rule 13", Parent: "M20: complete on the request context",
		Dir: postgres, Func: "(*Atomic).noteAttempt", Package: postgres, Run: "TestAtomic_CallerLeaves_CountsAttempt",
		Old: `
			if t.claimed == nil {
				return nil
			}
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)`,
		New: `
			if t.claimed == nil {
				return nil
			}
			ctx, cancel := context.WithTimeout(ctx, cleanupTimeout)`,
	},
	{
		Name: "PostgreSQL, Atomic: the handler's own unique violation is a lost race", Rule: "rule 13", Parent: "M9: 23505 swallowed in a transaction (CAMEL-24048)",
		Dir: postgres, Func: "lostRace", Package: postgres, Run: "TestAtomic_HandlerUniqueViolation_IsHandlerError",
		Old: `return ok && e.Code == pgwire.UniqueViolation && (e.TableName == table.Name || strings.HasPrefix(e.TableName, table.Name+"_p"))`,
		New: `return ok && e.Code == pgwire.UniqueViolation && (e.TableName != "" || strings.HasPrefix(e.ConstraintName, table.Name))`,
	},
	{
		Name: "PostgreSQL, Atomic: what is always refused is tried for ever", Rule: "rule 14",
		Dir: postgres, Func: "(*Atomic).run", Package: postgres, Run: "TestAtomic_AlwaysRefused_EndsUnavailable",
		Old: "if refused++; refused >= pgwire.Tries {", New: "if refused = 1; refused >= pgwire.Tries {",
	},
	{
		Name: "PostgreSQL, Atomic: a waiter runs what is about to be noted as failed", Rule: "rule 14",
		Dir: postgres, Func: "(*waiter).admit", Package: postgres, Run: "TestAtomic_WaiterAfterFailure_WaitsForRecord",
		Old: "case !w.waitedForNote:", New: "case !w.refused:",
	},
	{
		Name: "PostgreSQL, Atomic: a duplicate waits for the row of a run in flight", Rule: "rule 14",
		Dir: postgres, Func: "(*keyState).found", Package: postgres, Run: "TestAtomic_DuplicateOfOpenTakeOver_InProgress",
		Old: "k.locked || f.Record.State.Terminal() && !expired {", New: "k.locked || expired || f.Record.State.Terminal() {",
	},
	{
		Name: "PostgreSQL, Atomic: a handler is not undone when the caller left", Rule: "atomic",
		Dir: postgres, Func: "(*storeTx).undo", Package: postgres, Run: "TestIn_CallerLeaves_HandlerUndone",
		Old: "context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)", New: "context.WithTimeout(ctx, 5*time.Second)",
	},
	{
		Name: "PostgreSQL, Atomic: the transaction of a twin is served", Rule: "atomic",
		Dir: postgres, Func: "(*Store).checkStore", Package: postgres, Run: "TestTx_SchemaOfSameName_ErrForeign",
		Old: "case err == nil && storeID != s.id:", New: "case err == nil && !storeID.Valid:",
	},
	{
		Name: "PostgreSQL, Atomic: a run joins the transaction of another store", Rule: "atomic",
		Dir: postgres, Func: "(*Store).inside", Package: postgres, Run: "TestRun_InsideHandlerOfOtherStore_DoesNotJoin",
		Old: "if in.store == s && !in.finished.Load() {", New: "if !in.finished.Load() {",
	},
	{
		Name: "PostgreSQL, Atomic: a copy goes to who has the connection now", Rule: "scope",
		Dir: postgres, Func: "(*handlerTx).CopyFrom", Package: postgres, Run: "TestHandlerTx_CommitOrRollback_Refused",
		Old: `
			rows pgx.CopyFromSource) (int64, error) {
			if t.finished.Load() {`,
		New: `
			rows pgx.CopyFromSource) (int64, error) {
			if !t.savepoint && t.Tx == nil {`,
	},
	{
		Name: "PostgreSQL, Atomic: a run does not know how high swept fences were", Rule: "rule 5",
		Dir: postgres, Func: "(*storeTx).claim", Package: postgres, Run: "TestAtomic_AfterSweep_FenceGrows",
		Old: "claim := &pending{proposal: *p, record: p.Insert(now, uint64(state.sweptFence))}",
		New: "claim := &pending{proposal: *p, record: p.Insert(now, 0)}",
	},
	{
		Name: "PostgreSQL, Atomic: a call runs within the run of its own key", Rule: "rule 2",
		Dir: postgres, Func: "(*storeTx).claim", Package: postgres, Run: "TestAtomic_SameKeyInsideHandler_InProgress",
		Old: "if t.outerHandler.runsKey(t.store, id) {", New: "if t.outerHandler.runsKey(nil, id) {",
	},
	{
		Name: "PostgreSQL, Atomic: what runs around a handler in a transaction is forgotten", Rule: "rule 2",
		Dir: postgres, Func: "(*Store).withRun", Package: postgres, Run: "TestAtomic_SameKeyInsideHandler_InProgress",
		Old: `
			outer, _ := ctx.Value(runningKey{}).(*runningHandler)
			return context.WithValue(ctx, runningKey{}, &runningHandler{store: s, id: id, finished: over, outer: outer})`,
		New: "return context.WithValue(ctx, runningKey{}, &runningHandler{store: s, id: id, finished: over})",
	},
	{
		Name: "PostgreSQL, Atomic: a handler of a whole batch does not know its keys", Rule: "rule 2",
		Dir: postgres, Func: "withBatch", Package: postgres, Run: "TestAtomic_SameKeyInsideHandler_InProgress/RunWhole",
		Old: "&runningHandler{store: batch.atomic.store, batch: batch, finished: over, outer: outer}",
		New: "&runningHandler{store: batch.atomic.store, finished: over, outer: outer}",
	},
	{
		Name: "PostgreSQL, Atomic: a run within another store's commits by itself", Rule: "atomic",
		Dir: postgres, Func: "(*Store).withTx", Package: postgres, Run: "TestRun_InsideTwoStores_JoinsOwn",
		Old: "in.outer, _ = ctx.Value(txKey{}).(*txIn)", New: "",
	},
	{
		Name: "PostgreSQL, Atomic: what a handler left behind runs in a transaction that is over", Rule: "atomic",
		Dir: postgres, Func: "(*Store).inside", Package: postgres, Run: "TestTxContext_AfterHandler_NotUsed",
		Old: "if in.store == s && !in.finished.Load() {", New: "if in.store == s {",
	},
	{
		Name: "PostgreSQL, Atomic: the key of a handler that has returned is in progress", Rule: "rule 14",
		Dir: postgres, Func: "(*runningHandler).runsKey", Package: postgres, Run: "TestTxContext_AfterHandler_NotUsed",
		Old: "if r.store == s && !r.finished.Load() && (", New: "if r.store == s && (",
	},
	{
		Name: "PostgreSQL, Atomic: a COMMIT that the server always refuses is tried for ever", Rule: "rule 13",
		Dir: postgres, Func: "(*Atomic).try", Package: postgres, Run: "TestAtomic_CommitRefused_CountsAttempt",
		Old: "if known && pgwire.RefusedForContent(commitErr) &&", New: "if !known && pgwire.RefusedForContent(commitErr) &&",
	},
	{
		Name: "PostgreSQL, Atomic: DoSQL does not notice that the handler has committed", Rule: "atomic",
		Dir: postgres, Func: "(*Atomic).try", Package: postgres, Run: "TestDoSQL_HandlerEndsTheTransaction_IsAnError",
		Old: "t.sqlTx.driverConn.PgConn().TxStatus() == 'I' {", New: "t.sqlTx.driverConn.PgConn().TxStatus() == 0 {",
	},
}
