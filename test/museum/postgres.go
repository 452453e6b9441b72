package museum

// PostgreSQL, leased: each statement decides for itself.
var postgreses = []Mutant{
	{
		Name: "PostgreSQL, batches: rows that are left open hide that the handler has committed", Rule: "atomic",
		Dir: postgres, Func: "(*batchTry).runHandler", Package: postgres, Run: "TestAtomic_CommittedInRowsAndRowsLeftOpen",
		Old: "if hasEnded {", New: "if hasEnded && status == noTx {",
	},
	{
		Name: "PostgreSQL, Atomic: rows that a joined call left open hide that it has committed", Rule: "atomic",
		Dir: postgres, Func: "(*Atomic).runIn", Package: postgres, Run: "TestAtomic_CommittedInRowsAndRowsLeftOpen",
		Old: "!handlertx.HasEnded(t.pipeline.Conn())", New: "true",
	},
	{
		Name: "PostgreSQL, Atomic: a handler that calls its own key runs again and again", Rule: "rule 13",
		Dir: postgres, Func: "(*Atomic).runIn", Package: postgres, Run: "TestAtomic_HandlerReturnsInProgressOfItsOwnKey",
		Old: "!began && !t.withinItself &&", New: "!began &&",
	},
	{
		Name: "PostgreSQL: a completed record that is not confirmed counts as no record", Rule: "rule 11",
		Dir: postgres, Func: "(*Store).confirmed", Package: postgres, Run: "TestStandbyAway_UnprotectedOnOutage",
		Old: "if !r.Record.IsAnswer() ||", New: "if true ||",
	},
	{
		Name: "PostgreSQL: a batch settles what is settled", Rule: "rule 8",
		Dir: "store/pgstore/internal/table", Func: "NewStatements", Package: postgres, Run: "TestSettleBatch_LeaseNotHeld_ChangesNothing",
		Old: "r.fence = u.fence AND r.state = 2\n\t\t\tRETURNING r.id`", New: "r.fence = u.fence\n\t\t\tRETURNING r.id`",
	},
	{
		Name: "PostgreSQL: the check does not look at the rights on tables", Rule: "doctor",
		Dir: "store/pgstore/internal/schema", Func: "const missingRights", Package: postgres, Run: "TestCheck_RoleLacksRights_NamesThemWithTheGrant",
		Old: "WHERE m.missing <> ''", New: "WHERE m.missing = '-'",
	},
	{
		Name: "PostgreSQL: a batch that did not commit is acknowledged", Rule: "durable",
		Dir: postgres, Func: "(*Store).sendBatchOnce", Package: postgres, Run: "TestBatch_CommitFails_NotAcknowledged",
		Old: "err = errors.Join(err, res.Close())", New: "_ = res.Close()",
	},
	{
		Name: "PostgreSQL: a batch without an answer has lost its leases", Rule: "rule 11",
		Dir: postgres, Func: "(*Store).flushSettles", Package: postgres, Run: "TestSettleBatch_Unanswered_LeasesNotLost",
		Old: `
			if err != nil {
				failBatch(`,
		New: `
			if pgwire.Refused(err) {
				failBatch(`,
	},
	{
		Name: "PostgreSQL: a batch forgets what was swept", Rule: "rule 5",
		Dir: "store/pgstore/internal/table", Func: "NewStatements", Package: postgres, Run: "TestClaimBatch_AfterSweep_FenceGrows",
		Old: "greatest(m.swept_fence + 1, t.now) AS fence", New: "t.now AS fence",
	},
	{
		Name: "PostgreSQL: a sweep deletes what has come to the place", Rule: "rule 7", Parent: "M16: sweep deletes a live claim (Stockpile#424)",
		Dir: "store/pgstore/internal/table", Func: "NewStatements", Package: postgres, Run: "TestSweep_RowChangedMeanwhile_NotDeleted",
		Old: "ANY($1::text[]::tid[]) AND {expired} AND r.expires <= $2::bigint FOR",
		New: "ANY($1::text[]::tid[]) AND $2::bigint > 0 FOR",
	},
	{
		Name: "PostgreSQL: a sweep leaves its connection relaxed", Rule: "durable",
		Dir: "store/pgstore/internal/table", Func: "NewStatements", Package: postgres, Run: "TestCommit_WaitsForDisk_ExceptRelaxedClaimsAndSweeps",
		Old: "set_config('synchronous_commit', 'off', true) FROM f", New: "set_config('synchronous_commit', 'off', false) FROM f",
	},
	{
		Name: "PostgreSQL: what ends by a swap is relaxed", Rule: "durable",
		Dir: postgres, Func: "(*session).swap", Package: postgres, Run: "TestCommit_WaitsForDisk_ExceptRelaxedClaimsAndSweeps",
		Old: "sql = s.strict", New: "sql = s.sql",
	},
	{
		Name: "PostgreSQL: a renewal that was rolled back counts", Rule: "rule 7",
		Dir: postgres, Func: "(*Store).Renew", Package: postgres, Run: "TestRenew_CommitRefused_RenewsAgain",
		Old: "clear(renewed)", New: "",
	},
	{
		Name: "PostgreSQL: a renewal queues with claims", Rule: "rule 7",
		Dir: postgres, Func: "(*Store).leases", Package: postgres, Run: "TestRenew_BatchersBusy_NotDelayed",
		Old: "s.renewalPool.Query(", New: "s.ownPool.Query(",
	},
	{
		Name: "PostgreSQL: a lease whose row is locked is lost", Rule: "rule 11",
		Dir: postgres, Func: "(*Store).Renew", Package: postgres, Run: "TestRenew_RowLocked_ErrBusyAtOnce",
		Old: `errs[i] = pgwire.Explain("renew", ErrBusy)`, New: "errs[i] = store.ErrLeaseLost",
	},
	{
		Name: "PostgreSQL: a claim that lost to a commit has won", Rule: "rule 2", Parent: "M15: lost race proceeds unlocked (granit VULN-301)",
		Dir: postgres, Func: "(*session).claim", Package: postgres, Run: "TestClaim_InsertInFlight_Waits/commit",
		Old: "if a.fence.Valid || a.packed != nil {",
		New: `
			a.fence.Valid = a.packed == nil
			if a.fence.Valid || a.packed != nil {`,
	},
	{
		Name: "PostgreSQL: a table for each day holds records", Rule: "rule 2",
		Dir: "store/pgstore/internal/schema", Func: "Schema.Tables", Package: postgres, Run: "TestPartitions_ByDay_Refused",
		Old: `if key != "HASH (id)" {`, New: `if key == "" {`,
	},
	{
		Name: "PostgreSQL: a release moves keys", Rule: "durable",
		Dir: seam, Func: "Key.ID", Package: postgres, Run: "TestRow_EarlierVersion_Found",
		Old: "[16]byte(d[:16])", New: "[16]byte(d[16:])",
	},
	{
		Name: "PostgreSQL: of two keys with one id either answers", Rule: "scope",
		Dir: "store/pgstore/internal/table", Func: "(*Row).Found", Package: postgres, Run: "TestRow_OtherKeySameID_ErrCorrupt",
		Old: "if err == nil && record.Key != key {", New: "if err == nil && record.Key.Operation != key.Operation {",
	},
	{
		Name: "PostgreSQL: a look beforehand finds what has expired", Rule: "rule 7",
		Dir: postgres, Func: "replayable", Package: postgres, Run: "TestReplayLookup_EachState_SameAnswer/expired",
		Old: "f.Record.State.Terminal() && !f.Record.Expired(f.Now)", New: "f.Record.State.Terminal()",
	},
	{
		Name: "PostgreSQL: a look ahead takes a result for none", Rule: "rule 8",
		Dir: "store/pgstore/internal/table", Func: "const isCompleted", Package: postgres, Run: "TestPrefetch_ExistingRecord_AnswersAsRun",
		Old: "AND r.header IS NULL AND r.body IS NULL", New: "AND r.header IS NULL",
	},
	{
		Name: "PostgreSQL: a claim that waits for a locked row got no answer", Rule: "rule 11",
		Dir: postgres, Func: "(*Store).Claim", Package: postgres, Run: "TestUnprotected_TransactionHoldsKey_DoesNotRun",
		Old: "s.lockedRows.Found(hash)", New: "",
	},
	{
		Name: "PostgreSQL: steps that the standby may not have are read as recorded", Rule: "durable",
		Dir: postgres, Func: "(*journal).Steps", Package: postgres, Run: "TestStandbyAway_WaitCancelled",
		Old: "hasStandby && len(steps) > 0", New: "hasStandby && len(steps) < 0",
	},
	{
		Name: "PostgreSQL: a step in its own transaction does not wait for the standby", Rule: "durable",
		Dir: postgres, Func: "(*storeTx).Steps", Package: postgres, Run: "TestStandbyAway_StepInTransaction_NotAcknowledged",
		Old: "steps, t.hasStandby, err = readSteps(rows)", New: "steps, _, err = readSteps(rows)",
	},
	{
		Name: "PostgreSQL: a ticket is given for a reservation that the standby may not have", Rule: "durable",
		Dir: seam, Func: "(*Record).IsAnswer", Package: postgres, Run: "TestStandbyAway_WaitCancelled",
		Old: "|| r.State == Started", New: "",
	},
	{
		Name: "PostgreSQL: an erasure is sent again, and is not confirmed", Rule: "durable",
		Dir: postgres, Func: "(*journal).Erase", Package: postgres, Run: "TestStandbyAway_WaitCancelled",
		Old: "err = cmp.Or(s.confirm(ctx), err)", New: "_ = cmp.Or(s.confirm(ctx), err)",
	},
	{
		Name: "PostgreSQL, Atomic: a duplicate without its result is done before the standby has it", Rule: "durable",
		Dir: postgres, Func: "(*Atomic).try", Package: postgres, Run: "TestStandbyAway_WaitCancelled",
		Old: "running == nil && errors.Is(err, semel.ErrNotKept)", New: "false",
	},
	{
		Name: "PostgreSQL: a URL hides the warnings of commits", Rule: "durable",
		Dir: postgres + "/internal/pgwire", Func: "pin", Package: postgres, Run: "TestStandbyAway_WaitCancelled",
		Old: "hidesWarnings(cfg.ConnConfig.RuntimeParams[minMessages])", New: "false",
	},
	{
		Name: "PostgreSQL: a hook of the pool hides the warnings of commits", Rule: "durable",
		Dir: postgres + "/internal/pgwire", Func: "(*CommitWatch).Watch", Package: postgres, Run: "TestStandbyAway_WaitCancelled",
		Old: "if before != nil {", New: "if before != nil { defer func() { _ = before(ctx, c) }()",
	},
	{
		Name: "PostgreSQL: a place to wait is not given back", Rule: "isolation",
		Dir: postgres, Func: "(*Store).waitForLock", Package: postgres, Run: "TestLockedRow_LockTimeout_ErrBusy",
		Old: `
			defer func() { <-s.waitSlots }()
			return fn()`,
		New: `
			err := fn()
			if err == nil {
				<-s.waitSlots
			}
			return err`,
	},
	{
		Name: "PostgreSQL: a notification is too long to be sent", Rule: "rule 14",
		Dir: pgnotify, Func: "const perNotification", Package: pgnotify, Run: "TestNotifier_ManyEndsAtOnce",
		Old: "perNotification = 240", New: "perNotification = 256",
	},
	{
		Name: "PostgreSQL: a sweep goes on in another partition", Rule: "rule 7",
		Dir: postgres, Func: "(*Store).findExpired", Package: postgres, Run: "TestSweep_Partitions_EachOnce",
		Old: "\t\t\tlast.Part = from.Part\n", New: "",
	},
	{
		Name: "PostgreSQL: a renewal that hangs holds up all behind it", Rule: "rule 7",
		Dir: postgres, Func: "(*Store).connectOwn", Package: postgres, Run: "TestRenew_ConnectionHangs_OthersContinue/as",
		Old: "sized(cfg, 1+spareConns)", New: "sized(cfg, 1)",
	},
	{
		Name: "PostgreSQL: a settlement that hangs takes the time of all its tries", Rule: "rule 9",
		Dir: postgres, Func: "(*Store).flushSettles", Package: postgres, Run: "TestSettle_ConnectionHangs_IsStored",
		Old: "context.WithTimeout(ctx, s.options.settleTry)", New: "context.WithCancel(ctx)",
	},
	{
		Name: "PostgreSQL: a listener waits without end for the answer that hangs", Rule: "rule 14",
		Dir: pgnotify, Func: "(*Listener).run", Package: postgres, Run: "TestListener_ConnectionHangs_Reconnects/once",
		Old: "context.WithTimeout(ctx, 2*l.echo)", New: "context.WithCancel(ctx)",
	},
	{
		Name: "PostgreSQL: a listener that hangs keeps the place of the next", Rule: "rule 14",
		Dir: postgres, Func: "(*Store).connect", Package: postgres, Run: "TestListener_ConnectionHangs_Reconnects/as",
		Old: "sized(cfg, 2+spareConns)", New: "sized(cfg, 2)",
	},
	{
		Name: "PostgreSQL: keys of one place in their order share a lock", Rule: "scope",
		Dir: "store/pgstore/internal/table", Func: "KeyHash", Package: postgres, Run: "TestLockOf_SameIDPrefix_DifferentLocks",
		Old: "Uint64(id.Bytes[8:])", New: "Uint64(id.Bytes[:8])",
	},
	{
		Name: "PostgreSQL: two keys with one id look like an outage", Rule: "scope",
		Dir: "store/pgstore/internal/table", Func: "var errCollision", Package: postgres, Run: "TestRow_OtherKeySameID_ErrCorrupt",
		Old: `fmt.Errorf("%w: another key has the same id; use another key", store.ErrCorrupt)`,
		New: `fmt.Errorf("%v: another key has the same id; use another key", store.ErrCorrupt)`,
	},
	{
		Name: "PostgreSQL: a settlement into doubt is not in the table of doubts", Rule: "listed",
		Dir: postgres, Func: "(*session).settle", Package: postgres, Run: "TestConformance$/list",
		Old: "r.settlement.State == store.Unknown", New: "false",
	},
	{
		Name: "PostgreSQL: a search by hash finds no key of a tenant", Rule: "listed",
		Dir: "store/pgstore/internal/table", Func: "NewStatements", Package: postgres, Run: "TestConformance$/list",
		Old: "int4send(octet_length(r.tenant)) || r.tenant", New: "int4send(0)",
	},
	{
		Name: "PostgreSQL: a record that leaves doubt stays in the table of doubts", Rule: "listed",
		Dir: "store/pgstore/internal/table", Func: "(*Statements).SwapOf", Package: postgres, Run: "TestDoubts_WrittenWithRecord",
		Old: "from == store.Unknown && to != store.Unknown", New: "false",
	},
	{
		Name: "PostgreSQL: a row that is inserted in doubt is not in the list of doubts", Rule: "listed",
		Dir: postgres, Func: "(*session).claim", Package: postgres, Run: "TestDoubts_WrittenWithRecord",
		Old: "p.State == store.Unknown", New: "false",
	},
	{
		Name: "PostgreSQL: a partition that is detached is an outage of the store", Rule: "rule 14",
		Dir: "store/pgstore/internal/pgwire", Func: "Explain", Package: postgres, Run: "TestConsumer_PartitionDetached_OtherMessagesAreServed",
		Old: "extent = store.ExtentPart", New: "extent = store.ExtentStore",
	},
	{
		Name: "PostgreSQL, Atomic: a setting of one handler holds for the next key", Rule: "atomic",
		Dir: handlertx, Func: "setsForSession", Package: postgres, Run: "TestAtomic_HandlerChangesSession",
		Old: `return !strings.EqualFold(word, "local") &&`, New: `return false && !strings.EqualFold(word, "local") &&`,
	},
	{
		Name: "Kafka into PostgreSQL, offsets: the store's own settings cost a connection for each batch", Rule: "atomic",
		Dir: handlertx, Func: "lastArgument", Package: kafkapg, Run: "TestOffsets_KeyedCallInside",
		Old: "depth++", New: "depth += 0",
	},
}
