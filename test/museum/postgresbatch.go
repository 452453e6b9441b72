package museum

// PostgreSQL, batches: many messages in a transaction, each with an end of its own.
var postgresBatches = []Mutant{
	{
		Name: "PostgreSQL, Atomic: rows that a handler left open pass for an outage", Rule: "rule 13",
		Dir: handlertx, Func: "CloseUnread", Package: postgres, Run: "LeavesRowsOpen",
		Old: "if !IsUnread(conn) {", New: "if true {",
	},
	{
		Name: "Kafka into PostgreSQL, offsets: rows that a handler left open stop the partition", Rule: "rule 13",
		Dir: kafkapg, Func: "mayBeOneMessage", Package: kafkapg, Run: "TestOffsets_RowsLeftOpen",
		Old: "|| errors.Is(err, pgkafka.ErrUnread)", New: "",
	},
	{
		Name: "PostgreSQL, Atomic: a record keeps an error of any length", Rule: "rule 13",
		Dir: postgres, Func: "(*Atomic).recordAttempt", Package: postgres, Run: "TestAtomic_HugeErrorText",
		Old: "driver.ErrorText(why)", New: "why.Error()",
	},
	{
		Name: "PostgreSQL, batches: to undo one call undoes its neighbours", Rule: "atomic",
		Dir: postgres, Func: "(*batchTry).runHandler", Package: postgres, Run: "TestRunBatch_OneCallUndone_OthersKept",
		Old: "if (c.hasSavepoint || c.swapped) && c.undone() && len(admitted) > 1 {", New: "if false {",
	},
	{
		Name: "PostgreSQL, batches: what undoes a failed statement is prepared first", Rule: "rule 13",
		Dir: postgres, Func: "(*batchTry).endSavepoint", Package: postgres, Run: "TestRunBatch_FirstStatementFails_OthersSucceed",
		Old: `
			if err := b.tx.pipeline.Flush(ctx); err != nil {
				return err
			}`,
		New: `
			b.tx.pipeline.Push("ROLLBACK TO "+name, nil, nil)
			b.tx.pipeline.Push("RELEASE "+name, nil, nil)
			if name != "" {
				return b.tx.pipeline.Flush(ctx)
			}`,
	},
	{
		Name: "PostgreSQL, batches: what a handler copies is not undone", Rule: "atomic",
		Dir: handlertx, Func: "(*Tx).CopyFrom", Package: postgres, Run: "TestRunBatch_HandlerFails_WritesUndone",
		Old: "if err := t.use(ctx); err != nil {", New: "if t.state.Load() { err := pgx.ErrTxClosed",
	},
	{
		Name: "PostgreSQL, batches: a commit without an answer counts as done", Rule: "rule 9", Parent: "M7: CAMEL-24046",
		Dir: postgres, Func: "(*batchTry).commit", Package: postgres, Run: "TestRunBatch_ConnectionCut_EffectsOnce",
		Old: "case committed:", New: "case committed, known:",
	},
	{
		Name: "PostgreSQL, batches: a COMMIT without an answer is the handler's own", Rule: "rule 9",
		Dir: postgres, Func: "(*batchRun).try", Package: postgres, Run: "TestRunBatch_StandbyAwayAtCommit_SameCallGetsResult",
		Old: `t.finished.XID() != "" && !t.committing`, New: `t.finished.XID() != ""`,
	},
	{
		Name: "PostgreSQL, batches: a handler that commits by itself and panics leaves no record", Rule: "atomic",
		Dir: postgres, Func: "(*batchRun).try", Package: postgres, Run: "TestAtomic_HandlerCommitsByConnInRowsAndPanics_Parked/batch",
		Old: "batch.txStatus() == noTx", New: "batch.txStatus() == brokenTx",
	},
	{
		Name: "PostgreSQL, Atomic: a handler that commits by itself and panics leaves no record", Rule: "atomic",
		Dir: postgres, Func: "(*Atomic).try", Package: postgres, Run: "TestAtomic_HandlerCommitsByConnInRowsAndPanics_Parked/Once",
		Old: "if !returned {\n				_ = t.afterHandler(ctx, errPanicked)", New: "if returned {\n				_ = t.afterHandler(ctx, errPanicked)",
	},
	{
		Name: "PostgreSQL, batches: a committed outcome is parked", Rule: "rule 8",
		Dir: postgres, Func: "(*Atomic).claimAgain", Package: postgres, Run: "TestPrefetch_HandlerCommits_RecordsStay",
		Old: "&& !f.Record.State.Terminal()", New: "",
	},
	{
		Name: "PostgreSQL, batches: what is behind an outage overtakes", Rule: "ack",
		Dir: postgres, Func: "(*batchRun).runPart", Package: postgres, Run: "TestRunBatch_Outage_LaterCallsNotRun",
		Old: "b.outage = err", New: "b.outage = nil",
	},
	{
		Name: "PostgreSQL, batches: a row is lost where a statement is full", Rule: "durable",
		Dir: "store/pgstore/internal/table", Func: "InsertRows", Package: "store/pgstore/internal/table", Run: "TestInsertRows_ExceedOneStatement_AllInSome",
		Old: "append(parts, rows[start:i]), i, n", New: "append(parts, rows[start:i]), i+1, n",
	},
	{
		Name: "PostgreSQL, batches: the second with a key is compared with itself", Rule: "rule 12", Parent: "M6: fingerprint skipped on conflict path",
		Dir: postgres, Func: "(*prefetch).claim", Package: postgres, Run: "TestPrefetch_KeyTwice_SecondComparedWithFirst",
		Old: "p.settlement.Apply(call.prefetched.firstCall.proposal.Insert(", New: "p.settlement.Apply(call.proposal.Insert(",
	},
	{
		Name: "PostgreSQL, batches: all are recorded as the first one's tenant", Rule: "scope", Parent: "M13: scope dropped (devlink#773)",
		Dir: "store/pgstore/internal/table", Func: "Alike", Package: postgres, Run: "TestPrefetch_CallsDiffer_RecordedCorrectly",
		Old: "&& p.Key.Tenant == q.Key.Tenant", New: "",
	},
	{
		Name: "PostgreSQL, batches: a token runs where its reservation is gone", Rule: "rule 16",
		Dir: postgres, Func: "(*Atomic).newPrefetch", Package: postgres, Run: "TestPrefetch_ReservationGone_DoesNotRun",
		Old: "possible = possible && ok && table.Alike(", New: "possible = possible && (ok || prefetch.rows != nil) && table.Alike(",
	},
	{
		Name: "PostgreSQL, batches: a fence recorded ahead forgets what was swept", Rule: "rule 5",
		Dir: "store/pgstore/internal/table", Func: "NewStatements", Package: postgres, Run: "TestPrefetch_AfterSweep_FenceGrows",
		Old: "(SELECT greatest(m.swept_fence + 1, c.now) FROM c CROSS JOIN", New: "(SELECT c.now FROM c CROSS JOIN",
	},
	{
		Name: "PostgreSQL, batches: of two keys with one id the second has the first's answer", Rule: "rule 2",
		Dir: "store/pgstore/internal/table", Func: "(*CompletedRow).Found", Package: postgres, Run: "TestPrefetch_SameIDOtherKey_NotDuplicate|TestPrefetch_UnreadableRow_NotReplayed",
		Old: "key.Value = string(r.key)", New: "",
	},
	{
		Name: "PostgreSQL, batches: what has expired is a duplicate's answer", Rule: "rule 7",
		Dir: "store/pgstore/internal/table", Func: "const isCompleted", Package: postgres, Run: "TestPrefetch_ExistingRecord_AnswersAsRun",
		Old: "AND r.expires > (SELECT now FROM c)", New: "",
	},
	{
		Name: "PostgreSQL, batches: a look ahead takes keys of the batch before", Rule: "ack",
		Dir: postgres, Func: "(*Prefetcher).Prefetch", Package: postgres, Run: "TestPrefetch_EarlierBatchRunsAgain_OrderKept",
		Old: "try.prefetch.leaveOut(other.rows)", New: "",
	},
	{
		Name: "PostgreSQL, batches: a drop does not wait for its look", Rule: "isolation",
		Dir: postgres, Func: "(*PrefetchedBatch).dropPrefetch", Package: postgres, Run: "TestPrefetch_DropInFlight_Waits",
		Old: `
			p.dropped = true
			for p.inFlight {`,
		New: `
			p.dropped = true
			for p.inFlight && p.tx != nil {`,
	},
	{
		Name: "PostgreSQL, batches: a zombie moves the watermark", Rule: "rule 4", Parent: "M1: complete without gen (Powertools, River)",
		Dir: pgkafka, Func: "statementsOf", Package: pgkafka, Run: "TestWatermark_FencedOwner_PollFails",
		Old: "AND epoch = $5::bigint AND next_offset BETWEEN", New: "AND epoch <= $5::bigint + 1 AND next_offset BETWEEN",
	},
	{
		Name: "PostgreSQL, batches: a watermark that begins anew has an old owner", Rule: "rule 5",
		Dir: pgkafka, Func: "statementsOf", Package: pgkafka, Run: "TestForget_OldOwner_CannotMove",
		Old: "$5::bigint, c.now, c.now FROM c", New: "$5::bigint, 1, c.now FROM c",
	},
	{
		Name: "PostgreSQL, batches: whether a watermark moved is not waited for", Rule: "rule 9",
		Dir: pgkafka, Func: "statementsOf", Package: pgkafka, Run: "TestWatermark_CommitInFlight_WaitedFor",
		Old: "WHERE {partition} FOR UPDATE`", New: "WHERE {partition}`",
	},
	{
		Name: "PostgreSQL, batches: a frozen owner holds the watermark", Rule: "rule 14",
		Dir: pgkafka, Func: "statementsOf", Package: pgkafka, Run: "TestWatermark_OwnerFrozen_LockReleased",
		Old: "<> '', set_config('idle_in_transaction_session_timeout', $8::text, true)",
		New: "<> '', set_config('semel.idle', $8::text, true)",
	},
	{
		Name: "PostgreSQL, batches: a statement too late takes the place of the savepoint", Rule: "atomic",
		Dir: postgres, Func: "(*batchTry).markUsed", Package: postgres, Run: "TestRunBatch_StatementTimesOut_LaterStatementsUndone",
		Old: `
			if err := b.setSavepoint(ctx, saveHandler); err != nil {
				return err
			}
			b.hasSavepoint = true`,
		New: `
			b.hasSavepoint = true
			if err := b.setSavepoint(ctx, saveHandler); err != nil {
				return err
			}`,
	},
	{
		Name: "PostgreSQL, batches: who breaks a connection sinks the batch", Rule: "isolation",
		Dir: postgres, Func: "(*batchRun).try", Package: postgres, Run: "TestRunBatch_CallBreaksConnection_OthersSucceed/the_server",
		Old: "if errors.Is(err, errConnectionBroke) ||", New: "if errors.Is(err, errConnectionBroke) && useSavepoints ||",
	},
	{
		Name: "PostgreSQL, batches: a broken connection that the handler hides is an outage", Rule: "isolation",
		Dir: postgres, Func: "(*batchTry).afterHandler", Package: postgres, Run: "TestRunBatch_CallBreaksConnection_OthersSucceed/hidden",
		Old: "case b.txStatus() == brokenTx:", New: "case handlerErr != nil && b.txStatus() == brokenTx:",
	},
	{
		Name: "PostgreSQL, batches: who broke a connection alone has made no attempt", Rule: "rule 13",
		Dir: postgres, Func: "(*batchRun).afterBreak", Package: postgres, Run: "TestRunBatch_CallBreaksConnection_OthersSucceed/the_server",
		Old: `
			batch.tx.countsAsAttempt(err) {
			if b.atomic.recordAttempt`,
		New: `
			!batch.tx.countsAsAttempt(err) {
			if b.atomic.recordAttempt`,
	},
	{
		Name: "PostgreSQL, batches: the keys of a broken connection are asked for before they are free", Rule: "rule 14",
		Dir: postgres, Func: "(*batchTry).waitFree", Package: postgres, Run: "TestRunBatch_CallBreaksConnection_OthersSucceed/the_server_notices",
		Old: "c.claimed != nil || l != nil && l.locked {", New: "c.claimed != nil && l != nil && l.locked {",
	},
	{
		Name: "PostgreSQL, batches: who breaks a connection at COMMIT sinks the batch", Rule: "isolation",
		Dir: postgres, Func: "(*batchTry).commit", Package: postgres, Run: "TestRunBatch_CallBreaksConnection_OthersSucceed/at_COMMIT",
		Old: "case broke:", New: "case broke && !known:",
	},
	{
		Name: "PostgreSQL, batches: a call that did not run is in doubt", Rule: "rule 14",
		Dir: postgres, Func: "(*batchRun).failInDoubt", Package: postgres, Run: "TestRunBatch_CommitUnanswered_OnlyItsCallsInDoubt",
		Old: "unanswered.cause", New: "unanswered",
	},
	{
		Name: "PostgreSQL, batches: a duplicate is in doubt because its neighbour's handler commits", Rule: "rule 14",
		Dir: postgres, Func: "(*batchRun).endInDoubt", Package: postgres, Run: "TestRunBatch_HandlerCommits_OnlyItsCallsInDoubt",
		Old: "case c.claimed == nil:", New: "case c.batch == nil:",
	},
	{
		Name: "PostgreSQL, batches: a watermark does not say that its COMMIT broke", Rule: "rule 13",
		Dir: pgkafka, Func: "(*Watermark).outcome", Package: pgkafka, Run: "TestWatermark_CommitUnanswered_OutcomeFound",
		Old: "if broke && ctx.Err() == nil {", New: "if broke && ctx.Err() != nil {",
	},
	{
		Name: "PostgreSQL, batches: the last message of a watermark that was set back counts", Rule: "rule 14",
		Dir: pgkafka, Func: "Own", Package: pgkafka, Run: "TestOwn_LastMessage_IsOfThePosition",
		Old: "published == 0 || lastOffset != w.next-1 {", New: "published == 0 || lastOffset < 0 {",
	},
	{
		Name: "PostgreSQL, batches: the watermark moves past a gap", Rule: "ack", Parent: "M22: highest offset committed",
		Dir: kafkapg, Func: "(*offsetsBatch).newSpans", Package: kafkapg, Run: "TestOffsets_GapInBatch",
		Old: "if it.From > s.Next {", New: "if it.From > it.Origin.Offset {",
	},
	{
		Name: "PostgreSQL, batches: Pass moves the watermark past a gap", Rule: "ack",
		Dir: kafkapg, Func: "(*offsetsLedger).Pass", Package: kafkapg, Run: "TestPass_GapBeforeMessage",
		Old: `
			if it.From > p.watermark.Next() {
				return gapError(&it, p.watermark.Next())
			}`,
		New: "",
	},
	{
		Name: "PostgreSQL, batches: the watermark of only one partition moves", Rule: "atomic",
		Dir: kafkapg, Func: "(*offsetsBatch).try", Package: kafkapg, Run: "TestOffsets_SeveralPartitions",
		Old: "for _, s := range spans[:len(spans)-1] {", New: "for _, s := range spans[len(spans):] {",
	},
	{
		Name: "PostgreSQL, batches: an outage counts as an attempt of a message", Rule: "rule 11",
		Dir: kafkapg, Func: "isServerFailure", Package: kafkapg, Run: "TestOffsets_Outage",
		Old: `code == "53100" ||`, New: "",
	},
	{
		Name: "PostgreSQL, batches: a savepoint on a frozen server has no limit", Rule: "rule 14",
		Dir: postgres, Func: "(*batchTry).setSavepoint", Package: postgres, Run: "TestRunBatch_ServerFreezes_CallEnds/at_the_savepoint",
		Old: "b.tx.limited(ctx, b.tx.pipeline.Flush)", New: "b.tx.pipeline.Flush(ctx)",
	},
	{
		Name: "PostgreSQL, batches: a message gets the result of another one", Rule: "ack", Parent: "M21: ack before complete",
		Dir: kafkapg, Func: "(*keyedBatch).setResults", Package: kafkapg, Run: "TestKeyed_MixedBatch",
		Old: "b.results[b.indexes[n]] = r", New: "b.results[n] = r",
	},
	{
		Name: "PostgreSQL, batches: a message that crashes the server is tried forever", Rule: "rule 13",
		Dir: kafkapg, Func: "(*keyedBatch).handleAlone", Package: kafkapg, Run: "TestKeyed_ServerCrashes_EndsAfterMaxAttempts",
		Old: "attempt := max(c.Execution.Attempt(), b.uncommitted[m.Origin.ID]+1)", New: "attempt := c.Execution.Attempt()",
	},
	{
		Name: "PostgreSQL, batches: a later message overtakes one whose key is in progress elsewhere", Rule: "ack",
		Dir: kafkapg, Func: "(*keyedBatch).blockIfNotDone", Package: kafkapg, Run: "TestKeyed_MessageNotDone",
		Old: "case driver.Hold, driver.Retry:", New: "case driver.Retry:",
	},
	{
		Name: "PostgreSQL, batches: a later message overtakes one whose COMMIT is refused", Rule: "ack",
		Dir: kafkapg, Func: "(*keyedBatch).handleAlone", Package: kafkapg, Run: "TestKeyed_CommitRefused",
		Old: `if m.OrderKey != "" {`, New: `if err != nil && m.OrderKey != "" {`,
	},
	{
		Name: "PostgreSQL, batches: a message that breaks its connection stops its partition", Rule: "rule 13",
		Dir: kafkapg, Func: "mayBeOneMessage", Package: kafkapg, Run: "TestHandle_MessageBreaksItsConnection/the_server",
		Old: "return !isServerFailure(h.error)", New: "return !isServerFailure(h.error) && !h.connectionBroken",
	},
	{
		Name: "PostgreSQL, batches: a message that exceeds a limit stops its partition", Rule: "rule 13",
		Dir: kafkapg, Func: "mayBeOneMessage", Package: kafkapg, Run: "TestHandle_ServerRefusesOneMessage",
		Old: "return !isServerFailure(h.error)", New: "return !isServerFailure(h.error) && !mayBeServerFailure(h.error)",
	},
	{
		Name: "PostgreSQL, batches: a message that is always in conflict waits forever", Rule: "rule 13",
		Dir: kafkapg, Func: "(*position).isBusy", Package: kafkapg, Run: "TestOffsets_MessageAlwaysBusy",
		Old: "return p.busy <= maxBusy", New: "return true",
	},
	{
		Name: "PostgreSQL, batches: a standby makes each message fail", Rule: "rule 11",
		Dir: kafkapg, Func: "(*offsetsBatch).endFailed", Package: kafkapg, Run: "TestOffsets_Outage",
		Old: "(h.connectionBroken || mayBeServerFailure(h.error))", New: "h.connectionBroken",
	},
	{
		Name: "PostgreSQL, batches: a broken connection that the handler hides stops the partition", Rule: "rule 13",
		Dir: handlertx, Func: "(*Tx).Failed", Package: kafkapg, Run: "TestHandle_MessageBreaksItsConnection/the_handler",
		Old: "return conn.IsClosed() || conn.PgConn().TxStatus() == 'E'", New: "return conn.PgConn().TxStatus() == 'E'",
	},
	{
		Name: "PostgreSQL, batches: a database that does not answer counts as an attempt of a message", Rule: "rule 11",
		Dir: kafkapg, Func: "(*offsetsBatch).endFailed", Package: kafkapg, Run: "TestOffsets_Outage/no_connection",
		Old: "&& !b.databaseAnswers(ctx, s) {", New: "&& ctx.Err() != nil {",
	},
	{
		Name: "PostgreSQL, batches: a message that breaks its connection at COMMIT stops its partition", Rule: "rule 13",
		Dir: kafkapg, Func: "mayBeOneMessage", Package: kafkapg, Run: "TestHandle_MessageBreaksItsConnection/at_COMMIT",
		Old: "errors.Is(err, pgstore.ErrBusy) || errors.Is(err, pgkafka.ErrBroken) ||", New: "errors.Is(err, pgstore.ErrBusy) ||",
	},
}
