package museum

const (
	otelDir    = "semelotel"
	timedDir   = "store/timed"
	metricsDir = "cmd/semel/internal/metrics"
)

// Numbers and traces must not say something else than what happened, nor show what is
// private.
var telemetries = []Mutant{
	{
		Name: "telemetry: the log of a message shows a tenant that is hashed", Rule: "telemetry",
		Dir: consumer, Func: "(*Consumer).identify", Package: consumer, Run: "TestServe_DeadLetter_LogNamesItsRecord",
		Old: "c.storeKey(t.call)", New: "store.Key{Operation: t.call.Operation, Tenant: t.call.Tenant, Value: t.call.Key}",
	},
	{
		Name: "telemetry: a Guard that nobody observes is silent about a parked call", Rule: "telemetry",
		Dir: core, Func: "(*Event).needsOperator", Package: core, Run: "TestObserve_NotSet_OnlyTroubleIsLogged",
		Old: "e.level() >= slog.LevelWarn", New: "e.level() > slog.LevelWarn",
	},
	{
		Name: "telemetry: a Guard that nobody observes logs each question about a parked call", Rule: "telemetry",
		Dir: core, Func: "(*Guard).observeEnd", Package: core, Run: "TestObserve_NotSet_OnlyTroubleIsLogged",
		Old: "(kind == EventExecuted || x.reconciling)", New: "kind == EventExecuted",
	},
	{
		Name: "telemetry: a call without a record ends twice", Rule: "telemetry",
		Dir: core, Func: "(*pendingCall).refuse", Package: core, Run: "TestObserve_Unprotected_OneEndingEvent",
		Old: "EndsCall: !c.runsUnprotected(err)", New: "EndsCall: true",
	},
	{
		Name: "telemetry: what happens on the way counts as an outcome", Rule: "telemetry",
		Dir: core, Func: "(*Event).Outcome", Package: core, Run: "TestEventOutcome_EachEnd_HasOneWord",
		Old: "case !e.EndsCall:", New: `case !e.EndsCall && e.Kind == "":`,
	},
	{
		Name: "telemetry: a call whose commit was refused counts as executed", Rule: "telemetry",
		Dir: core, Func: "Event.afterTx", Package: "store/sqlitestore", Run: "TestAtomic_Event_SaysWhatWasCommitted",
		Old: "err == nil || kept", New: "err == nil || kept || stored",
	},
	{
		Name: "telemetry: an event comes before the commit", Rule: "telemetry",
		Dir: "store/sqlitestore", Func: "(*Atomic).Run", Package: "store/sqlitestore", Run: "TestAtomic_Event_SaysWhatWasCommitted",
		Old: "events.Context(handlerCtx)", New: "handlerCtx",
	},
	{
		Name: "telemetry: a call that is refused after it has run counts twice", Rule: "telemetry",
		Dir: "internal/txevents", Func: "(*Buffer).End", Package: "internal/txevents", Run: "TestBuffer_End_ReportsTheLastThatEndsTheCall",
		Old: "i == last", New: "i <= last",
	},
	{
		Name: "telemetry: each look of a call that waits counts", Rule: "telemetry",
		Dir: "store/pgstore", Func: "(*Atomic).try", Package: "store/pgstore", Run: "TestAtomic_Waits_HasOneEvent",
		Old: "events.Context(ctx)", New: "ctx",
	},
	{
		Name: "telemetry: each try of a batch counts", Rule: "telemetry",
		Dir: "store/pgstore", Func: "(*batchCall).settle", Package: "store/pgstore", Run: "TestRunBatch_Events_OneForEachCall",
		Old: "c.events.Context(ctx)", New: "ctx",
	},
	{
		Name: "telemetry: a call of a batch that is not settled has no event", Rule: "telemetry",
		Dir: "store/pgstore", Func: "(*batchTry).runHandler", Package: "store/pgstore", Run: "TestRunBatch_CallEndsWithoutSettlement_HasOneEvent",
		Old: "admitted[settled:]", New: "admitted[len(admitted):]",
	},
	{
		Name: "telemetry: a call of a batch that is not claimed has no event", Rule: "telemetry",
		Dir: "store/pgstore", Func: "(*Atomic).reportEnd", Package: "store/pgstore", Run: "TestRunBatch_CallEndsWithoutSettlement_HasOneEvent",
		Old: "invalid == nil", New: "invalid != nil",
	},
	{
		Name: "telemetry: a waiter that must not run the handler counts as a run", Rule: "telemetry",
		Dir: "store/pgstore", Func: "(*Atomic).try", Package: "store/pgstore", Run: "TestAtomic_WaiterAfterFailure_EventIsRefusal",
		Old: "notAdmitted = true", New: "notAdmitted = false",
	},
	{
		Name: "telemetry: a handler that panics in a transaction has no event", Rule: "telemetry",
		Dir: core, Func: "(*txCall).run", Package: "store/pgstore", Run: "TestAtomic_HandlerPanics_HasOneEvent",
		Old: "if !returned {", New: "if returned && !returned {",
	},
	{
		Name: "telemetry: a replay that the caller did not get counts as one", Rule: "telemetry",
		Dir: core, Func: "Event.afterTx", Package: "store/pgstore", Run: "TestRunBatch_ReplayBesideLostCommit_EventIsNoReplay",
		Old: "case e.Kind == EventReplayed && ", New: "case false && ",
	},
	{
		Name: "telemetry: the context of an event has ended", Rule: "telemetry",
		Dir: "store/sqlitestore", Func: "(*Atomic).Run", Package: "store/sqlitestore", Run: "TestAtomic_Observe_ContextHasNotEnded",
		Old: "{ events.End(err) }", New: "{ cancel(nil); events.End(err) }",
	},
	{
		Name: "telemetry: a call without an attempt left has no event", Rule: "telemetry",
		Dir: core, Func: "(*txCall).claimInTx", Package: "store/pgstore", Run: "TestAtomic_Events_SayWhatBecameOfEachCall",
		Old: "t.reportEnd(ctx, EventFailed, r, t.kept)", New: "",
	},
	{
		Name: "telemetry: a replay has no link to the first run", Rule: "telemetry",
		Dir: otelDir, Func: "(*Store).Claim", Package: otelDir, Run: "TestDo_Replay_LinksToFirstRun",
		Old: "p.Holder = withTrace(p.Holder, run)", New: "",
	},
	{
		Name: "telemetry: a replay in a transaction has no link to the first run", Rule: "telemetry",
		Dir: otelDir, Func: "(*Telemetry).observe", Package: "test/telemetry", Run: "TestTrace_CallsInTransactions_ReplayLinksToFirstRun",
		Old: "trace.WithLinks(trace.Link{SpanContext: first})", New: "trace.WithLinks()",
	},
	{
		Name: "telemetry: a prefetched batch forgets its trace", Rule: "telemetry",
		Dir: core, Func: "(*driverTxCall).Proposal", Package: "test/telemetry", Run: "TestTrace_CallsInTransactions_ReplayLinksToFirstRun",
		Old: "d.txCall.firstClaimIn(ctx)", New: "d.txCall.firstClaim()",
	},
	{
		Name: "telemetry: a reconciler's claim hides the first run", Rule: "telemetry",
		Dir: otelDir, Func: "(*Store).Swap", Package: otelDir, Run: "TestDo_Reconciled_ReplayLinksToFirstRun",
		Old: "seen.State == store.Unknown || ", New: "",
	},
	{
		Name: "telemetry: a step describes the span of its call", Rule: "telemetry",
		Dir: otelDir, Func: "(*Runner).Run", Package: otelDir, Run: "TestDo_HandlersSpansAndCalls_AreInCallsSpan",
		Old: "context.WithValue(ctx, callKey{}, (*callSpan)(nil))", New: "ctx",
	},
	{
		Name: "telemetry: the key is in the span", Rule: "telemetry",
		Dir: otelDir, Func: "(*Runner).Run", Package: otelDir, Run: "TestDo_Attributes_NoKeyTenantPayloadOrError",
		Old: "if r.telemetry.key {", New: "if !r.telemetry.key {",
	},
	{
		Name: "telemetry: a silent store looks as if it answered", Rule: "telemetry",
		Dir: timedDir, Func: "Answered", Package: timedDir, Run: "TestAnswered_ErrorOfTheRecord_IsAnswer",
		Old: "store.Affects(err) == store.ExtentCall", New: "err != nil",
	},
	{
		Name: "telemetry: the records in doubt are counted by reading all", Rule: "telemetry",
		Dir: seam, Func: "CountInDoubt", Package: seam, Run: "TestCountInDoubt_Records_CountedAndOldest",
		Old: "States: []State{Unknown}, ", New: "",
	},
	{
		Name: "telemetry: a reconciler that asks makes a record young", Rule: "telemetry",
		Dir: seam, Func: "CountInDoubt", Package: seam, Run: "TestCountInDoubt_Records_CountedAndOldest",
		Old: "f.Record.Created", New: "f.Record.Updated",
	},
	{
		Name: "telemetry: a sweep that fails ends the lag", Rule: "telemetry",
		Dir: metricsDir, Func: "(*Sweeps).After", Package: metricsDir, Run: "TestRegister_Sweeps_LagSinceLastGoodPass",
		Old: "s.errors.Add(1)", New: "s.errors.Add(1); s.last.Store(time.Now().UnixNano())",
	},
}
