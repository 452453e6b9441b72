package museum

const eraseDir = "erase"

// An erasure deletes only what is over and unchanged, keeps the fence, and leaves no byte
// where it says so.
var erasures = []Mutant{
	{
		Name: "erase: a live claim is erased", Rule: "erase",
		Dir: seam, Func: "State.Erasable", Package: mem, Run: "TestConformance$/erase",
		Old: "s == Released || s.Terminal()", New: "s.Valid()",
	},
	{
		Name: "erase: a record that changed since it was seen is erased", Rule: "erase",
		Dir: mem, Func: "(*Store).Erase", Package: mem, Run: "TestConformance$/erase",
		Old: "case r.Seen() != seen:", New: "case r.State != seen.State:",
	},
	{
		Name: "erase: the fence goes back", Rule: "rule 5",
		Dir: mem, Func: "(*Store).Erase", Package: mem, Run: "TestConformance$/erase",
		Old: "s.sweptFence = max(s.sweptFence, r.Fence)", New: "",
	},
	{
		Name: "SQLite: an erased record that has changed", Rule: "erase",
		Dir: lite, Func: "(*lockedTx).erase", Package: lite, Run: "TestConformance$/erase",
		Old: "if r.Seen() != *seen {", New: "if r.State != seen.State {",
	},
	{
		Name: "SQLite: the fence goes back after an erasure", Rule: "rule 5",
		Dir: lite, Func: "(*lockedTx).erase", Package: lite, Run: "TestConformance$/erase",
		Old: "int64(seen.Fence)", New: "int64(0)",
	},
	{
		Name: "SQLite: an erasure leaves the steps", Rule: "erase",
		Dir: lite, Func: "(*lockedTx).erase", Package: lite, Run: "TestErase_Tenant_NoByteLeft",
		Old: "k.db.exec(ctx, stDropSteps, id[:])", New: "k.db.exec(ctx, stDropSteps, id[:0])",
	},
	{
		Name: "SQLite: erased bytes stay in the log", Rule: "erase",
		Dir: lite, Func: "emptyLog", Package: lite, Run: "TestErase_Tenant_NoByteLeft",
		Old: `"PRAGMA wal_checkpoint(truncate)"`, New: `"SELECT 0, 0, 0"`,
	},
	{
		Name: "SQLite: a log that cannot be emptied counts as empty", Rule: "erase",
		Dir: lite, Func: "(*Store).Scrub", Package: lite, Run: "TestScrub_OldReader_IsBusyUntilItEnds",
		Old: "if inUse {", New: "if inUse && ctx == nil {",
	},
	{
		Name: "PostgreSQL: an erased record that has changed", Rule: "erase",
		Dir: "store/pgstore/internal/table", Func: "const erase", Package: postgres, Run: "TestConformance$/erase",
		Old: "AND r.fence = $4::bigint", New: "AND $4::bigint IS NOT NULL",
	},
	{
		Name: "PostgreSQL: the fence goes back after an erasure", Rule: "rule 5",
		Dir: "store/pgstore/internal/table", Func: "const erase", Package: postgres, Run: "TestConformance$/erase",
		Old: "WHERE m.swept_fence < u.fence", New: "WHERE m.swept_fence > u.fence",
	},
	{
		Name: "PostgreSQL: samples of erased values stay in the statistics", Rule: "erase",
		Dir: "store/pgstore/internal/schema", Func: "Schema.Scrub", Package: postgres, Run: "TestScrub_ErasedTenant_NoByteLeftInTables",
		Old: `return rewrite(ctx, conn, "FULL", "pg_catalog.pg_statistic")`, New: "return nil",
	},
	{
		Name: "PostgreSQL: rows that somebody can still read count as gone", Rule: "erase",
		Dir: "store/pgstore/internal/schema", Func: "waitForReaders", Package: postgres, Run: "TestScrub_OldTransaction_IsBusyUntilItEnds",
		Old: "case reader == nil:", New: "case seesAll:",
	},
	{
		Name: "PostgreSQL: a table that was not written anew counts as scrubbed", Rule: "erase",
		Dir: "store/pgstore/internal/schema", Func: "rewrite", Package: postgres, Run: "TestScrub_OldTransaction_IsBusyUntilItEnds",
		Old: "if after == before {", New: "if after < 0 {",
	},
	{
		Name: "Redis: an erased record that has changed", Rule: "erase",
		Dir: fast, Func: "const luaErase", Package: fast, Run: "TestConformance$/erase",
		Old: "sub(head, 1, 25) ~= ARGV[2 * i - 1]", New: "sub(head, 1, 17) ~= sub(ARGV[2 * i - 1], 1, 17)",
	},
	{
		Name: "Redis: the fence goes back after an erasure", Rule: "rule 5",
		Dir: fast, Func: "const luaErase", Package: fast, Run: "TestConformance$/erase",
		Old: "raise_swept_fence(unpack_('>I8', head, 18))", New: "",
	},
	{
		Name: "DynamoDB: the fence goes back after an erasure", Rule: "rule 5",
		Dir: dynamo, Func: "(*Store).erase", Package: dynamo, Run: "TestErase_FenceNotYetPastEveryClock_Waits",
		Old: "seen.Fence >= safe", New: "seen.Fence >= safe && safe == 0",
	},
	{
		Name: "DynamoDB: the object of an erased record stays", Rule: "erase",
		Dir: dynamo, Func: "(*Store).erase", Package: dynamo, Run: "TestErase_OutcomeInObject_DeletesObjectFirst",
		Old: "if err := s.deleteObject(ctx, it, &r); err != nil {", New: "if err := s.deleteObject(ctx, it, &r); err != nil && ctx == nil {",
	},
	{
		Name: "nearcache: an erased answer stays in the front", Rule: "erase",
		Dir: nearby, Func: "(*Store).Erase", Package: nearby, Run: "TestErase_CachedRecord_IsForgottenHereAndInFront",
		Old: "if seen.State.Terminal() {", New: "if !seen.State.Valid() {",
	},
	{
		Name: "erase: a list that ended early counts as whole", Rule: "erase",
		Dir: eraseDir, Func: "(*eraser).records", Package: eraseDir, Run: "TestRun_ListEndsEarly_IsError",
		Old: "incomplete = cmp.Or(incomplete, err)", New: "_ = cmp.Or(incomplete, err)",
	},
	{
		Name: "erase: a saga that has not ended is erased", Rule: "saga 7",
		Dir: eraseDir, Func: "(*eraser).judge", Package: eraseDir, Run: "TestRun_Sagas_EndedAreErasedAndOpenAreKept",
		Old: `
			case protocol.IsSaga(r.Key):
				return Unfinished, errSaga`,
		New: `
			case protocol.IsSaga(r.Key):
				return Erased, nil`,
	},
	{
		Name: "erase: the steps of an unfinished call are erased", Rule: "steps",
		Dir: eraseDir, Func: "(*eraser).hasSteps", Package: eraseDir, Run: "TestRun_StepsOfUnfinishedCall_AreKept",
		Old: "len(steps) > 0", New: "len(steps) < 0",
	},
	{
		Name: "erase: records that an earlier erasure has deleted without an answer count as gone", Rule: "durable",
		Dir: eraseDir, Func: "Run", Package: postgres, Run: "TestStandbyAway_ErasureBegunAgain",
		Old: "if err == nil && !e.options.CountOnly {", New: "if err != nil && !e.options.CountOnly {",
	},
	{
		Name: "shardstore: an erasure is confirmed by one shard", Rule: "durable",
		Dir: shards, Func: "confirmer.Confirm", Package: shards, Run: "TestConfirm_ShardDown",
		Old: "if c.confirmers[i] == nil {", New: "if c.confirmers[i] == nil || i > 0 {",
	},
	{
		Name: "erase: an empty tenant is everybody", Rule: "erase",
		Dir: eraseDir, Func: "(*eraser).check", Package: eraseDir, Run: "TestRun_WrongScope_IsInvalid",
		Old: `s.Tenant == "" && s.Key == ""`, New: `s.Tenant == "" && s.Key == "" && s.Operation == "-"`,
	},
	{
		Name: "erase: records from before hashing was turned on stay", Rule: "erase",
		Dir: "cmd/semel/internal/cli", Func: "(*hashFlag).names", Package: "cmd/semel/internal/cli", Run: "TestErase_HashKeysFile_ErasesHashedAndClearRecords",
		Old: "return []store.Key{k, k.Hashed(secret)}, main, nil", New: "return []store.Key{k.Hashed(secret)}, 0, nil",
	},
	{
		Name: "erase: the steps of an erased answer stay", Rule: "erase",
		Dir: eraseDir, Func: "(*eraser).eraseAnswer", Package: eraseDir, Run: "TestRun_AnswersOnly_DuplicatesDoNotRunAndGetNoAnswer",
		Old: "Restart: hasSteps", New: "Restart: hasSteps && false",
	},
	{
		Name: "erase: an erased answer ends the tokens of its call", Rule: "erase",
		Dir: eraseDir, Func: "(*eraser).eraseAnswer", Package: eraseDir, Run: "TestRun_AnswersOnly_TokenDeliveredAgain_IsNotKept",
		Old: "Restart: hasSteps", New: "Restart: hasSteps || true",
	},
	{
		Name: "erase: the timer of a saga that goes on is dropped", Rule: "saga 7",
		Dir: eraseDir, Func: "(*eraser).dropTimers", Package: eraseDir, Run: "TestRun_Sagas_EndedAreErasedAndOpenAreKept",
		Old: "err == nil && !f.Record.State.Terminal()", New: "err == nil && f.Record.State == store.Unknown",
	},
	{
		Name: "erase: the timer of an erased saga is dropped only at the end", Rule: "erase",
		Dir: eraseDir, Func: "(*eraser).dropFirst", Package: eraseDir, Run: "TestRun_KilledAfterRecord_LeavesNoTimer",
		Old: "return e.dropTimers(ctx, k.Operation)", New: "return nil",
	},
	{
		Name: "a record that is erased when the erasure is stopped is not counted", Rule: "erase",
		Dir: eraseDir, Func: "(*eraser).change", Package: eraseDir, Run: "TestRun_CanceledDuringChange_CountsIt",
		Old: "context.WithoutCancel(ctx)", New: "ctx",
	},
}
