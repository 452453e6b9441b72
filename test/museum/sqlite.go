package museum

// The rules again, where SQL has to keep them.
var sqlites = []Mutant{
	{
		Name: "SQLite: a clock that was set back stops the checks of the file", Rule: "durable",
		Dir: lite, Func: "(*identity).checkForRead", Package: lite, Run: "TestGet_ClockSetBack_FileIsChecked",
		Old: "age >= 0 &&", New: "",
	},
	{
		Name: "SQLite: a file whose texts are UTF-16 is opened", Rule: "listed",
		Dir: lite, Func: "checkEncoding", Package: lite, Run: "TestOpen_FileIsUTF16",
		Old: `encoding != "UTF-8"`, New: `encoding == ""`,
	},
	{
		Name: "SQLite: a claim overwrites the record that is there", Rule: "rule 2", Parent: "M3: idempot-js#182",
		Dir: lite, Func: "var statements", Package: lite, Run: "TestClaim_ProcessesRace_OneWins|TestConformance/claim",
		Old: "ON CONFLICT (id) DO NOTHING", New: "ON CONFLICT (id) DO UPDATE SET owner = excluded.owner",
	},
	{
		Name: "SQLite: a swap compares nothing", Rule: "rule 3", Parent: "M5: powertools-typescript#5714",
		Dir: lite, Func: "(*lockedTx).swap", Package: lite, Run: "TestConformance$/swap",
		Old: "if r.Seen() == seen {", New: "if true {",
	},
	{
		Name: "SQLite: a search by hash finds no key of a tenant", Rule: "listed",
		Dir: lite, Func: "var statements", Package: lite, Run: "TestConformance$/list",
		Old: "CAST(tenant AS BLOB)", New: "CAST(operation AS BLOB)",
	},
	{
		Name: "SQLite: a settlement does not compare the owner", Rule: "rule 4", Parent: "M1: Powertools, River",
		Dir: lite, Func: "var statements", Package: lite, Run: "TestConformance$/settle",
		Old: `
			body = ?
			WHERE id = ? AND owner = ? AND fence = ? AND state = 2`,
		New: `
			body = ?
			WHERE id = ? AND owner IS NOT ?+0 AND fence = ? AND state = 2`,
	},
	{
		Name: "SQLite: a settlement takes an older fence", Rule: "rule 4", Parent: "M1: Powertools, River",
		Dir: lite, Func: "var statements", Package: lite, Run: "TestConformance$/settle",
		Old: `
			body = ?
			WHERE id = ? AND owner = ? AND fence = ? AND state = 2`,
		New: `
			body = ?
			WHERE id = ? AND owner = ? AND fence >= ? AND state = 2`,
	},
	{
		Name: "SQLite: what has ended is renewed", Rule: "rule 4",
		Dir: lite, Func: "var statements", Package: lite, Run: "TestConformance$/renew",
		Old: "updated = ? WHERE id = ? AND owner = ? AND fence = ? AND state = 2",
		New: "updated = ? WHERE id = ? AND owner = ? AND fence = ?",
	},
	{
		Name: "SQLite: no expiry reads as expired", Rule: "rule 7", Parent: "M16: Stockpile#424",
		Dir: lite, Func: "const expired", Package: lite, Run: "TestConformance$/sweep",
		Old: "format = 1 AND state IN (3, 4, 5) AND expires <> 0 AND expires <= ?3", New: "format = 1 AND expires <= ?3",
	},
	{
		Name: "SQLite: a sweep deletes what it has not checked again", Rule: "rule 7", Parent: "margince#423",
		Dir: lite, Func: "var statements", Package: lite, Run: "TestConformance$/sweep",
		Old: "stDelete: `DELETE FROM semel_record WHERE n > ?1 AND n <= ?2 AND ` + expired,",
		New: "stDelete: `DELETE FROM semel_record WHERE n > ?1 AND n <= ?2 AND ?3 > 0`,",
	},
	{
		Name: "SQLite: a sweep forgets the highest fence", Rule: "rule 5",
		Dir: lite, Func: "var statements", Package: lite, Run: "TestConformance$/fence",
		Old: "UPDATE semel_meta SET swept_fence = max(swept_fence,", New: "UPDATE semel_meta SET swept_fence = min(swept_fence,",
	},
	{
		Name: "SQLite: a row that cannot be read is absent", Rule: "rule 11",
		Dir: lite, Func: "read", Package: lite, Run: "TestGet_UnreadableRecord_IsErrorNotAbsence",
		Old: `
			r, err := w.recordOf(key)
			return &r, err`,
		New: `
			r, err := w.record()
			if err != nil {
				err = store.ErrNotFound
			}
			return &r, err`,
	},
	{
		Name: "SQLite: a commit that failed is a success", Rule: "rule 9", Parent: "M7: CAMEL-24046",
		Dir: lite, Func: "(*writer).runBatch", Package: lite, Run: "TestBatch_CommitFails_EachRunsAlone",
		Old: `
			err != nil {
				fail(err)
				return false
			}
			ended`,
		New: `
			err != nil {
				fail(nil)
				return true
			}
			ended`,
	},
	{
		Name: "SQLite: a commit does not reach the disk", Rule: "durable", Parent: "SQLite: synchronous=NORMAL in WAL mode",
		Dir: lite, Func: "(*Store).durable", Package: lite, Run: "TestWriter_Pragmas_AreDurable",
		Old: `"synchronous(full)"`, New: `"synchronous(normal)"`,
	},
	{
		Name: "SQLite: the writes of a failed handler stay", Rule: "atomic", Parent: "M9: CAMEL-24048",
		Dir: lite, Func: "(*storeTx).Nested", Package: lite, Run: "TestConformance$/tx|TestAtomic_FinalFailure_IsKeptAndWritesRolledBack",
		Old: `"ROLLBACK TO "+name+"; RELEASE "+name`, New: `"RELEASE "+name`,
	},
	{
		Name: "SQLite: a commit of a handler's writes that failed is a success", Rule: "atomic",
		Dir: lite, Func: "(*Atomic).Run", Package: lite, Run: "TestAtomic_CommitFails_NothingHappened",
		Old: "if cerr := t.commit(); cerr != nil {", New: "if cerr := t.commit(); cerr != nil && err != nil {",
	},
	{
		Name: "SQLite: a foreign key that the handler violates is an outage of the store", Rule: "rule 13",
		Dir: lite, Func: "violated", Package: lite, Run: "TestAtomic_CommitFails_NothingHappened",
		Old: "return code(err)&0xff == sqlite3.SQLITE_CONSTRAINT", New: "return code(err) == -sqlite3.SQLITE_CONSTRAINT",
	},
	{
		Name: "SQLite: what a handler writes behind a lost transaction is committed", Rule: "atomic",
		Dir: lite, Func: "(*runTx).connect", Package: lite, Run: "TestAtomic_TransactionLost_LaterWritesAreNotCommitted",
		Old: "return 1", New: "return 0",
	},
	{
		Name: "SQLite: a caller who leaves undoes the application's transaction", Rule: "atomic",
		Dir: lite, Func: "unprepared.exec", Package: lite, Run: "TestIn_ContextEnds_TransactionStays",
		Old: "u.tx.ExecContext(context.WithoutCancel(ctx),", New: "u.tx.ExecContext(ctx,",
	},
	{
		Name: "SQLite: a call that failed stays in the application's transaction", Rule: "rule 9",
		Dir: lite, Func: "(*storeTx).exec", Package: lite, Run: "TestIn_ContextEndsDuringCall_ResultMatchesTransaction",
		Old: "_, err := t.tx.ExecContext(context.WithoutCancel(ctx), query)", New: "_, err := t.tx.ExecContext(ctx, query)",
	},
	{
		Name: "SQLite: a duplicate judges what is being replaced", Rule: "rule 14",
		Dir: lite, Func: "(*runTx).Claim", Package: lite, Run: "TestAtomic_RecordIsBeingReplaced_DuplicateWaits",
		Old: "if !replaced && !errors.Is", New: "if replaced || !errors.Is",
	},
	{
		Name: "SQLite: a transaction hides the one around it", Rule: "atomic",
		Dir: lite, Func: "(*Store).runWithTx", Package: lite, Run: "TestTxFrom_NestedInAnotherStores_FindsBoth",
		Old: "in.outer, _ = ctx.Value(txKey{}).(*txIn)", New: "",
	},
	{
		Name: "SQLite: a handler that has returned still has its transaction", Rule: "atomic",
		Dir: lite, Func: "(*Store).runWithTx", Package: lite, Run: "TestTxFrom_HandlerReturned_IsNone",
		Old: "defer in.returned.Store(true)", New: "",
	},
	{
		Name: "SQLite: a record is damaged because a context ended", Rule: "rule 11",
		Dir: lite, Func: "(*row).scan", Package: lite, Run: "TestGet_ContextEnds_IsNotCorrupt",
		Old: "closed != nil {", New: "closed != nil && broken(closed) {",
	},
	{
		Name: "SQLite: a file is foreign because a context ended", Rule: "rule 11",
		Dir: lite, Func: "schema", Package: lite, Run: "TestOpen_ContextEnds_IsNotErrForeign",
		Old: "err != nil && (ctx.Err() != nil || broken(err) &&", New: "err != nil && (broken(err) &&",
	},
	{
		Name: "SQLite: an outcome that no column holds has no tombstone", Rule: "rule 10",
		Dir: lite, Func: "endArgs", Package: lite, Run: "TestSettle_OutcomeTooLarge_ChangesNothing",
		Old: "n > maxOutcome {", New: "n > maxOutcome<<2 {",
	},
	{
		Name: "SQLite: pragmas take a handler's commit off the disk", Rule: "durable",
		Dir: lite, Func: "(*Store).check", Package: lite, Run: "TestCheck_UnsafePragmasOfHandlers_AreNamed",
		Old: "s.onConn(ctx, s.opt.Pragmas,", New: "s.onConn(ctx, nil,",
	},
	{
		Name: "SQLite: a handler's commit does not reach the disk", Rule: "durable",
		Dir: lite, Func: "(*Store).open", Package: lite, Run: "TestWriter_Pragmas_AreDurable",
		Old: "s.pool(2, append(s.durable(), s.opt.Pragmas...)...)", New: "s.pool(2, s.opt.Pragmas...)",
	},
	{
		Name: "SQLite: changes are acknowledged in a file that was removed", Rule: "rule 9",
		Dir: lite, Func: "(*writer).runBatch", Package: lite, Run: "TestFile_RemovedOrReplaced_NothingIsAcknowledged",
		Old: "if err := w.file.check(); err != nil {", New: "if err := w.file.check(); err != nil && w.file == nil {",
	},
	{
		Name: "SQLite: a file with two names is opened", Rule: "rule 2",
		Dir: lite, Func: "(*identity).checkNames", Package: lite, Run: "TestOpen_FileHasHardLink_IsRefused",
		Old: "n > 1", New: "n > 2",
	},
	{
		Name: "SQLite: a duplicate waits for a handler's transaction", Rule: "rule 9",
		Dir: lite, Func: "(*Store).Claim", Package: lite, Run: "TestClaim_HandlerHoldsLock_DuplicateDoesNotWait",
		Old: "if s.gate.handlerInside() {", New: "if s.gate == nil {",
	},
	{
		Name: "SQLite: a claim that waits for the locked file got no answer", Rule: "rule 11",
		Dir: lite, Func: "(*Store).Claim", Package: lite, Run: "TestUnprotected_FileLocked_DoesNotRun",
		Old: "err != nil && ctx.Err() != nil &&", New: "false &&",
	},
	{
		Name: "SQLite: another process's lock fails a duplicate", Rule: "rule 9",
		Dir: lite, Func: "(*Store).Claim", Package: lite, Run: "TestLockedFile_ChangesAreErrBusy_ReplaysSucceed",
		Old: "!late && !errors.Is(err, ErrBusy)", New: "!late",
	},
	{
		Name: "SQLite: beside a lock, a record that cannot be read looks like an outage", Rule: "rule 11",
		Dir: lite, Func: "(*Store).Claim", Package: lite, Run: "TestLockedFile_ChangesAreErrBusy_ReplaysSucceed",
		Old: "|| errors.Is(lookErr, store.ErrCorrupt)", New: "",
	},
	{
		Name: "SQLite: a duplicate waits for a lock until its time is over", Rule: "rule 9",
		Dir: lite, Func: "(*Store).Claim", Package: lite, Run: "TestLockedFile_StoreTimeoutBeforeBusyTimeout_DuplicateIsReplayed",
		Old: "context.WithTimeout(ctx, lookAfter(ctx))", New: "context.WithCancel(ctx)",
	},
	{
		Name: "SQLite: a new key does not wait for a lock after the look", Rule: "rule 9",
		Dir: lite, Func: "(*Store).Claim", Package: lite, Run: "TestLockedFile_ReleasedAfterLook_NewKeyIsClaimed",
		Old: "if !late {", New: "if true {",
	},
	{
		Name: "SQLite: one timer that cannot be read hides the others", Rule: "saga 6",
		Dir: lite, Func: "(*Store).dueTimers", Package: lite, Run: "TestDueTimers_OneUnreadable_OthersAreFound",
		Old: "continue", New: "return nil, unreadable",
	},
	{
		Name: "SQLite, Atomic: a pragma of one handler locks all others out", Rule: "atomic",
		Dir: lite, Func: "closeIfUnusable", Package: lite, Run: "TestAtomic_HandlerSetsPragma",
		Old: "value != want", New: "value == want+want",
	},
}
