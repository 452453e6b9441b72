package museum

// Requests to PostgreSQL that get no answer: each has a limit, and nothing is acknowledged
// that is not confirmed.
var postgresLimits = []Mutant{
	{
		Name: "PostgreSQL, limits: BEGIN of a batch on a silent connection has none", Rule: "rule 14",
		Dir: postgres, Func: "(*batchRun).begin", Package: postgres, Run: "TestRunBatch_ServerFreezes_CallEnds/at_BEGIN",
		Old: "err := t.limited(ctx,", New: "err := (&storeTx{}).limited(ctx,",
	},
	{
		Name: "PostgreSQL, limits: the lookup of one key of a batch has none", Rule: "rule 14",
		Dir: postgres, Func: "(*storeTx).lookUp", Package: postgres, Run: "TestRunBatch_ServerFreezesAtLookupOfOneKey_CallEnds",
		Old: "err = t.limited(ctx, t.pipeline.Flush)", New: "err = t.pipeline.Flush(ctx)",
	},
	{
		Name: "PostgreSQL, limits: a lookup that a prefetch has left over has none", Rule: "rule 14",
		Dir: postgres, Func: "(*PrefetchedBatch).takeOver", Package: postgres, Run: "TestPrefetch_ServerFreezesAtDeferredLookup_CallEnds",
		Old: "t.limited(ctx, batch.prefetchDeferred) != nil", New: "batch.prefetchDeferred(ctx) != nil",
	},
	{
		Name: "PostgreSQL, limits: Own of a watermark has none", Rule: "rule 14",
		Dir: pgkafka, Func: "Own", Package: pgkafka, Run: "TestPgkafka_NoAnswer_EachCallEnds/Own",
		Old: "w.db.Limited(ctx,", New: "pgwire.Limited(ctx, 0,",
	},
	{
		Name: "PostgreSQL, limits: the change of a watermark has none", Rule: "rule 14",
		Dir: pgkafka, Func: "(*Watermark).Move", Package: pgkafka, Run: "TestPgkafka_NoAnswer_EachCallEnds/Move",
		Old: "w.db.Limited(ctx,", New: "pgwire.Limited(ctx, 0,",
	},
	{
		Name: "PostgreSQL, limits: Forget of a watermark has none", Rule: "rule 14",
		Dir: pgkafka, Func: "Forget", Package: pgkafka, Run: "TestPgkafka_NoAnswer_EachCallEnds/Forget",
		Old: "db.Limited(ctx,", New: "pgwire.Limited(ctx, 0,",
	},
	{
		Name: "PostgreSQL, limits: BEGIN of a watermark has none", Rule: "rule 14",
		Dir: pgkafka, Func: "(*Watermark).begin", Package: pgkafka, Run: "TestWatermark_NoAnswer_DoEndsAndPartitionGoesOn/to_BEGIN",
		Old: "w.db.Limited(ctx,", New: "pgwire.Limited(ctx, 0,",
	},
	{
		Name: "PostgreSQL, limits: COMMIT of a watermark has none", Rule: "rule 14",
		Dir: pgkafka, Func: "(*Watermark).try", Package: pgkafka, Run: "TestWatermark_NoAnswer_DoEndsAndPartitionGoesOn/to_COMMIT",
		Old: "w.db.Limited(ctx,", New: "pgwire.Limited(ctx, 0,",
	},
	{
		Name: "PostgreSQL, limits: ROLLBACK of a watermark has none", Rule: "rule 14",
		Dir: pgkafka, Func: "(*Watermark).end", Package: pgkafka, Run: "TestWatermark_NoAnswer_DoEndsAndPartitionGoesOn/to_ROLLBACK",
		Old: "context.WithTimeout(context.Background(), w.db.StoreTimeout)", New: "context.WithCancel(context.Background())",
	},
	{
		Name: "PostgreSQL, limits: the check of a watermark's connection has none", Rule: "rule 14",
		Dir: pgkafka, Func: "(*Watermark).lend", Package: pgkafka, Run: "TestWatermark_NoAnswer_DoEndsAndPartitionGoesOn/to_the_check",
		Old: "w.db.Limited(ctx,", New: "pgwire.Limited(ctx, 0,",
	},
	{
		Name: "PostgreSQL, limits: the question what became of a watermark's COMMIT has none", Rule: "rule 14",
		Dir: pgkafka, Func: "(*Watermark).hasMoved", Package: pgkafka, Run: "TestPgkafka_NoAnswer_EachCallEnds/the_question",
		Old: "context.WithTimeout(context.WithoutCancel(ctx), w.db.StoreTimeout)", New: "context.WithCancel(context.WithoutCancel(ctx))",
	},
	{
		Name: "PostgreSQL, limits: the beginning of a crash marker has none", Rule: "rule 14",
		Dir: pgkafka, Func: "(*CrashMarker).Begin", Package: pgkafka, Run: "TestPgkafka_NoAnswer_EachCallEnds/Begin",
		Old: "n.db.Limited(ctx,", New: "pgwire.Limited(ctx, 0,",
	},
	{
		Name: "PostgreSQL, limits: a write of a crash marker has none", Rule: "rule 14",
		Dir: pgkafka, Func: "(*CrashMarker).write", Package: pgkafka, Run: "TestPgkafka_NoAnswer_EachCallEnds/Try",
		Old: "n.db.Limited(ctx,", New: "pgwire.Limited(ctx, 0,",
	},
	{
		Name: "PostgreSQL, limits: a watermark's handler that was cut off keeps its rows locked", Rule: "rule 14",
		Dir: pgkafka, Func: "(*Watermark).begin", Package: pgkafka, Run: "TestWatermark_NoAnswer_DoEndsAndPartitionGoesOn/to_the_handler",
		Old: "set local idle_in_transaction_session_timeout = '", New: "set local semel.idle = '",
	},
	{
		Name: "PostgreSQL, limits: a handler that leaves its transaction idle is an outage, by offsets", Rule: "rule 14",
		Dir: kafkapg, Func: "mayBeOneMessage", Package: kafkapg, Run: "TestOffsets_HandlerIdle_BlamesOneMessage/and_returns_nil$",
		Old: "|| errors.Is(err, pgkafka.ErrIdle)", New: "",
	},
	{
		Name: "PostgreSQL, limits: the error of a handler that leaves its transaction idle names no setting, by offsets", Rule: "rule 14",
		Dir: pgkafka, Func: "(*Watermark).try", Package: kafkapg, Run: "TestOffsets_HandlerIdle_BlamesOneMessage/and_returns_an_error$",
		Old: "idle.explain(err)", New: "err",
	},
	{
		Name: "PostgreSQL, limits: a handler that works on its connection for long counts as idle", Rule: "rule 14",
		Dir: pgkafka, Func: "(*idleCheck).use", Package: pgkafka, Run: "TestWatermark_HandlerSlowOnConnection_Commits",
		Old: "err != nil && (", New: "(",
	},
	{
		Name: "PostgreSQL, limits: the error of a COMMIT that was cancelled does not say which option to raise, by offsets", Rule: "rule 14",
		Dir: pgkafka, Func: "(*Watermark).try", Package: kafkapg, Run: "TestOffsets_SlowCommit_BlamesOneMessage",
		Old: "errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil", New: "false",
	},
	{
		Name: "PostgreSQL, limits: a locked row is no answer", Rule: "rule 14",
		Dir: postgres + "/internal/pgwire", Func: "(*Database).LockWait", Package: pgkafka, Run: "TestOwn_RowLocked_ErrBusy",
		Old: "d.StoreTimeout-d.StoreTimeout/5", New: "d.LockTimeout",
	},
	{
		Name: "PostgreSQL, limits: each partition of a batch waits for the limit", Rule: "rule 14",
		Dir: kafkapg, Func: "(*offsetsBatch).askPosition", Package: kafkapg, Run: "TestOffsets_NoAnswer_BatchWaitsOnce",
		Old: "if b.noAnswer != nil {", New: "if false {",
	},
	{
		Name: "Kafka: each settlement waits for a ledger that gives no answer within its own limit", Rule: "rule 14",
		Dir: kafka, Func: "(*batches).pass", Package: kafka, Run: "TestSettleAll_NoAnswer_WaitsOnce",
		Old: "ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded)", New: "ctx.Err() != nil",
	},
	{
		Name: "PostgreSQL, standby: a watermark's COMMIT counts although the server warns that the standby may not have it", Rule: "durable",
		Dir: pgkafka, Func: "(*Watermark).try", Package: pgkafka, Run: "TestWatermark_StandbyAway_NotMoved",
		Old: "(w.hasStandby && !w.db.SeesWarnings || w.db.Commits.Count() != warnings)", New: "(w.hasStandby && !w.db.SeesWarnings || warnings < 0)",
	},
	{
		Name: "PostgreSQL, standby: a watermark's COMMIT is not confirmed if nobody sees the server's warnings", Rule: "durable",
		Dir: pgkafka, Func: "(*Watermark).try", Package: pgkafka, Run: "TestWatermark_StandbyAway_NotMoved",
		Old: "(w.hasStandby && !w.db.SeesWarnings || w.db.Commits.Count() != warnings)", New: "w.db.Commits.Count() != warnings",
	},
	{
		Name: "PostgreSQL, standby: a watermark that has moved after an unanswered COMMIT is not confirmed", Rule: "durable",
		Dir: pgkafka, Func: "(*Watermark).hasMoved", Package: pgkafka, Run: "TestWatermark_StandbyAway_NotMoved",
		Old: "case err == nil && w.db.Confirm(ctx) == nil:", New: "case err == nil:",
	},
}
