package museum

// Sagas: the eight rules of docs/sagas.md, and the timers that bring a saga back.
var sagas = []Mutant{
	{
		Name: "a saga is stuck by an error that a step got from another call", Rule: "saga 3",
		Dir: flow, Func: "(*Run).finish", Package: flow, Run: "TestStep_ReturnsErrorOfAnotherCall_RunsAgain",
		Old: "|| !called && (", New: "|| (",
	},
	{
		Name: "a compensation runs under the lock of its Run", Rule: "saga 5",
		Dir: flow, Func: "(*Run).compensate", Package: flow, Run: "TestRule5_CompensationUsesStep_StartsNone",
		Old: "state := u.state\n\tr.mu.Unlock()", New: "state := u.state\n\tdefer r.mu.Unlock()",
	},
	{
		Name: "a recorded step that the definition does not list is ignored", Rule: "saga 1",
		Dir: flow, Func: "(*Run).check", Package: flow, Run: "TestRule1_RecordedStepIsNotListed_ParksAndNamesIt",
		Old: `base == "saga" || r.rules.lists(base)`, New: `base != "" || r.rules.lists(base)`,
	},
	{
		Name: "a recorded step that is not reached is skipped", Rule: "saga 1",
		Dir: flow, Func: "(*Run).skipped", Package: flow, Run: "TestRule1_RecordedStepIsNotReached_ParksInsteadOfEnding",
		Old: `base != "saga" && r.uses[base] == nil`, New: `base == "" && r.uses[base] == nil`,
	},
	{
		Name: "compensations run in the order of the steps", Rule: "saga 2",
		Dir: flow, Func: "(*Run).turnBack", Package: flow, Run: "TestRule2_StepRefused_UndoneInReverse",
		Old: "slices.Backward(started)", New: "slices.All(started)",
	},
	{
		Name: "a refused step is undone", Rule: "saga 2",
		Dir: flow, Func: "(*Run).compensate", Package: flow, Run: "TestRule2_StepRefused_UndoneInReverse",
		Old: "u.undo == nil || state == noEffect", New: "u.undo == nil",
	},
	{
		Name: "a compensation is not told of doubt", Rule: "saga 2",
		Dir: flow, Func: "(*Run).compensate", Package: flow, Run: "TestRule2_StepInDoubtAtDeadline_CompensationIsTold",
		Old: "inDoubt: state == inDoubt", New: "inDoubt: false",
	},
	{
		Name: "a saga turns back while one of its steps runs", Rule: "saga 3",
		Dir: flow, Func: "(*Run).decide", Package: flow, Run: "OutlivesDefinition",
		Old: "for r.running > 0 {", New: "for r.running > 1000 {",
	},
	{
		Name: "a Parked step that panicked is undone", Rule: "saga 3",
		Dir: flow, Func: "StepIn", Package: flow, Run: "TestRule3_ParkedStepPanics_NothingIsUndone",
		Old: "if !ended && r.recorded[name] == nil {", New: "if !ended && r.recorded[name] != nil {",
	},
	{
		Name: "a saga turns back while a transaction of it may commit", Rule: "saga 2",
		Dir: flow, Func: "(*Run).decide", Package: flow, Run: "TestStepIn_CommitInDoubt_NothingIsUndoneInItsRun",
		Old: "if r.unsure {", New: "if r.unsure && r.pausing {",
	},
	{
		Name: "the failure of another call turns a saga back", Rule: "saga 3",
		Dir: flow, Func: "StepIn", Package: flow, Run: "TestStep_NoEffectOfFailure_GoesOnLater",
		Old: "if none {", New: "if none && o.parked && !o.parked {",
	},
	{
		Name: "the end of an operator's decision waits for ever", Rule: "saga 6",
		Dir: flow, Func: "Intervene", Package: flow, Run: "TestIntervene_StoreDoesNotAnswer_Ends",
		Old: "context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)", New: "context.WithTimeout(context.WithoutCancel(ctx), 1000*storeTimeout)",
	},
	{
		Name: "an operator's decision waits for ever for a store that does not answer", Rule: "saga 6",
		Dir: "internal/retry", Func: "Ask", Package: flow, Run: "TestIntervene_StoreDoesNotAnswer_Ends",
		Old: "context.WithTimeout(ctx, limit)", New: "context.WithCancel(ctx)",
	},
	{
		Name: "a plain error turns a saga back", Rule: "saga 3",
		Dir: flow, Func: "(*Run).decide", Package: flow, Run: "TestRule3_PlainErrorOrDeadProcess_GoesOnForward",
		Old: "default: return false, r.again(err)", New: "default: r.back = &semel.Failure{Message: err.Error()}",
	},
	{
		Name: "a recorded step that cannot be read counts as refused", Rule: "saga 3",
		Dir: flow, Func: "(*Run).decide", Package: flow, Run: "TestRule3_RecordedStepCannotBeRead_GoesOnForward",
		Old: "case r.unread != nil:", New: "case r.unread != nil && r.pausing:",
	},
	{
		Name: "a run that lost its lease says that a step is missing", Rule: "saga 1",
		Dir: flow, Func: "(*Run).decide", Package: flow, Run: "TestTurnBack_LeaseLostInDefinition_SagaIsNotStuck",
		Old: "case err != nil && ctx.Err() != nil:", New: "case err != nil && ctx.Err() != nil && r.pausing:",
	},
	{
		Name: "a Parked step in doubt runs again", Rule: "saga 3",
		Dir: flow, Func: "(*Run).reach", Package: flow, Run: "TestRule3_ParkedStepInDoubt_NothingRunsAndNothingIsUndone",
		Old: "if r.recorded[fmt.Sprintf(\"%s%s%d\", u.name, begunPart", New: "if r.stuck != nil && r.recorded[fmt.Sprintf(\"%s%s%d\", u.name, begunPart",
	},
	{
		Name: "an event comes after a saga has turned back", Rule: "saga 2",
		Dir: flow, Func: "(*Saga).Send", Package: flow, Run: "TestSend_SagaHasTurnedBack_IsRefused",
		Old: "r.recorded[event] != nil || r.recorded[backStep] != nil &&", New: "r.recorded[event] != nil || r.recorded[backStep] != nil && r.pausing &&",
	},
	{
		Name: "the end of the caller ends compensations", Rule: "saga 4",
		Dir: flow, Func: "(*Saga).run", Package: flow, Run: "TestRule4_CallerLeaves_CompensationsGoOn",
		Old: "r.end(ctx, forward, err)", New: "r.end(forward, forward, err)",
	},
	{
		Name: "a compensation that gives up counts as done", Rule: "saga 4",
		Dir: flow, Func: "(*Run).compensate", Package: flow, Run: "TestRule4_CompensationGivesUp_SagaIsStuckNeverFailed",
		Old: "if gaveUp { return &handlererr.Stuck{Err: err} }", New: "if gaveUp { return nil }",
	},
	{
		Name: "a saga that turned back is not read as such", Rule: "saga 5",
		Dir: flow, Func: "(*Run).begin", Package: flow, Run: "TestRule5_ProcessDiesInFirstCompensation_StaysTurnedBack",
		Old: "turned != nil {", New: "turned != nil && r.pausing {",
	},
	{
		Name: "that a sleep is over is not recorded", Rule: "saga 5",
		Dir: flow, Func: "Sleep", Package: flow, Run: "TestSleep_ClockSetBackAndSagaTurnsBack_LaterStepIsUndone",
		Old: "err = r.mark(ctx, name+overPart)", New: "err = nil",
	},
	{
		Name: "a saga fails for ever instead of being stuck", Rule: "saga 6",
		Dir: flow, Func: "(*Run).again", Package: flow, Run: "TestRule6_StuckSagas_DelayNoOther",
		Old: "if most > 0 && n >= most {", New: "if most > 0 && n >= most+1000 {",
	},
	{
		Name: "a deadline is not looked at when a run begins", Rule: "saga 6",
		Dir: flow, Func: "(*Run).begin", Package: flow, Run: "TestDeadline_DuringSleep_TurnsBackThen",
		Old: "r.left() <= 0", New: "r.left() <= -1000*r.rules.deadline",
	},
	{
		Name: "a saga that has not ended expires", Rule: "saga 7",
		Dir: core, Func: "(*Guard).sagaSettlement", Package: flow, Run: "TestRule7_Started_RunsLongAfterItsProcessDied",
		Old: "Keep: protocol.UnfinishedSagaRetention", New: "Keep: g.options.Retention",
	},
	{
		Name: "the sweep lets a saga expire", Rule: "saga 7",
		Dir: "sweep", Func: "(*sweeper).recover", Package: flow, Run: "TestRule7_ProcessDiesAndSweepsGoOn_SagaIsKept",
		Old: "p.Keep = protocol.UnfinishedSagaRetention", New: "p.Keep = s.options.Retention",
	},
	{
		Name: "a stuck saga is put off before the store knows that it is stuck", Rule: "saga 7",
		Dir: flow, Func: "(*core).keepTimer", Package: flow, Run: "TestTimer_SettlementOfStuckRunLost",
		Old: "case err == nil || failed || paused:",
		New: `case errors.Is(err, semel.ErrParked):
			_, _ = c.setTimer(ctx, k, version, protocol.NewOwner(), stuckLook)
		case err == nil || failed || paused:`,
	},
	{
		Name: "a run does not know the timer that a worker has put off meanwhile", Rule: "saga 7",
		Dir: flow, Func: "(*Saga).work", Package: flow, Run: "TestWork_StopsDuringLastStep_LeavesNoTimer",
		Old: "watched(r.Fence), d.Until", New: "protocol.NewOwner(), d.Until",
	},
	{
		Name: "a sleep after a step that workers have seen lasts until the end of the lease", Rule: "saga 7",
		Dir: flow, Func: "(*core).keepTimer", Package: flow, Run: "TestWork_SleepAfterLongStep_GoesOnInTime",
		Old: "err == nil || wasDue", New: "err != nil && wasDue",
	},
	{
		Name: "a worker that stops leaves the timer of a saga that has ended", Rule: "saga 7",
		Dir: flow, Func: "(*Saga).work", Package: flow, Run: "TestWork_StopsBeforeItsLook_DropsTimerOfEndedSaga",
		Old: "context.WithoutCancel(ctx)", New: "ctx",
	},
	{
		Name: "the timer of a saga that waits is dropped", Rule: "saga 7",
		Dir: flow, Func: "(*core).keepTimer", Package: flow, Run: "TestRule7_Started_RunsLongAfterItsProcessDied|TestSleep_GoesOnWhenItIsOver_NeverBefore",
		Old: "case paused && !pause.NothingRecorded:", New: "case paused && pause.NothingRecorded:",
	},
	{
		Name: "requests to make a timer have one version", Rule: "saga 7",
		Dir: flow, Func: "(*core).makeTimer", Package: flow, Run: "TestTimer_RequestsArriveLate_SagaGoesOnSoon",
		Old: "version = protocol.NewOwner()", New: "if version == (store.Owner{}) { version = protocol.NewOwner() }",
	},
	{
		Name: "a timer whose version has changed is changed", Rule: "saga 7",
		Dir: mem, Func: "(*Store).SetTimer", Package: mem, Run: "TestConformance/timers",
		Old: "(!exists || t.Version != seen)", New: "!exists",
	},
	{
		Name: "SQLite: a change of a timer that is sent again is refused", Rule: "saga 7",
		Dir: lite, Func: "(*lockedTx).setTimer", Package: lite, Run: "TestConformance$/timers",
		Old: "bytes.Equal(version, next[:])", New: "bytes.Equal(version, next[:]) && changed == 1",
	},
	{
		Name: "PostgreSQL: a timer of any version is changed", Rule: "saga 7",
		Dir: "store/pgstore/internal/table", Func: "const moveTimer", Package: postgres, Run: "TestConformance$/timers",
		Old: "version IN ($2::uuid, $4::uuid)", New: "$4::uuid IS NOT NULL",
	},
	{
		Name: "Redis: a timer of any version is changed", Rule: "saga 7",
		Dir: fast, Func: "const luaSetTimer", Package: fast, Run: "TestConformance$/timers",
		Old: "seen ~= '' and old ~= seen", New: "seen == 'x' and old ~= seen",
	},
	{
		Name: "DynamoDB: a timer of any version is changed", Rule: "saga 7",
		Dir: dynamo, Func: "(*Store).setTimer", Package: dynamo, Run: "TestConformance$/timers",
		Old: "if seen != (store.Owner{}) {", New: "if seen == next {",
	},
	{
		Name: "other calls in doubt count as stuck sagas", Rule: "saga 6",
		Dir: flow, Func: "ReadStats", Package: flow, Run: "TestReadStats_OtherCallsInDoubt_NotCounted",
		Old: "store.Filter{Operation: operation, States:", New: "store.Filter{States:",
	},
	{
		Name: "the age of due sagas is that of the last", Rule: "saga 7",
		Dir: flow, Func: "ReadStats", Package: flow, Run: "TestReadStats_DueAndStuck_CountedUntilHandled",
		Old: "now.Sub(due[0].Due)", New: "now.Sub(due[len(due)-1].Due)",
	},
	{
		Name: "a worker beside an unreadable timer never forgets refused sagas", Rule: "saga 6",
		Dir: flow, Func: "(*finder).due", Package: flow, Run: "TestWork_TimerUnreadable_RefusedSagasAreForgotten",
		Old: "errs[0] == nil || errors.Is(errs[0], store.ErrCorrupt)", New: "errs[0] == nil",
	},
	{
		Name: "a step in a transaction runs outside of it", Rule: "saga 8",
		Dir: flow, Func: "StepIn", Package: flow, Run: "TestCampaign_SagasUnderFaults_RulesHold",
		Old: "result, err := semel.Do(ctx, atomic, ", New: "result, err := semel.Do(ctx, r.core.guard, ",
	},
	{
		Name: "a saga that an operator turned back goes on", Rule: "saga 5",
		Dir: flow, Func: "(*Run).begin", Package: flow, Run: "TestCampaign_SagasUnderFaults_RulesHold",
		Old: "turned != nil {", New: "turned != nil && r.stuck != nil {",
	},
	{
		Name: "a compensation sends the key of its step", Rule: "saga 8",
		Dir: flow, Func: "At.Key", Package: flow, Run: "TestRule8_Keys_SameInEachAttemptAndUnlikeOthers",
		Old: "a.step + undoPart", New: "a.step",
	},
	{
		Name: "each attempt of a step sends a key of its own", Rule: "saga 8",
		Dir: flow, Func: "At.StepKey", Package: flow, Run: "TestRule8_Keys_SameInEachAttemptAndUnlikeOthers",
		Old: "a.x.DownstreamKey(a.step)", New: "a.x.DownstreamKey(a.step + string(rune('a'+a.x.Attempt())))",
	},
	{
		Name: "saga: an outage of a night uses up the record of a Parked step", Rule: "saga 6",
		Dir: flow, Func: "(*Run).spare", Package: flow, Run: "TestParked_NoEffectDuringOutage/a_night",
		Old: "u.none > frequentAttempts", New: "u.none > 1000*frequentAttempts",
	},
	{
		Name: "saga: an operator skips a step at which it is not stuck", Rule: "saga 5",
		Dir: "saga", Func: "canSkip", Package: "saga", Run: "TestIntervene_SkipOfAnotherStep_ChangesNothing",
		Old: "!isUndo && len(s.Steps) > 0 && !s.ErrorCut && !slices.Contains(s.Steps, step)", New: "!isUndo && len(s.Steps) > 100",
	},
	{
		Name: "saga: an operator skips a compensation at which it is not stuck", Rule: "saga 5",
		Dir: "saga", Func: "canSkip", Package: "saga", Run: "TestIntervene_BackTwice_IsRefusedWithNextStep",
		Old: `isUndo && s.Undo != "" && step != s.Undo`, New: `isUndo && s.Undo == step && !s.Back`,
	},
	{
		Name: "saga: it goes on by itself after an interrupted decision", Rule: "saga 5",
		Dir: "saga", Func: "(*core).visit", Package: "saga", Run: "TestIntervene_Interrupted",
		Old: "methods(x).Interrupted()", New: "false && methods(x).Interrupted()",
	},
	{
		Name: "saga: a sweep or a dead run hides an interrupted decision", Rule: "saga 5",
		Dir: "internal/protocol", Func: "DecisionInterrupted", Package: "internal/protocol", Run: "TestDecisionInterrupted",
		Old: "case o.State == store.Unknown:", New: "case !operator:",
	},
	{
		Name: "saga: a sweep's release of the run that took over hides an interrupted decision", Rule: "saga 5",
		Dir: "internal/protocol", Func: "DecisionInterrupted", Package: "saga", Run: "TestIntervene_InterruptedThenRunFails",
		Old: "case o.State == store.Unknown:", New: "case !operator && o.State != store.Processing:",
	},
	{
		Name: "saga: a skip by a wrong name or with a wrong result stays for ever", Rule: "saga 5",
		Dir: "saga", Func: "decisionSteps", Package: "saga", Run: "TestIntervene_WrongSkip",
		Old: "if name == stuck.InvalidSkip {", New: `if name == "\x00" {`,
	},
	{
		Name: "saga: a step whose skip does not count is not in doubt", Rule: "saga 5",
		Dir: "internal/history", Func: "DescribeStuck", Package: "saga", Run: "TestIntervene_WrongSkipOfParkedStep",
		Old: "s.InvalidSkip, has[name] = name, false", New: "s.InvalidSkip = name",
	},
	{
		Name: "saga: an operator skips a step without its result", Rule: "saga 5",
		Dir: "saga", Func: "decisionSteps", Package: "saga", Run: "TestIntervene_DecisionIncomplete_ChangesNothing",
		Old: "case !json.Valid(i.Result):", New: "case len(i.Result) > 0 && !json.Valid(i.Result):",
	},
	{
		Name: "saga: an operator turns back a saga whose step in doubt is not decided", Rule: "saga 3",
		Dir: "internal/history", Func: "(*StuckSaga).Undecided", Package: "saga", Run: "TestIntervene_DecisionIncomplete_ChangesNothing",
		Old: "name != done && !slices.Contains(notHappened, name)", New: "name != done && !back && !slices.Contains(notHappened, name)",
	},
	{
		Name: "a list of stuck sagas has those only whose timers are among the first", Rule: "listed",
		Dir: "cmd/semel/internal/cli", Func: "(*sagaListCmd).Run", Package: "cmd/semel/internal/cli", Run: "TestSagaList_StuckAfterManyDue",
		Old: `c.Name != "" && !c.Stuck`, New: `c.Name != ""`,
	},
	{
		Name: "a record that cannot be read hides the sagas that are due after it", Rule: "listed",
		Dir: "cmd/semel/internal/cli", Func: "(*sagaListCmd).byTimer", Package: "cmd/semel/internal/cli", Run: "TestSagaList_RecordUnreadable",
		Old: "case errors.Is(getErr, store.ErrCorrupt):", New: "case errors.Is(getErr, store.ErrCorrupt) && ctx == nil:",
	},
}
