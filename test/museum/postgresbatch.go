package museum

// PostgreSQL, batches: many messages in a transaction, each with an end of its own.
var postgresBatches = []Mutant{
	{
		Name: "PostgreSQL, batches: to undo one call undoes its neighbours", Rule: "atomic",
		File: "store/pgstore/batchrun.go", Package: postgres, Run: "TestRunWhole_OneCallUndone_OthersKept",
		Old: "if (c.hasSavepoint || c.swapped) && c.undone() && len(admitted) > 1 {", New: "if false {",
	},
	{
		Name: "PostgreSQL, batches: what undoes a failed statement is prepared first", Rule: "rule 13",
		File: "store/pgstore/batchrun.go", Package: postgres, Run: "TestRunWhole_FirstStatementFails_OthersSucceed",
		Old: "\tif err := b.tx.pipeline.Flush(ctx); err != nil {\n\t\treturn err\n\t}\n\t// As simple", New: "\tb.tx.pipeline.Push(\"ROLLBACK TO \"+name, nil, nil)\n\tb.tx.pipeline.Push(\"RELEASE \"+name, nil, nil)\n\tif name != \"\" {\n\t\treturn b.tx.pipeline.Flush(ctx)\n\t}\n\t// As simple",
	},
	{
		Name: "PostgreSQL, batches: what a handler copies is not undone", Rule: "atomic",
		File: "store/pgstore/handlertx.go", Package: postgres, Run: "TestRunWhole_HandlerFails_WritesUndone",
		Old: "\tif err := t.batch.markUsed(ctx); err != nil {\n\t\treturn 0, err\n\t}\n", New: "",
	},
	{
		Name: "PostgreSQL, batches: a commit without an answer counts as done", Rule: "rule 9", Parent: "M7: CAMEL-24046",
		File: "store/pgstore/batchrun.go", Package: postgres, Run: "TestRunWhole_ConnectionCut_EffectsOnce",
		Old: "\t\tif committed {\n\t\t\treturn nil\n\t\t}\n\t\tundone = known\n", New: "\t\tif committed || !committed && known {\n\t\t\treturn nil\n\t\t}\n",
	},
	{
		Name: "PostgreSQL, batches: what is behind an outage overtakes", Rule: "ack",
		File: "store/pgstore/batch.go", Package: postgres, Run: "TestRunWhole_Outage_LaterCallsNotRun",
		Old: "\t\t\tb.outage = err\n", New: "\t\t\tb.outage = nil\n",
	},
	{
		Name: "PostgreSQL, batches: a row is lost where a statement is full", Rule: "durable",
		File: "store/pgstore/batchsql.go", Package: postgres, Run: "TestRunWhole_RowsExceedOneStatement_AllWritten",
		Old: "append(parts, rows[start:i]), i, n", New: "append(parts, rows[start:i]), i+1, n",
	},
	{
		Name: "PostgreSQL, batches: the second with a key is compared with itself", Rule: "rule 12", Parent: "M6: fingerprint skipped on conflict path",
		File: "store/pgstore/prefetched.go", Package: postgres, Run: "TestPrefetch_KeyTwice_SecondComparedWithFirst",
		Old: "p.settlement.Apply(call.prefetched.firstCall.proposal.Insert(", New: "p.settlement.Apply(call.proposal.Insert(",
	},
	{
		Name: "PostgreSQL, batches: all are recorded as the first one's tenant", Rule: "scope", Parent: "M13: scope dropped (devlink#773)",
		File: "store/pgstore/prefetched.go", Package: postgres, Run: "TestPrefetch_CallsDiffer_RecordedCorrectly",
		Old: " && p.Key.Tenant == q.Key.Tenant", New: "",
	},
	{
		Name: "PostgreSQL, batches: a token runs where its reservation is gone", Rule: "rule 16",
		File: "store/pgstore/prefetched.go", Package: postgres, Run: "TestPrefetch_ReservationGone_DoesNotRun",
		Old: "possible = possible && ok && alikeBut(", New: "possible = possible && (ok || prefetch.rows != nil) && alikeBut(",
	},
	{
		Name: "PostgreSQL, batches: a fence recorded ahead forgets what was swept", Rule: "rule 5",
		File: "store/pgstore/internal/table/sql.go", Package: postgres, Run: "TestPrefetch_AfterSweep_FenceGrows",
		Old: "(SELECT greatest(m.swept_fence + 1, c.now) FROM c CROSS JOIN", New: "(SELECT c.now FROM c CROSS JOIN",
	},
	{
		Name: "PostgreSQL, batches: of two keys with one id the second has the first's answer", Rule: "rule 2",
		File: "store/pgstore/internal/table/unpack.go", Package: postgres, Run: "TestPrefetch_SameIDOtherKey_NotDuplicate|TestPrefetch_UnreadableRow_NotReplayed",
		Old: "\t\tkey.Value = string(r.key)\n", New: "",
	},
	{
		Name: "PostgreSQL, batches: what has expired is a duplicate's answer", Rule: "rule 7",
		File: "store/pgstore/internal/table/unpack.go", Package: postgres, Run: "TestPrefetch_ExistingRecord_AnswersAsRun",
		Old: "AND r.expires > (SELECT now FROM c) ", New: "",
	},
	{
		Name: "PostgreSQL, batches: what else is there is taken for nothing", Rule: "rule 2",
		File: "store/pgstore/prefetch.go", Package: postgres, Run: "TestPrefetch_ExistingRecord_AnswersAsRun|TestPrefetch_CompletedKeys_LeftOut|TestPrefetch_UnreadableRow_NotReplayed",
		Old: "\t\tif more {\n\t\t\texpected = anything\n\t\t}\n", New: "\t\t_ = more\n",
	},
	{
		Name: "PostgreSQL, batches: a look ahead takes keys of the batch before", Rule: "ack",
		File: "store/pgstore/prefetcher.go", Package: postgres, Run: "TestPrefetch_EarlierBatchRunsAgain_OrderKept",
		Old: "\t\ttry.prefetch.leaveOut(other.rows)\n", New: "",
	},
	{
		Name: "PostgreSQL, batches: a drop does not wait for its look", Rule: "lanes",
		File: "store/pgstore/prefetcher.go", Package: postgres, Run: "TestPrefetch_DropInFlight_Waits",
		Old: "\tp.dropped = true\n\tfor p.inFlight {", New: "\tp.dropped = true\n\tfor p.inFlight && p.tx != nil {",
	},
	{
		Name: "PostgreSQL, batches: a zombie moves the watermark", Rule: "rule 4", Parent: "M1: complete without gen (Powertools, River)",
		File: "store/pgstore/pgkafka/sql.go", Package: pgkafka, Run: "TestWatermark_FencedOwner_PollFails",
		Old: "AND epoch = $5::bigint AND next_offset <=", New: "AND epoch <= $5::bigint + 1 AND next_offset <=",
	},
	{
		Name: "PostgreSQL, batches: a watermark that begins anew has an old owner", Rule: "rule 5",
		File: "store/pgstore/pgkafka/sql.go", Package: pgkafka, Run: "TestForget_OldOwner_CannotMove",
		Old: "$5::bigint, c.now, c.now FROM c\n", New: "$5::bigint, 1, c.now FROM c\n",
	},
	{
		Name: "PostgreSQL, batches: whether a watermark moved is not waited for", Rule: "rule 9",
		File: "store/pgstore/pgkafka/sql.go", Package: pgkafka, Run: "TestWatermark_CommitInFlight_WaitedFor",
		Old: "WHERE {partition} FOR UPDATE`", New: "WHERE {partition}`",
	},
	{
		Name: "PostgreSQL, batches: a frozen owner holds the watermark", Rule: "rule 14",
		File: "store/pgstore/pgkafka/sql.go", Package: pgkafka, Run: "TestWatermark_OwnerFrozen_LockReleased",
		Old: "RETURNING set_config('idle_in_transaction_session_timeout', $8::text, true)`)", New: "RETURNING set_config('semel.idle', $8::text, true)`)",
	},
	{
		Name: "PostgreSQL, batches: the watermark passes over a hole", Rule: "ack", Parent: "M22: highest offset committed",
		File: "consume/semelkafka/kafkapg/offsetsrun.go", Package: joined, Run: "TestTheWatermarkNeverPasses",
		Old: "if it.From > s.next {", New: "if it.From > it.Origin.Offset {",
	},
	{
		Name: "PostgreSQL, batches: to settle a message passes over a hole", Rule: "ack",
		File: "consume/semelkafka/kafkapg/offsets.go", Package: joined, Run: "TestAMessageIsNotPassedOver",
		Old: "\tif it.From > m.w.Next() {\n\t\treturn hole(&it, m.w.Next())\n\t}\n", New: "",
	},
	{
		Name: "PostgreSQL, batches: a statement too late takes the place of the savepoint", Rule: "atomic",
		File: "store/pgstore/batchrun.go", Package: postgres, Run: "TestRunWhole_StatementTimesOut_LaterStatementsUndone",
		Old: "\t\tif err := b.setSavepoint(ctx, saveHandler); err != nil {\n\t\t\treturn err\n\t\t}\n\t\tb.hasSavepoint = true\n",
		New: "\t\tb.hasSavepoint = true\n\t\tif err := b.setSavepoint(ctx, saveHandler); err != nil {\n\t\t\treturn err\n\t\t}\n",
	},
	{
		Name: "PostgreSQL, batches: one partition's watermark moves for all", Rule: "atomic",
		File: "consume/semelkafka/kafkapg/offsetsrun.go", Package: joined, Run: "TestTheWatermarkOfEachPartition",
		Old: "for _, s := range spans[:len(spans)-1] {", New: "for _, s := range spans[len(spans):] {",
	},
	{
		Name: "PostgreSQL, batches: an outage is the message's fault", Rule: "rule 11",
		File: "consume/semelkafka/kafkapg/offsetsrun.go", Package: joined, Run: "TestAnOutageIsNoMessagesFault",
		Old: "p.Code[:2] == \"53\" || ", New: "",
	},
	{
		Name: "PostgreSQL, batches: a message gets another's end", Rule: "ack", Parent: "M21: ack before complete",
		File: "consume/semelkafka/kafkapg/keyedrun.go", Package: joined, Run: "TestEndsAreThose",
		Old: "r.batch[r.of[n]] = r.end(n, e)", New: "r.batch[n] = r.end(n, e)",
	},
	{
		Name: "PostgreSQL, batches: what cannot commit is tried for ever", Rule: "rule 13",
		File: "consume/semelkafka/kafkapg/keyedrun.go", Package: joined, Run: "TestACommitThatIsRefusedIsNotOvertaken",
		Old: "n := max(f.Execution.Attempt(), r.undone[m.Origin.ID]+1)", New: "n := f.Execution.Attempt()",
	},
	{
		Name: "PostgreSQL, batches: what is in flight elsewhere is overtaken", Rule: "ack",
		File: "consume/semelkafka/kafkapg/keyedrun.go", Package: joined, Run: "TestWhatComesAgainIsNotOvertaken",
		Old: "case consume.Hold, consume.Retry:\n", New: "case consume.Retry:\n",
	},
	{
		Name: "PostgreSQL, batches: a commit that is refused is overtaken", Rule: "ack",
		File: "consume/semelkafka/kafkapg/keyedrun.go", Package: joined, Run: "TestACommitThatIsRefusedIsNotOvertaken",
		Old: "if m.OrderKey != \"\" { // whatever", New: "if err != nil && m.OrderKey != \"\" { // whatever",
	},
	{
		Name: "PostgreSQL, batches: who breaks a connection sinks the batch", Rule: "lanes",
		File: "store/pgstore/batchtry.go", Package: postgres, Run: "TestRunWhole_CallBreaksConnection_OthersSucceed/the_server",
		Old: "if errors.Is(err, errConnectionBroke) {", New: "if errors.Is(err, errConnectionBroke) && useSavepoints {",
	},
	{
		Name: "PostgreSQL, batches: a broken connection that the handler hides is an outage", Rule: "lanes",
		File: "store/pgstore/batchrun.go", Package: postgres, Run: "TestRunWhole_CallBreaksConnection_OthersSucceed/hidden",
		Old: "\tcase b.txStatus() == brokenTx:\n", New: "\tcase handlerErr != nil && b.txStatus() == brokenTx:\n",
	},
	{
		Name: "PostgreSQL, batches: who broke a connection alone has made no attempt", Rule: "rule 13",
		File: "store/pgstore/batchtry.go", Package: postgres, Run: "TestRunWhole_CallBreaksConnection_OthersSucceed/the_server",
		Old: "countsAsAttempt(err) {\n\t\tif b.atomic.note", New: "!countsAsAttempt(err) {\n\t\tif b.atomic.note",
	},
	{
		Name: "PostgreSQL, batches: the keys of a broken connection are asked for before they are free", Rule: "rule 14",
		File: "store/pgstore/batchtry.go", Package: postgres, Run: "TestRunWhole_CallBreaksConnection_OthersSucceed/the_server_notices",
		Old: "c.claimed != nil || l != nil && l.locked {", New: "c.claimed != nil && l != nil && l.locked {",
	},
	{
		Name: "PostgreSQL, batches: who breaks a connection at COMMIT sinks the batch", Rule: "lanes",
		File: "store/pgstore/batchrun.go", Package: postgres, Run: "TestRunWhole_CallBreaksConnection_OthersSucceed/at_COMMIT",
		Old: "if broke && undone {", New: "if broke && !undone {",
	},
	{
		Name: "PostgreSQL, batches: a message that breaks its connection stops its partition", Rule: "rule 13",
		File: "consume/semelkafka/kafkapg/offsetsrun.go", Package: joined, Run: "TestAMessageThatBreaksItsConnection/the_server",
		Old: "return !h.down\n", New: "return !h.down && !h.broken\n",
	},
	{
		Name: "PostgreSQL, batches: a message that hides what it broke stops its partition", Rule: "rule 13",
		File: "consume/semelkafka/kafkapg/handler.go", Package: joined, Run: "TestAMessageThatBreaksItsConnection/its_handler",
		Old: "(tx.Conn().IsClosed() || tx.Conn().PgConn().TxStatus() == failedTx)", New: "tx.Conn().PgConn().TxStatus() == failedTx",
	},
	{
		Name: "PostgreSQL, batches: a message is at fault where the database does not answer", Rule: "rule 11",
		File: "consume/semelkafka/kafkapg/offsetsrun.go", Package: joined, Run: "TestAnOutageIsNoMessagesFault/no_connection",
		Old: " && !r.answers(ctx, s) {", New: " && ctx.Err() != nil {",
	},
	{
		Name: "PostgreSQL, batches: a message that breaks its connection at COMMIT stops its partition", Rule: "rule 13",
		File: "consume/semelkafka/kafkapg/offsetsrun.go", Package: joined, Run: "TestAMessageThatBreaksItsConnection/at_COMMIT",
		Old: "errors.Is(err, pgstore.ErrBusy) || errors.Is(err, pgkafka.ErrBroken) ||", New: "errors.Is(err, pgstore.ErrBusy) ||",
	},
	{
		Name: "PostgreSQL, batches: a watermark does not say that its COMMIT broke", Rule: "rule 13",
		File: "store/pgstore/pgkafka/watermark.go", Package: joined, Run: "TestAMessageThatBreaksItsConnection/at_COMMIT",
		Old: "if broke && ctx.Err() == nil {", New: "if broke && ctx.Err() != nil {",
	},
}
