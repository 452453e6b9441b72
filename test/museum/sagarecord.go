package museum

// What a saga's record can keep: names of steps, results, and room for compensations.
var sagaRecords = []Mutant{
	{
		Name: "saga: a name that Run makes is taken as it is", Rule: "saga 1",
		Dir: flow, Func: "(*Run).reach", Package: flow, Run: "TestStep_NameMadeAtRunTimeIsInvalid",
		Old: "case invalid != nil:", New: "case invalid != nil && r.pausing:",
	},
	{
		Name: "saga: a deploy that removes Parked lets a step in doubt run again", Rule: "saga 3",
		Dir: flow, Func: "(*Run).reach", Package: flow, Run: "TestRule3_ParkedRemovedByDeploy",
		Old: "if r.recorded[fmt.Sprintf(\"%s%s%d\", u.name, begunPart", New: "if parked && r.recorded[fmt.Sprintf(\"%s%s%d\", u.name, begunPart",
	},
	{
		Name: "saga: the attempts before it turned back use up UndoAttempts", Rule: "saga 4",
		Dir: flow, Func: "(*Run).begin", Package: flow, Run: "TestRule4_TurnedBackAfterManyAttempts",
		Old: "max(0, turned.Attempt-1)", New: "min(0, turned.Attempt-1)",
	},
	{
		Name: "saga: a compensation that always fails is never given up", Rule: "saga 4",
		Dir: flow, Func: "(*Run).again", Package: flow, Run: "TestRule4_TurnedBackAfterSomeAttempts",
		Old: "Attempt: r.before + n", New: "Attempt: n",
	},
	{
		Name: "saga: a store that does not answer uses up UndoAttempts before anything is undone", Rule: "saga 4",
		Dir: flow, Func: "(*Run).turnBack", Package: flow, Run: "TestRule4_TurningBackIsNotRecorded",
		Old: "return r.interrupted(err)", New: "return r.lockedAgain(err)",
	},
	{
		Name: "saga: an event is refused if the run that it waits for fails", Rule: "saga 7",
		Dir: flow, Func: "(*Saga).Send", Package: flow, Run: "TestSend_RunFailsMeanwhile",
		Old: "errors.Is(err, semel.ErrReleased) ||", New: "errors.Is(err, semel.ErrReleased) && kept ||",
	},
	{
		Name: "saga: a failure without its body keeps it from being undone", Rule: "saga 5",
		Dir: flow, Func: "(*Run).recordBack", Package: flow, Run: "TestRule5_FailureTooLargeToKeep",
		Old: "case errors.Is(err, semel.ErrNotKept):", New: "case errors.Is(err, semel.ErrNotKept) && r.pausing:",
	},
	{
		Name: "saga: the bound of a kept failure is not that of the Guard", Rule: "saga 5",
		Dir: flow, Func: "(*Run).recordBack", Package: flow, Run: "TestRule5_FailureTooLargeToKeep",
		Old: "min(maxInput, r.core.driver.Options().MaxOutcome)", New: "maxInput",
	},
	{
		Name: "saga: a compensation that is recorded without an outcome is not done", Rule: "saga 4",
		Dir: flow, Func: "(*Run).compensate", Package: flow, Run: "TestRule4_CompensationWithoutOutcome",
		Old: "res.Replayed && errors.Is(err, semel.ErrNotKept)", New: "res.Replayed && errors.Is(err, semel.ErrNotKept) && gaveUp",
	},
	{
		Name: "saga: an event that is too large is acknowledged", Rule: "saga 7",
		Dir: flow, Func: "(*Saga).Send", Package: flow, Run: "TestSend_EventTooLarge",
		Old: `err = r.checkSize("event", len(o.Body))`, New: `err = r.checkSize("event", 0)`,
	},
	{
		Name: "saga: it asks for ever for an event that has no value", Rule: "saga 6",
		Dir: flow, Func: "(*Run).ifRecorded", Package: flow, Run: "TestAwait_EventWithoutValue",
		Old: "!errors.Is(err, semel.ErrNotKept):", New: "!r.pausing:",
	},
	{
		Name: "saga: an event without a value keeps a saga from turning back", Rule: "saga 5",
		Dir: flow, Func: "(*Run).ifRecorded", Package: flow, Run: "TestAwait_EventWithoutValue",
		Old: "case r.back != nil:", New: "case r.back != nil && r.pausing:",
	},
	{
		Name: "saga: a worker that stops cancels its steps at once", Rule: "saga 7",
		Dir: flow, Func: "(*Run).forward", Package: flow, Run: "TestWork_StopsDuringStepThatHeedsItsContext",
		Old: "time.NewTimer(drain)", New: "time.NewTimer(0 * drain)",
	},
	{
		Name: "saga: a worker that stops starts further steps", Rule: "saga 7",
		Dir: flow, Func: "(*Run).reach", Package: flow, Run: "TestWork_StopsDuringStepThatHeedsItsContext",
		Old: "if r.back == nil && r.ending() != nil {", New: "if r.back == nil && r.ending() != nil && r.pausing {",
	},
	{
		Name: "saga: it ends because its worker stops, if the definition ignores the error", Rule: "saga 1",
		Dir: flow, Func: "(*Run).reach", Package: flow, Run: "TestWork_StopsBeforeStepWhoseErrorIsIgnored",
		Old: "u.state, r.pausing, r.pause = noEffect, true, 0", New: "u.state = noEffect",
	},
	{
		Name: "saga: a sweep leaves one that never began where no worker finds it", Rule: "saga 7",
		Dir: "sweep", Func: "(*sweeper).recover", Package: flow, Run: "TestRule7_ProcessDiesBeforeTimer",
		Old: "if hasTimers && protocol.IsSaga(r.Key) {", New: "if !hasTimers && protocol.IsSaga(r.Key) {",
	},
	{
		Name: "saga: Start waits for ever for a store that does not answer", Rule: "saga 7",
		Dir: flow, Func: "(*core).begun", Package: flow, Run: "TestStart_StoreDoesNotAnswer",
		Old: "retry.Ask(ctx, storeTimeout,", New: "retry.Ask(ctx, 1000*storeTimeout,",
	},
	{
		Name: "saga: steps use up the room for compensations", Rule: "saga 4",
		Dir: flow, Func: "(*Run).checkRoom", Package: flow, Run: "TestStep_RecordNearlyFull",
		Old: "if s.undo != nil {", New: "if s.undo != nil && s == u {",
	},
	{
		Name: "saga: a Parked step without effect uses up the room to turn back", Rule: "saga 4",
		Dir: flow, Func: "(*Run).reach", Package: flow, Run: "TestStep_RecordNearlyFull",
		Old: "return r.checkRoom(u)", New: "return nil",
	},
	{
		Name: "saga: results use up the room for compensations", Rule: "saga 4",
		Dir: core, Func: "(*journal).maxResults", Package: flow, Run: "TestStep_RecordNearlyFull",
		Old: "store.MaxStepBytes - protocol.SagaReserveBytes", New: "store.MaxStepBytes",
	},
	{
		Name: "saga: an event that does not fit into the record is acknowledged", Rule: "saga 7",
		Dir: flow, Func: "(*Run).checkSize", Package: flow, Run: "TestSend_RecordNearlyFull",
		Old: "case size > left:", New: "case size > left+1<<30:",
	},
	{
		Name: "saga: recorded compensations use up the room for decisions", Rule: "saga 4",
		Dir: flow, Func: "roomFor", Package: flow, Run: "TestIntervene_HalfOfManyStepsUndone",
		Old: "case isDecision(s.Name):", New: "case s.Name != \"\":",
	},
	{
		Name: "saga: decisions use up the room to turn back", Rule: "saga 4",
		Dir: flow, Func: "roomFor", Package: flow, Run: "TestIntervene_ManyDecisions_RefusedUntilBack",
		Old: "roomSteps-3", New: "roomSteps+300",
	},
	{
		Name: "saga: a step with an invalid name keeps a saga from turning back", Rule: "saga 5",
		Dir: flow, Func: "(*Run).reach", Package: flow, Run: "TestStep_NameMadeAtRunTimeIsInvalid_SagaCanBeTurnedBack",
		Old: "case invalid != nil && r.back != nil:", New: "case invalid != nil && r.back != nil && r.pausing:",
	},
	{
		Name: "saga: a sweep that comes late delays the next attempt until the lease ends", Rule: "saga 7",
		Dir: flow, Func: "(*core).keepTimer", Package: flow, Run: "TestWork_SweepChangesTimerOfShortRun",
		Old: "err == nil || wasDue", New: "err == nil && wasDue",
	},
	{
		Name: "saga: a name of a step leaves no room for Semel's additions", Rule: "saga 4",
		Dir: flow, Func: "checkStep", Package: flow, Run: "TestNew_StepNameLeavesNoRoomForAdditions",
		Old: "len(name) > maxStep", New: "len(name) > names.Max",
	},
	{
		Name: "saga: a repeated Start makes a saga due that waits for its next attempt", Rule: "saga 4",
		Dir: flow, Func: "(*Saga).Start", Package: flow, Run: "TestRepeat_SagaWaitsForNextAttempt",
		Old: "unread == nil && r.recorded[inputStep] != nil", New: "unread == nil && false",
	},
	{
		Name: "saga: a repeated Send makes a saga due that waits for its next attempt", Rule: "saga 4",
		Dir: flow, Func: "(*Saga).Send", Package: flow, Run: "TestRepeat_SagaWaitsForNextAttempt",
		Old: "case r.recorded[event+eventPart] != nil:", New: "case false:",
	},
	{
		Name: "saga: a refused event replaces the error of the last attempt", Rule: "saga 4",
		Dir: core, Func: "(*Guard).sagaSettlement", Package: flow, Run: "TestRepeat_SagaWaitsForNextAttempt",
		Old: "case pause.NoAttempt:", New: "case false && pause.NoAttempt:",
	},
	{
		Name: "saga: a repeated Start makes a due saga wait until the lease ends", Rule: "saga 7",
		Dir: flow, Func: "(*core).visit", Package: flow, Run: "TestRepeat_SagaBecomesDueMeanwhile",
		Old: "if looked {", New: "if looked && !looked {",
	},
}
