package museum

// A move from one store to another must lose no record, and must not bring an earlier
// one back.
var moves = []Mutant{
	{
		Name: "moved: while the old store is down, the record of the new one counts for nothing", Rule: "rule 11",
		Dir: moved, Func: "(*movedStore).receive", Package: moved, Run: "TestClaim_OldStoreDown_RecordOfNewStoreIsNotRunUnprotected",
		Old: "old, _ = s.Store.Get(ctx, k)", New: "_, _ = s.Store.Get(ctx, k)",
	},
	{
		Name: "the old store is not asked before a claim", Rule: "moved",
		Dir: moved, Func: "(*movedStore).Claim", Package: moved, Run: "TestClaim_RecordInOldStore_IsReceived",
		Old: "f, ok, err := s.receive(ctx, p.Key)", New: "f, ok, err := store.Found{}, false, error(nil)",
	},
	{
		Name: "a store that may not make its schema changes another program's file", Rule: "moved",
		Dir: "store/sqlitestore", Func: "(*Store).prepareSchema", Package: "store/sqlitestore", Run: "TestOpen_NoMigrateWithoutSchema_FileUnchanged",
		Old: `s.onConnWith(ctx, []string{"query_only(1)"}, func`, New: "s.onConn(ctx, nil, func",
	},
	{
		Name: "the old store is not asked before a read", Rule: "moved",
		Dir: moved, Func: "(*movedStore).Get", Package: moved, Run: "TestGet_RecordInOldStore_IsReceived",
		Old: "f, ok, err := s.receive(ctx, k)", New: "f, ok, err := store.Found{}, false, error(nil)",
	},
	{
		Name: "a record in flight in the old store is ignored", Rule: "moved",
		Dir: moved, Func: "(*movedStore).receive", Package: moved, Run: "TestClaim_InFlightInOldStore_IsNotRunTwice",
		Old: "case old.Record.Expired(old.Now):", New: "case old.Record.Expired(old.Now), old.Record.State == store.Processing:",
	},
	{
		Name: "an old store that does not answer counts as empty", Rule: "rule 11",
		Dir: moved, Func: "(*movedStore).receive", Package: moved, Run: "TestClaim_OldStoreDown_IsRefused",
		Old: "case errors.Is(err, store.ErrNotFound):", New: "case err != nil:",
	},
	{
		Name: "the steps of a record stay in the old store", Rule: "steps",
		Dir: moved, Func: "(*mover).move", Package: moved, Run: "TestClaim_StepsInOldStore_DoNotRunAgain",
		Old: "m.receiver.Receive(ctx, *r, steps)", New: "m.receiver.Receive(ctx, *r, nil)",
	},
	{
		Name: "a saga that is moved has no timer", Rule: "saga 7",
		Dir: moved, Func: "(*mover).move", Package: moved, Run: "TestCopy_Saga_HasTimer",
		Old: "protocol.IsSaga(r.Key) && !r.State.Terminal()", New: "protocol.IsSaga(r.Key) && r.State.Terminal()",
	},
	{
		Name: "a record that changes in the old store is forgotten when that store is down", Rule: "rule 11",
		Dir: moved, Func: "(*movedStore).receive", Package: moved, Run: "TestClaim_NewStoreDoesNotTakeRecord_UnprotectedCallDoesNotRun",
		Old: "if read.Record.Key == k {", New: "if true {",
	},
	{
		Name: "an error of the new store hides the record of the old one, so that a call runs without one", Rule: "rule 11",
		Dir: moved, Func: "(*movedStore).receive", Package: moved, Run: "TestClaim_NewStoreDoesNotTakeRecord_UnprotectedCallDoesNotRun",
		Old: `
			case !errors.Is(err, errChanged):
				return withoutOutcome(old), false, err`,
		New: `
			case !errors.Is(err, errChanged):
				return store.Found{}, false, err`,
	},
	{
		Name: "each read of a saga sets its timer again", Rule: "saga 7",
		Dir: moved, Func: "(*movedStore).receive", Package: moved, Run: "TestGet_SagaOfOldStore_WorkerLooksAFewTimes",
		Old: "if err == nil && !ok {", New: "if err == nil {",
	},
	{
		Name: "the record of a saga is there before its timer", Rule: "saga 7",
		Dir: moved, Func: "(*mover).move", Package: moved, Run: "TestGet_OpenSagaOfOldStore_TimerIsThereBeforeRecord",
		Old: "if err := m.setTimer(ctx, r.Key); err != nil {",
		New: `
			defer func() { err = errors.Join(err, m.setTimer(ctx, r.Key)) }()
			if err := error(nil); err != nil {`,
	},
	{
		Name: "the fastest clock of shards is not waited for", Rule: "rule 5",
		Dir: shards, Func: "timers.Clocks", Package: moved, Run: "TestNew_OldStoreHasShards_WaitsForFastestClock",
		Old: "fast.After(fastest)", New: "i == 0",
	},
	{
		Name: "a clock that is behind is not waited for", Rule: "rule 5",
		Dir: moved, Func: "waitForClock", Package: moved, Run: "TestNew_ClockBehind_FencesGrow",
		Old: "now.After(old)", New: "!now.IsZero()",
	},
	{
		Name: "a copy takes a record that is in flight", Rule: "moved",
		Dir: moved, Func: "(*copying).copy", Package: moved, Run: "TestCopy_EachState_CopiesWhatHasEnded",
		Old: "case r.State == store.Processing && !r.Lapsed(f.Now):", New: "case false:",
	},
	{
		Name: "one unreadable record ends a copy", Rule: "moved",
		Dir: moved, Func: "Copy", Package: moved, Run: "TestCopy_OneRecordUnreadable_OthersAreCopied",
		Old: "errors.Is(err, store.ErrCorrupt)", New: "err == store.ErrCorrupt",
	},
	{
		Name: "a copy overwrites a claim of the new store", Rule: "moved",
		Dir: seam, Func: "(*Record).Later", Package: moved, Run: "TestCopy_NewStoreHasGoneOn_NothingOverwritten",
		Old: "r.Fence > o.Fence || r.Fence == o.Fence && r.Updated.After(o.Updated)", New: "true",
	},
	{
		Name: "a copy leaves its own earlier copy in place", Rule: "moved",
		Dir: seam, Func: "(*Record).Later", Package: moved, Run: "TestCopy_OldStoreHasGoneOn_CopyIsRenewed",
		Old: "r.Fence > o.Fence || r.Fence == o.Fence && r.Updated.After(o.Updated)", New: "false",
	},
	{
		Name: "a lapsed claim that was settled after its copy runs again", Rule: "moved",
		Dir: seam, Func: "(*Record).Later", Package: mem, Run: "TestConformance$/receive",
		Old: "|| r.Fence == o.Fence && r.Updated.After(o.Updated)", New: "",
	},
	{
		Name: "SQLite: a copy overwrites", Rule: "moved",
		Dir: lite, Func: "(*lockedTx).receive", Package: lite, Run: "TestConformance$/receive",
		Old: "case err == nil && !r.Later(old):", New: "case false:",
	},
	{
		Name: "SQLite: steps of an earlier version stay", Rule: "moved",
		Dir: lite, Func: "(*lockedTx).receive", Package: lite, Run: "TestConformance$/receive",
		Old: "_, err = k.db.exec(ctx, stDropSteps, id[:])", New: "",
	},
	{
		Name: "PostgreSQL: a copy overwrites", Rule: "moved",
		Dir: "store/pgstore/internal/table", Func: "const receive", Package: postgres, Run: "TestConformance$/receive",
		Old: "AND (r.fence < excluded.fence OR r.fence = excluded.fence AND r.updated < excluded.updated)", New: "",
	},
	{
		Name: "PostgreSQL: a received doubt is not listed", Rule: "listed",
		Dir: postgres, Func: "(*journal).Receive", Package: postgres, Run: "TestConformance$/receive",
		Old: "r.State == store.Unknown", New: "false",
	},
	{
		Name: "Redis: a copy overwrites", Rule: "moved",
		Dir: fast, Func: "const luaReceive", Package: fast, Run: "TestConformance$/receive",
		Old: "later = fence > before or fence == before and updated > unpack_('>i8', old, 50)", New: "later = true",
	},
	{
		Name: "Redis: a received doubt is not listed", Rule: "listed",
		Dir: fast, Func: "const luaReceive", Package: fast, Run: "TestConformance$/receive",
		Old: "if byte(v, 58) == UNKNOWN then", New: "if byte(v, 58) == 7 then",
	},
	{
		Name: "DynamoDB: a copy overwrites", Rule: "moved",
		Dir: dynamo, Func: "(*Store).receive", Package: dynamo, Run: "TestConformance$/receive",
		Old: "%s OR %s < %s OR (%s AND %s < %s)", New: "%s OR %s <> %s OR (%s AND %s < %s)",
	},
	{
		Name: "a result is encrypted a second time", Rule: "encrypted",
		Dir: "store/encrypted", Func: "checkClear", Package: "store/encrypted", Run: "TestReceive_EncryptedAlready_Refused",
		Old: "case r.Outcome.Codec == Codec:", New: "case false:",
	},
	{
		Name: "a step is encrypted a second time", Rule: "encrypted",
		Dir: "store/encrypted", Func: "checkClear", Package: "store/encrypted", Run: "TestReceive_EncryptedAlready_Refused",
		Old: "if steps[i].Outcome.Codec == Codec {", New: "if false {",
	},
	{
		Name: "a received result is stored in the clear", Rule: "encrypted",
		Dir: "store/encrypted", Func: "receiver.Receive", Package: "store/encrypted", Run: "TestReceive_Result_IsEncrypted",
		Old: "record.Outcome, err = c.sealOutcome(ctx, outcomePlaceOf(record.Key, record.Owner, record.State), record.Outcome)", New: "err = ctx.Err()",
	},
}
