package museum

// PostgreSQL, Atomic: the record commits with the handler's writes, or neither does.
var postgresTxs = []Mutant{
	{
		Name: "an Atomic call waits for a frozen server as long as its caller", Rule: "atomic",
		Dir: "store/pgstore", Func: "(*storeTx).limited", Package: "test/outage", Run: "TestServerFreezes_AtomicCallsReturnWithinLimit",
		Old: "pgwire.Limited(ctx, t.limit, call)", New: "call(ctx)",
	},
	{
		Name: "PostgreSQL, Atomic: a call waits for the key of another call, which its handler met", Rule: "rule 13",
		Dir: postgres, Func: "(*Atomic).run", Package: postgres, Run: "TestAtomic_InnerCallElsewhereInProgress",
		Old: "&& !w.ran", New: "",
	},
	{
		Name: "PostgreSQL, Atomic: a handler that met another call in progress uses up no attempt", Rule: "rule 13",
		Dir: postgres, Func: "(*storeTx).joinedTaken", Package: postgres, Run: "InnerCallElsewhereInProgress|InnerCallInProgress_CountsAttempt",
		Old: "return ok && e.conn", New: "return errors.Is(handlerErr, semel.ErrInProgress) || ok && e.conn",
	},
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
		Name: "PostgreSQL, Atomic: a COMMIT that the server answered before it stopped is unanswered", Rule: "rule 9",
		Dir: postgres, Func: "(*ownTx).sendCommit", Package: postgres, Run: "TestAtomic_ServerStopsAfterCommit_ResultReturned",
		Old: "if committed {", New: "if committed && err == nil {",
	},
	{
		Name: "PostgreSQL, Atomic: a server that ends the connection at COMMIT has refused it", Rule: "rule 9",
		Dir: "store/pgstore/internal/pgwire", Func: "Refused", Package: postgres, Run: "TestAtomic_ConnectionEndedAtCommit_OutcomeFound",
		Old: "&& !EndsConnection(err)", New: "",
	},
	{
		Name: "PostgreSQL, Atomic: a standby that has not replayed a commit says that there is none", Rule: "rule 9",
		Dir: postgres, Func: "(*Store).committedAndSettled", Package: postgres, Run: "TestFailover_StandbyHasNotReplayedCommit_InDoubt",
		Old: "case inRecovery:", New: "case inRecovery && err != nil:",
	},
	{
		Name: "PostgreSQL, Atomic: a standby that has not replayed the handler's own commit says that it was rolled back", Rule: "rule 9",
		Dir: postgres, Func: "(*ownTx).fate", Package: postgres, Run: "TestFailover_StandbyHasNotReplayedCommit_InDoubt",
		Old: "CASE WHEN NOT pg_is_in_recovery() THEN pg_xact_status($1::text::xid8) END", New: "pg_xact_status($1::text::xid8)",
	},
	{
		Name: "PostgreSQL, Atomic: after a failover another transaction passes for the handler's own commit", Rule: "rule 14",
		Dir: postgres, Func: "(*ownTx).fate", Package: postgres, Run: "TestFate_ServerStartedSince_NotKnown",
		Old: "err == nil && !sameServer", New: "err != nil && !sameServer",
	},
	{
		Name: "PostgreSQL, Atomic: a handler that fails parks its key if the id is not known", Rule: "rule 14",
		Dir: postgres, Func: "(*ownTx).afterHandler", Package: postgres, Run: "TestAtomic_HandlerFailsAfterConnInRows_NotParked/plain",
		Old: `case err != nil && t.finished.XID() != "":`, New: "case err != nil:",
	},
	{
		Name: "PostgreSQL, Atomic: a savepoint on a frozen server has no limit", Rule: "rule 14",
		Dir: postgres, Func: "(*storeTx).Nested", Package: postgres, Run: "TestAtomic_ServerFreezesInLaterAttempt_CallEnds/at_the_savepoint",
		Old: "if err := t.limited(ctx, t.pipeline.Flush); err != nil {\n				return pgwire.Explain(\"savepoint\", err)", New: "if err := t.pipeline.Flush(ctx); err != nil {\n				return pgwire.Explain(\"savepoint\", err)",
	},
	{
		Name: "PostgreSQL, DoSQL: a rollback on a frozen server has no limit", Rule: "rule 14",
		Dir: "store/pgstore/internal/pgwire", Func: "(*SQLTx).End", Package: postgres, Run: "TestDoSQL_ServerFreezesAtRollback_CallEnds",
		Old: "time.AfterFunc(limit, t.cancel)", New: "time.AfterFunc(time.Hour, t.cancel)",
	},
	{
		Name: "PostgreSQL, Atomic: a frozen process keeps the key that it looks up", Rule: "rule 14",
		Dir: postgres, Func: "(*Store).committedAndSettled", Package: postgres, Run: "TestAtomic_LookupFreezes_KeyBecomesFree",
		Old: "set_config('idle_in_transaction_session_timeout', $3::text, true)", New: "$3::text",
	},
	{
		Name: "PostgreSQL, Atomic: a key is parked because the server cannot be asked", Rule: "rule 14",
		Dir: postgres, Func: "(*Atomic).endedByHandler", Package: postgres, Run: "TestAtomic_ConnectionBreaksAndServerIsAway_KeyNotParked",
		Old: "committed, known := t.fate(ctx)", New: "committed, known := t.mayHaveCommitted(ctx), true",
	},
	{
		Name: "PostgreSQL, Atomic: a key that could not be parked is said to be parked", Rule: "rule 9",
		Dir: postgres, Func: "(*Atomic).endedByHandler", Package: postgres, Run: "TestAtomic_HandlerCommitsAndKeyCannotBeParked_Unavailable",
		Old: "case parkErr != nil:", New: "case parkErr != nil && !known:",
	},
	{
		Name: "PostgreSQL, Atomic: a key that another call has claimed is said to be parked", Rule: "rule 9",
		Dir: postgres, Func: "(*Atomic).claimAgain", Package: postgres, Run: "TestAtomic_HandlerCommitsAndAnotherClaims_ErrorDoesNotSayParked",
		Old: "err = errClaimedSince", New: "err = nil",
	},
	{
		Name: "PostgreSQL, Atomic: a commit of the handler is missed where the store's own got no answer", Rule: "atomic",
		Dir: postgres, Func: "(*Atomic).afterCommit", Package: postgres, Run: "TestAtomic_HandlerCommitsAndCommitUnanswered_Parked",
		Old: `if known && !committed && t.finished.XID() != ""`, New: `if known && committed && t.finished.XID() != ""`,
	},
	{
		Name: "PostgreSQL, Atomic: a refused commit parks its key if the id is not known", Rule: "atomic",
		Dir: postgres, Func: "(*Atomic).afterCommit", Package: postgres, Run: "TestAtomic_CommitRefused_CountsAttempt",
		Old: ` && t.finished.XID() != ""`, New: "",
	},
	{
		Name: "PostgreSQL, Atomic: what another has settled is taken for one's own commit", Rule: "rule 4",
		Dir: postgres, Func: "(*Store).committedAndSettled", Package: postgres, Run: "TestAtomic_OtherOwnerSettled_NotOwnCommit",
		Old: "settled = err == nil && f.Record.Owner == won.Owner && f.Record.State.Terminal()",
		New: "settled = err == nil && f.Record.State.Terminal()",
	},
	{
		Name: "PostgreSQL, Atomic: a try whose caller left is not noted", Rule: "rule 13", Parent: "M20: complete on the request context",
		Dir: postgres, Func: "(*Atomic).claimAgain", Package: postgres, Run: "TestAtomic_CallerLeaves_CountsAttempt",
		Old: "context.WithTimeout(context.WithoutCancel(ctx), a.cleanupTimeout)", New: "context.WithTimeout(ctx, a.cleanupTimeout)",
	},
	{
		Name: "PostgreSQL, Atomic: the handler's own unique violation is a lost race", Rule: "rule 13", Parent: "M9: 23505 swallowed in a transaction (CAMEL-24048)",
		Dir: "store/pgstore/internal/table", Func: "LostRace", Package: postgres, Run: "TestAtomic_HandlerUniqueViolation_IsHandlerError",
		Old: `return ok && e.Code == pgwire.UniqueViolation && (e.TableName == Name || strings.HasPrefix(e.TableName, Name+"_p"))`,
		New: `return ok && e.Code == pgwire.UniqueViolation && (e.TableName != "" || strings.HasPrefix(e.ConstraintName, Name))`,
	},
	{
		Name: "PostgreSQL, Atomic: what is always refused is tried for ever", Rule: "rule 14",
		Dir: postgres, Func: "(*Atomic).run", Package: postgres, Run: "TestAtomic_AlwaysRefused_EndsUnavailable",
		Old: "last := refused == pgwire.Tries-1", New: "last := refused == 3*pgwire.Tries",
	},
	{
		Name: "PostgreSQL, Atomic: a waiter runs what is about to be noted as failed", Rule: "rule 14",
		Dir: postgres, Func: "(*waiter).admit", Package: postgres, Run: "TestAtomic_WaiterAfterFailure_WaitsForRecord",
		Old: "case !w.waitedForRecord:", New: "case !w.refused:",
	},
	{
		Name: "PostgreSQL, Atomic: a duplicate waits for the row of a run in flight", Rule: "rule 14",
		Dir: postgres, Func: "(*keyState).found", Package: postgres, Run: "TestAtomic_DuplicateOfOpenTakeOver_InProgress",
		Old: "k.locked || f.Record.State.Terminal() && !expired {", New: "k.locked || expired || f.Record.State.Terminal() {",
	},
	{
		Name: "PostgreSQL, Atomic: a handler is not undone when the caller left", Rule: "atomic",
		Dir: postgres, Func: "(*storeTx).undo", Package: postgres, Run: "TestIn_CallerLeaves_HandlerUndone",
		Old: "context.WithTimeout(context.WithoutCancel(ctx), cmp.Or(t.limit, defaultStoreTimeout))", New: "context.WithTimeout(ctx, cmp.Or(t.limit, defaultStoreTimeout))",
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
		Dir: handlertx, Func: "(*Tx).CopyFrom", Package: postgres, Run: "TestHandlerTx_CommitOrRollback_Refused",
		Old: "if err := t.use(ctx); err != nil {", New: "if err := t.use(ctx); err != nil && err != pgx.ErrTxClosed {",
	},
	{
		Name: "PostgreSQL, Atomic: a run does not know how high swept fences were", Rule: "rule 5",
		Dir: postgres, Func: "(*storeTx).claim", Package: postgres, Run: "TestAtomic_AfterSweep_FenceGrows",
		Old: "claim := &table.Pending{Proposal: *p, Record: p.Insert(now, uint64(state.sweptFence))}",
		New: "claim := &table.Pending{Proposal: *p, Record: p.Insert(now, 0)}",
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
		Dir: postgres, Func: "withBatch", Package: postgres, Run: "TestAtomic_SameKeyInsideHandler_InProgress/RunBatch",
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
		Old: "if known && answered && mayBeItsContent(commitErr) &&", New: "if known && !answered && mayBeItsContent(commitErr) &&",
	},
	{
		Name: "PostgreSQL, Atomic: a code of a server in trouble that a trigger raises is an outage", Rule: "rule 13",
		Dir: postgres, Func: "mayBeItsContent", Package: postgres, Run: "TestAtomic_FailureBehindHandler_CountsAttempt",
		Old: "(!serverEnds || pgwire.RefusedForContent(err))", New: "!serverEnds",
	},
	{
		Name: "PostgreSQL, Atomic: DoSQL does not know what became of the handler's transaction", Rule: "atomic",
		Dir: postgres, Func: "(*ownTx).connect", Package: postgres, Run: "TestDoSQL_HandlerEndsTheTransaction_IsAnError",
		Old: "t.finished.Lend(id)", New: "_ = id",
	},
	{
		Name: "PostgreSQL, Atomic: an effect that the handler has committed itself leaves no record", Rule: "atomic",
		Dir: postgres, Func: "(*ownTx).fate", Package: postgres, Run: "TestDoSQL_HandlerEndsTheTransaction_IsAnError",
		Old: "if id.XID == \"\" {\n				return true, true", New: "if id.XID != \"\" {\n				return false, true",
	},
	{
		Name: "PostgreSQL, Atomic: a handler may end its transaction by a statement", Rule: "atomic",
		Dir: handlertx, Func: "anyStatement", Package: postgres, Run: "TestAtomic_HandlerSpoilsTransaction_EffectAndRecordAgree",
		Old: "return does(sql)", New: "return false",
	},
	{
		Name: "PostgreSQL, Atomic: another transaction on the same connection passes for the handler's", Rule: "atomic",
		Dir: postgres, Func: "(*storeTx).queueCheck", Package: postgres, Run: "TestAtomic_HandlerSpoilsTransaction_EffectAndRecordAgree",
		Old: "if sql == \"\" || t.restarted {", New: "if sql != \"\" || t.restarted {",
	},
	{
		Name: "PostgreSQL, batches: a batch without records does not ask whether its handler has committed", Rule: "atomic",
		Dir: postgres, Func: "(*batchTry).commit", Package: postgres, Run: "TestAtomic_HandlerSpoilsTransaction_EffectAndRecordAgree/a_call_of_a_batch",
		Old: `sql != "" {`, New: `sql != "" && prefetched {`,
	},
	{
		Name: "PostgreSQL, Atomic: a statement that failed is no failure of the handler that hides it", Rule: "rule 13",
		Dir: postgres, Func: "(*ownTx).afterHandler", Package: postgres, Run: "TestAtomic_FailureBehindHandler_CountsAttempt",
		Old: "case err == nil && conn.PgConn().TxStatus() == failedTx:", New: "case err == nil && conn.PgConn().TxStatus() == 0:",
	},
	{
		Name: "PostgreSQL, Atomic: a handler that commits and hides a failure has had no effect", Rule: "atomic",
		Dir: postgres, Func: "(*ownTx).afterHandler", Package: postgres, Run: "TestAtomic_HandlerCommitsAndSwallowsFailure_Parked",
		Old: `errHiddenFailure, t.finished.XID() != ""`, New: "errHiddenFailure, false",
	},
	{
		Name: "PostgreSQL, Atomic: a step that its handler has committed is said to be parked", Rule: "steps",
		Dir: postgres, Func: "(*Atomic).endedByHandler", Package: postgres, Run: "TestStep_HandlerCommits_ErrorSaysThatStepIsNotRecorded",
		Old: "len(attempts) == 1 && attempts[0].claimed == nil", New: "len(attempts) == 0",
	},
	{
		Name: "PostgreSQL, Atomic: a step waits for a frozen server as long as its caller", Rule: "rule 14",
		Dir: postgres, Func: "(*storeTx).RecordStep", Package: postgres, Run: "TestAtomic_ServerFreezesInStep_CallEnds/when_the_step_is_recorded",
		Old: "t.limited(ctx, func", New: "(&storeTx{}).limited(ctx, func",
	},
	{
		Name: "PostgreSQL, standby: a COMMIT whose wait was cancelled counts as answered", Rule: "durable",
		Dir: "store/pgstore/internal/pgwire", Func: "isReplicationWarning", Package: postgres, Run: "TestStandbyAway_WaitCancelled_NothingAcknowledged",
		Old: `return n.Routine == "SyncRepWaitForLSN" ||`, New: `return n.Routine == "SyncRepWaitForLSN" && n == nil &&`,
	},
	{
		Name: "PostgreSQL, standby: a settlement that is found is taken for a durable one", Rule: "durable",
		Dir: postgres, Func: "(*Store).Settle", Package: postgres, Run: "TestStandbyAway_WaitCancelled_NothingAcknowledged",
		Old: "err = s.confirm(ctx)", New: "err = nil",
	},
	{
		Name: "PostgreSQL, standby: a duplicate gets an outcome that the standby does not have", Rule: "durable",
		Dir: postgres, Func: "(*claimAnswer).found", Package: postgres, Run: "TestStandbyAway_WaitCancelled_NothingAcknowledged",
		Old: "c.hasStandby && r.Record.IsAnswer()", New: "c.hasStandby && r.Record.State == store.Started",
	},
	{
		Name: "PostgreSQL, standby: a claim that is sent again and is recognized is taken for a durable one", Rule: "durable",
		Dir: postgres, Func: "(*claimAnswer).found", Package: postgres, Run: "TestStandbyAway_WaitCancelled_NothingAcknowledged",
		Old: "r.unconfirmed = r.Won ||", New: "r.unconfirmed = r.Won && r.Now.IsZero() ||",
	},
	{
		Name: "PostgreSQL, standby: a commit of Atomic that is found is taken for a durable one", Rule: "durable",
		Dir: postgres, Func: "(*Store).committedAndSettled", Package: postgres, Run: "TestStandbyAway_WaitCancelled_NothingAcknowledged",
		Old: "if err == nil && settled {", New: "if err != nil && settled {",
	},
	{
		Name: "PostgreSQL, standby: a batch of duplicates is answered without the standby", Rule: "durable",
		Dir: postgres, Func: "(*batchTry).commit", Package: postgres, Run: "TestStandbyAway_WaitCancelled_NothingAcknowledged",
		Old: "if b.tx.hasStandby {", New: "if !b.tx.hasStandby {",
	},
	{
		Name: "PostgreSQL: a process that freezes in Receive keeps the record locked", Rule: "rule 14",
		Dir: postgres, Func: "(*journal).Receive", Package: postgres, Run: "TestReceive_RecordWithSteps_LimitsIdleTime",
		Old: "'idle_in_transaction_session_timeout'", New: "'semel.idle'",
	},
	{
		Name: "PostgreSQL: a process that freezes while it migrates keeps the tables locked", Rule: "rule 14",
		Dir: "store/pgstore/internal/schema", Func: "const migrationLock", Package: postgres, Run: "TestMigrate_Scripts_LimitIdleTime",
		Old: "'idle_in_transaction_session_timeout'", New: "'semel.idle'",
	},
}
