package museum

// Steps: they live in the record of their call.
var steps = []Mutant{
	{
		Name: "all steps are one", Rule: "steps",
		Dir: core, Func: "newStep", Package: core, Run: "TestStep_NameUsedTwiceInRun_IsRefused|TestStep_Completed_DoesNotRunAgain",
		Old: "path := name", New: `path := "step"`,
	},
	{
		Name: "a step is new with each attempt", Rule: "steps",
		Dir: core, Func: "(*Execution).Step", Package: core, Run: "TestStep_Completed_DoesNotRunAgain",
		Old: "newStep(x, name)", New: "newStep(x, name+fmt.Sprint(x.attempt))",
	},
	{
		Name: "the steps of earlier attempts are not read", Rule: "steps",
		Dir: core, Func: "(*journal).load", Package: core, Run: "TestStep_CallRetriedLongerThanRetention_DoesNotRunAgain",
		Old: "j.isLoaded() && !s.before.needsRead()", New: "s.tx == nil",
	},
	{
		Name: "a name may be used twice in a run", Rule: "steps",
		Dir: core, Func: "(*journal).reserve", Package: core, Run: "TestStep_NameUsedTwiceInRun_IsRefused",
		Old: "u.state == stepRunning || u.state == stepUsed", New: "u.state == stepRunning",
	},
	{
		Name: "a step gets the result of another step with its name", Rule: "steps",
		Dir: core, Func: "(*journal).admit", Package: core, Run: "TestStep_NameUsedInTwoSteps_IsRefused",
		Old: "!s.x.outer.isLaterRunOf(s.before.outer)", New: "s.x.outer == s.before.outer",
	},
	{
		Name: "a step in doubt runs again under Park", Rule: "steps",
		Dir: core, Func: "(*journal).reserve", Package: core, Run: "TestStep_FailsInRun_MayRunAgainUnlessParked|TestStep_Panics_IsInDoubt",
		Old: "u.state == stepInDoubt && s.x.policy == Park", New: "u.state == stepInDoubt && s.x.policy != Park",
	},
	{
		Name: "a step in doubt runs again under Park if that is in a transaction", Rule: "steps",
		Dir: core, Func: "(*journal).reserve", Package: core, Run: "TestStep_InDoubtUnderPark_RunsInNoTransaction",
		Old: "u.state == stepInDoubt && s.x.policy == Park", New: "u.state == stepInDoubt && s.x.policy == Park && s.tx == nil",
	},
	{
		Name: "a step whose record is not kept runs again under Park if that is in a transaction", Rule: "steps",
		Dir: core, Func: "(*journal).admit", Package: core, Run: "TestStep_InDoubtUnderPark_RunsInNoTransaction",
		Old: "s.before.state == stepMaybeRecorded || s.before.state == stepUncommitted && s.tx == nil",
		New: "s.before.needsRead() && s.tx == nil",
	},
	{
		Name: "a transaction that fails hides an earlier one that may commit", Rule: "steps",
		Dir: core, Func: "(*journal).end", Package: core, Run: "TestStep_InOpenTransaction_IsNotRunOutsideUnderPark",
		Old: "use = s.before", New: "use.step = s.before.step",
	},
	{
		Name: "a step waits for its transaction and holds up the others", Rule: "steps",
		Dir: core, Func: "(*journal).load", Package: core, Run: "TestStep_WaitsForItsTransaction_OtherStepsEnd",
		Old: "steps, err := j.ask(ctx, s, from)\n\tj.mu.Lock()", New: "j.mu.Lock()\n\tsteps, err := j.ask(ctx, s, from)",
	},
	{
		Name: "a process that was frozen begins a step", Rule: "steps",
		Dir: core, Func: "(*journal).mayBegin", Package: core, Run: "TestStep_DeadlineOfLeaseHasPassed_DoesNotBegin",
		Old: "r != nil && !j.x.guard.heartbeat.holds(r)", New: "r != nil && j.x.guard == nil",
	},
	{
		Name: "a process that was frozen at the end of its invocation begins a step", Rule: "steps",
		Dir: core, Func: "(*heartbeat).holds", Package: core, Run: "TestStep_EndOfLeasesHasPassed_DoesNotBegin",
		Old: "r.end != (instant{}) && now.mostSince(r.end) >= 0", New: "r.end == (instant{}) && r.lost",
	},
	{
		Name: "a worker that lost its lease in a transaction begins the next step", Rule: "steps",
		Dir: core, Func: "stateAfterRefusal", Package: core, Run: "TestStep_LeaseLostInTransaction_NextStepDoesNotBegin",
		Old: "return stepLost", New: "return stepFree",
	},
	{
		Name: "an Atomic does not say that a step is committed", Rule: "steps",
		Dir: lite, Func: "(*Atomic).Run", Package: lite, Run: "TestStep_NameUsedTwice_InTransactions_IsInvalid",
		Old: "driver.Committed(running)", New: "_ = running",
	},
	{
		Name: "PostgreSQL: an Atomic does not say that a step is committed", Rule: "steps",
		Dir: postgres, Func: "(*Atomic).try", Package: postgres, Run: "TestStep_NameUsedTwice_InTransactions_IsInvalid",
		Old: "driver.Committed(running)", New: "_ = running",
	},
	{
		Name: "DynamoDB: an Atomic does not say that a step is committed", Rule: "steps",
		Dir: dynamo, Func: "(*Atomic).Run", Package: dynamo, Run: "TestAtomic_NameOfStepUsedTwice_IsInvalid",
		Old: "driver.Committed(running)", New: "_ = running",
	},
	{
		Name: "steps in a step that is rolled back count as used", Rule: "steps",
		Dir: core, Func: "(*journal).undo", Package: lite, Run: "TestStep_RolledBackInTransaction_RunsAgainWithItsSteps",
		Old: "j.use(name, stepUse{state: stepUncommitted})", New: "j.use(name, u)",
	},
	{
		Name: "the steps in a step that has failed count as recorded", Rule: "steps",
		Dir: core, Func: "(*runningStep).runIn", Package: lite, Run: "TestStep_UndoneByFailureOfOuter",
		Old: "s.journal.undo(s.x)", New: "_ = s.journal",
	},
	{
		Name: "a step that a savepoint of the handler's has undone cannot run again", Rule: "steps",
		Dir: core, Func: "(*journal).reserve", Package: lite, Run: "TestStep_UndoneBySavepointOfHandler",
		Old: "s.tx == nil && j.recordedInTxOf(u, s)", New: "j.recordedInTxOf(u, s)",
	},
	{
		Name: "a step that a savepoint of the handler's has undone is replayed", Rule: "steps",
		Dir: core, Func: "(*journal).committed", Package: lite, Run: "TestStep_UndoneBySavepointOfHandler",
		Old: "j.use(name, ", New: "if u.step != nil { j.recorded.add(u.step) }\nj.use(name, ",
	},
	{
		Name: "the steps of a caller's transaction do not count for the limit", Rule: "steps",
		Dir: core, Func: "(*journal).sizeWithout", Package: core, Run: "TestStep_TooMany_InTransactionsOfCaller",
		Old: "case u.step != nil:", New: "case u.step != nil && u.x == nil:",
	},
	{
		Name: "a step that was rolled back costs another its result", Rule: "steps",
		Dir: core, Func: "(*journal).keepOrTombstone", Package: core, Run: "TestStep_LargeStepRolledBack_LaterResultIsKept",
		Old: "j.sizeWithout(s, skipUncommitted)", New: "j.sizeWithout(s, countUncommitted)",
	},
	{
		Name: "a step in an old snapshot ends its call", Rule: "steps",
		Dir: core, Func: "(*journal).load", Package: postgres, Run: "TestStep_InOldSnapshot",
		Old: "s.tx == nil && errors.Is(err, store.ErrLeaseLost)", New: "errors.Is(err, store.ErrLeaseLost)",
	},
	{
		Name: "a reconciler gets the keys of the call for those of a step", Rule: "steps",
		Dir: core, Func: "(*Execution).StepDownstreamKey", Package: core, Run: "TestReconcile_StepDownstreamKey_FindsPayment",
		Old: "x.stepKey(step).Downstream(name)", New: "x.key.Downstream(name)",
	},
	{
		Name: "a step begins after its call has ended", Rule: "steps",
		Dir: core, Func: "(*journal).close", Package: core, Run: "TestStep_BeginsAfterItsCall_IsRefused",
		Old: "j.ended = true", New: "j.ended = false",
	},
	{
		Name: "a worker without the lease begins the next step", Rule: "steps",
		Dir: core, Func: "(*journal).end", Package: core, Run: "TestStep_OwnerLostItsLease_IsFencedOff",
		Old: "case state == stepLost: j.ended = true", New: "case state == stepLost:",
	},
	{
		Name: "a step whose record was refused has succeeded", Rule: "steps",
		Dir: core, Func: "(*runningStep).run", Package: core, Run: "TestStep_OwnerLostItsLease_IsFencedOff",
		Old: "res, use, kind, err = Result{}, stepLost, EventNotStored, s.x.failure(ErrLeaseLost, textOnly(err))",
		New: "use = stepUsed",
	},
	{
		Name: "a step that the store did not answer is not sent again", Rule: "steps",
		Dir: core, Func: "(*Guard).recordStep", Package: core, Run: "TestStep_StoreAnswersLate_IsSentAgain",
		Old: "return g.sendUntil(ctx, &s.Outcome, func(ctx context.Context) error { return g.journal.RecordStep(ctx, l, *s) })",
		New: "return g.request(ctx, func(ctx context.Context) error { return g.journal.RecordStep(ctx, l, *s) })",
	},
	{
		Name: "the payload of a step is not compared", Rule: "steps",
		Dir: core, Func: "(*runningStep).compare", Package: core, Run: "TestStep_OtherPayload_IsMismatch",
		Old: "case !recorded.Fingerprint.Equal(mine):", New: "case false:",
	},
	{
		Name: "the size of steps is looked at after they ran", Rule: "steps",
		Dir: core, Func: "(*journal).admit", Package: core, Run: "TestStep_ResultsTooLarge_AreRefusedBeforeTheyRun",
		Old: "> store.MaxStepBytes:", New: "> 2000*store.MaxStepBytes:",
	},
	{
		Name: "a reconciler starts steps", Rule: "steps",
		Dir: core, Func: "(*journal).admit", Package: core, Run: "TestStep_InReconciler_IsReadOnly",
		Old: "case j.kind == stepsReadOnly:", New: "case j.kind == stepsReadOnly && j.ended:",
	},
	{
		Name: "a rerun replays its steps", Rule: "steps",
		Dir: core, Func: "(*Guard).execute", Package: core, Run: "TestStep_InRerun_RunsAgain",
		Old: "x.journal.kind = stepsUnrecorded", New: "x.journal.kind = stepsRecorded",
	},
	{
		Name: "a step of a call in a transaction runs outside of it", Rule: "steps",
		Dir: core, Func: "(*journal).checkRunner", Package: lite, Run: "TestStep_OfAtomicCall_IsSavepoint",
		Old: "case j.kind == stepsInTx && tx == nil:", New: "case j == nil:",
	},
	{
		Name: "the steps of leased attempts are forgotten in a transaction", Rule: "steps",
		Dir: core, Func: "(*txCall).claimInTx", Package: lite, Run: "TestStep_OfAtomicCallAfterLeasedAttempt_IsReplayed",
		Old: "x.txJournal, _ = t.tx.(store.Journal)", New: "_, _ = t.tx.(store.Journal)",
	},
	{
		Name: "memory: a new life has the steps of the old one", Rule: "steps",
		Dir: mem, Func: "(*Store).Swap", Package: core, Run: "TestStep_CallParkedLongerThanRetention_DoesNotRunAgain",
		Old: "steps = nil", New: "_ = steps",
	},
	{
		Name: "memory: a settlement loses the steps", Rule: "steps",
		Dir: mem, Func: "(*Store).Settle", Package: core, Run: "TestStep_CallParkedLongerThanRetention_DoesNotRunAgain",
		Old: "s.put(t.Apply(r.Record, s.now()), r.steps)", New: "s.put(t.Apply(r.Record, s.now()), nil)",
	},
	{
		Name: "memory: a step is recorded without its lease", Rule: "steps",
		Dir: mem, Func: "(*Store).RecordStep", Package: core, Run: "TestStep_OwnerLostItsLease_IsFencedOff|TestStep_EndsAfterItsCall_IsNotInNextLife",
		Old: "r.Lease() != l || r.State != store.Processing", New: "r.Key != l.Key",
	},
	{
		Name: "memory: a step is recorded in a call that has ended", Rule: "steps",
		Dir: mem, Func: "(*Store).RecordStep", Package: mem, Run: "TestConformance$/journal",
		Old: "r.Lease() != l || r.State != store.Processing", New: "r.Lease() != l",
	},
	{
		Name: "SQLite: the rows of steps outlive a restart of their record", Rule: "steps",
		Dir: lite, Func: "(*lockedTx).swap", Package: lite, Run: "TestStep_RecordGone_RowsAreDeleted",
		Old: "err == nil && p.Restart", New: "err == nil && p.Restart && p.Key == (store.Key{})",
	},
	{
		Name: "SQLite: a step is recorded without its lease", Rule: "steps",
		Dir: lite, Func: "var statements", Package: lite, Run: "TestConformance$/journal",
		Old: "WHERE id = ?4 AND owner = ?5 AND fence = ?6 AND state = 2", New: "WHERE id = ?4 AND (owner = ?5 OR fence = ?6 OR state = 2)",
	},
	{
		Name: "SQLite: a step of an earlier record with the key is read", Rule: "steps",
		Dir: lite, Func: "var statements", Package: lite, Run: "TestStep_RecordDeletedByHand_StepsAreNotRead",
		Old: "s.record = r.id AND s.created = r.created", New: "s.record = r.id",
	},
	{
		Name: "PostgreSQL: a step is recorded without its lease", Rule: "steps",
		Dir: "store/pgstore/internal/table", Func: "const heldRecord", Package: postgres, Run: "TestConformance$/journal",
		Old: "r.fence = $3::bigint AND r.state = 2", New: "(r.fence = $3::bigint OR r.state = 2)",
	},
	{
		Name: "PostgreSQL: a step does not lock its record", Rule: "steps",
		Dir: "store/pgstore/internal/table", Func: "const heldRecord", Package: postgres, Run: "TestStep_TakeoverDuringItsTransaction_WaitsForCommit",
		Old: "FOR SHARE OF r", New: "",
	},
	{
		Name: "PostgreSQL: the rows of steps outlive a restart of their record", Rule: "steps",
		Dir: "store/pgstore/internal/table", Func: "const dropSteps", Package: postgres, Run: "TestStep_RecordGone_RowsAreDeleted",
		Old: "WHERE s.record = u.id", New: "WHERE s.record = u.id AND false",
	},
	{
		Name: "PostgreSQL: the rows of steps outlive the sweep of their record", Rule: "steps",
		Dir: "store/pgstore/internal/table", Func: "NewStatements", Package: postgres, Run: "TestStep_RecordGone_RowsAreDeleted",
		Old: "WHERE s.record = d.id", New: "WHERE s.record = d.id AND false",
	},
	{
		Name: "PostgreSQL: the rows of steps outlive the erasure of their record", Rule: "steps",
		Dir: "store/pgstore/internal/table", Func: "const erase", Package: postgres, Run: "TestStep_RecordGone_RowsAreDeleted",
		Old: "+ dropSteps +", New: "+ dropSteps + ` AND false` +",
	},
	{
		Name: "PostgreSQL: two transactions record a step with the same result", Rule: "steps",
		Dir: postgres, Func: "(*session).recordStep", Package: postgres, Run: "TestStep_UsedAgainWhileItCommits_HasEffectOnce",
		Old: "return store.ErrStepRecorded", New: "return nil",
	},
	{
		Name: "PostgreSQL: a step that another transaction has recorded is not looked for again", Rule: "steps",
		Dir: postgres, Func: "refusedForNow", Package: postgres, Run: "TestStep_UsedAgainWhileItCommits_HasEffectOnce",
		Old: "|| errors.Is(err, store.ErrStepRecorded)", New: "",
	},
	{
		Name: "SQLite: two transactions record a step with the same result", Rule: "steps",
		Dir: lite, Func: "(*lockedTx).recordStep", Package: lite, Run: "TestConformance$/journal",
		Old: "return store.ErrStepRecorded", New: "return nil",
	},
	{
		Name: "DynamoDB: two transactions record a step with the same result", Rule: "steps",
		Dir: dynamo, Func: "(*Tx).RecordStep", Package: dynamo, Run: "TestConformance$/journal",
		Old: "return store.ErrStepRecorded", New: "return nil",
	},
	{
		Name: "encryption: two transactions record a step with the same result", Rule: "steps",
		Dir: "store/encrypted", Func: "journaledTx.RecordStep", Package: lite, Run: "TestConformance_Encrypted$/journal",
		Old: "return t.inner.RecordStep(ctx, l, s)", New: "return journal{t.cipher, t.inner}.RecordStep(ctx, l, s)",
	},
	{
		Name: "Redis: a step is recorded without its lease", Rule: "steps",
		Dir: fast, Func: "const luaStep", Package: fast, Run: "TestConformance$/journal",
		Old: "sub(v, 1, 25) ~= ARGV[arg] or byte(v, 58) ~= PROCESSING", New: "byte(v, 58) ~= PROCESSING",
	},
	{
		Name: "Redis: a takeover loses the steps", Rule: "steps",
		Dir: fast, Func: "const luaSwap", Package: fast, Run: "TestConformance$/journal",
		Old: "last >= first and ARGV[arg + 4] ~= '1'", New: "false",
	},
	{
		Name: "Redis: a new life has the steps of the old one", Rule: "steps",
		Dir: fast, Func: "const luaSwap", Package: fast, Run: "TestConformance$/journal",
		Old: "last >= first and ARGV[arg + 4] ~= '1'", New: "last >= first",
	},
	{
		Name: "two steps of one name are one although they differ", Rule: "steps",
		Dir: seam, Func: "(*Step).Equal", Package: mem, Run: "TestConformance$/journal",
		Old: "s.Failed == t.Failed &&", New: "",
	},
	{
		Name: "memory: a frozen worker's step reaches the next life", Rule: "steps",
		Dir: mem, Func: "(*Store).RecordStep", Package: "test/sim", Run: "TestCampaign_Steps_NoneTwice",
		Old: "r.Lease() != l || r.State != store.Processing", New: "r.Key != l.Key",
	},
}
