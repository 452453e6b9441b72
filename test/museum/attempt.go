package museum

// Rule 13: an attempt counts when a handler starts. A call that waited for a failed
// attempt gets an error. Attempts have a limit and a pause between them.
var attempts = []Mutant{
	{
		Name: "a crashed rerun ends the key", Rule: "rule 13",
		Dir: core, Func: "(*Guard).rerun", Package: core, Run: "TestRerun_CrashedReads_DoNotExhaustKey",
		Old: "c.storeCall.MaxAttempts = 0", New: "_ = c.storeCall.MaxAttempts",
	},
	{
		Name: "an attempt without effect counts", Rule: "rule 13",
		Dir: core, Func: "(*Guard).settlementOf", Package: core, Run: "TestRun_HandlerReturns_DecidesState",
		Old: "s.Attempt--", New: "",
	},
	{
		Name: "a crash does not count", Rule: "rule 13",
		Dir: core, Func: "(*pendingCall).nextClaim", Package: core, Run: "TestTakeOver_OldOwnerSettles_IsRefused|TestMaxAttempts_ErrorsAndCrashes_Count",
		Old: "d.Policy, r.Fingerprint, r.Attempt+1, r.LastError", New: "d.Policy, r.Fingerprint, max(1, r.Attempt), r.LastError",
	},
	{
		Name: "a reservation counts as an attempt", Rule: "rule 13",
		Dir: core, Func: "(*Guard).Reserve", Package: core, Run: "TestReserve_LeaseOver_HoldsAndIsNoAttempt",
		Old: "store.Started, 0, g.options.Reservation", New: "store.Started, 1, g.options.Reservation",
	},
	{
		Name: "the claim of a caller that left is not given back", Rule: "rule 13", Parent: "vendo#1312",
		Dir: core, Func: "(*pendingCall).grant", Package: core, Run: "TestClaim_CallerLeft_IsGivenBack",
		Old: "c.guard.giveBack(ctx, &a.found.Record, c.undoState) return context.Cause(ctx)", New: "return context.Cause(ctx)",
	},
	{
		Name: "a claim is given back under the context of the caller that left", Rule: "rule 13",
		Dir: core, Func: "(*Guard).giveBack", Package: core, Run: "TestClaim_CallerLeft_IsGivenBack",
		Old: "g.settleContext(ctx)", New: "context.WithCancel(ctx)",
	},
	{
		Name: "a claim without a reply is not given back", Rule: "rule 13", Parent: "go-redis#2985",
		Dir: core, Func: "(*pendingCall).claim", Package: core, Run: "TestClaim_NoReply_IsGivenBack",
		Old: "c.guard.giveBackUnanswered(ctx, nil, p, c.undoState)", New: "",
	},
	{
		Name: "a claim that found a record with an error is sent again and again", Rule: "rule 13",
		Dir: core, Func: "(*pendingCall).maybeGranted", Package: core, Run: "TestClaim_RecordComesWithError_IsNotSentAgain",
		Old: "&& (f.Won || f.Record.Key != c.key || f.Record.Owner == owner)", New: "",
	},
	{
		Name: "a claim whose record comes with an error is not given back", Rule: "rule 13",
		Dir: core, Func: "(*pendingCall).maybeGranted", Package: core, Run: "TestClaim_OwnRecordComesWithError_IsGivenBack",
		Old: "f.Record.Owner == owner", New: "f.Record.Owner == owner && f.Won",
	},
	{
		Name: "the end of a run is reported without its caller's context", Rule: "rule 13",
		Dir: core, Func: "(*Guard).conclude", Package: core, Run: "TestObserve_EventOfCall_HasCallersContext",
		Old: "g.observeEnd(ctx, x, kind, err)", New: "g.observeEnd(context.Background(), x, kind, err)",
	},
	{
		Name: "a claim that took too long is not given back", Rule: "rule 13",
		Dir: core, Func: "(*pendingCall).grant", Package: core, Run: "TestClaim_AnswerLaterThanLease_IsGivenBack",
		Old: "c.guard.giveBack(ctx, &a.found.Record, c.undoState) return fmt.Errorf(", New: "return fmt.Errorf(",
	},
	{
		Name: "a claim that is given back keeps its attempt", Rule: "rule 13",
		Dir: core, Func: "(*Guard).undoClaim", Package: core, Run: "TestClaim_NoReply_IsGivenBack|TestClaim_CallerLeft_IsGivenBack|TestClaim_AnswerLaterThanLease_IsGivenBack",
		Old: "max(0, r.Attempt-1)", New: "r.Attempt",
	},
	{
		Name: "each of many waiting calls runs a failing handler", Rule: "rule 13",
		Dir: core, Func: "(*pendingCall).attemptFailed", Package: core, Run: "TestWait_AttemptFails_IsReleasedAndDoesNotRun",
		Old: "return c.waitedFor > 0 &&", New: "return c.waitedFor < 0 &&",
	},
	{
		Name: "a waiting call fails although the attempt had no effect", Rule: "rule 13",
		Dir: core, Func: "(*pendingCall).attemptFailed", Package: core, Run: "TestWait_FirstHadNoEffect_OneRuns",
		Old: "r.State == store.Released && r.Attempt >= c.waitedFor", New: "r.State == store.Released",
	},
	{
		Name: "the pause after a failure is not waited for", Rule: "rule 13",
		Dir: seam, Func: "byState", Package: core, Run: "TestBackoff_AttemptFailed_NextCallIsInProgress",
		Old: "a == DoPark || !now.Before(r.Until) {", New: "a != 0 {",
	},
	{
		Name: "Backoff is not called", Rule: "rule 13",
		Dir: core, Func: "(*Guard).settlementOf", Package: core, Run: "TestBackoff_AttemptFailed_NextCallIsInProgress",
		Old: "g.options.Backoff != nil", New: "g.options.Backoff == nil",
	},
	{
		Name: "a record expires when its next attempt is due", Rule: "rule 13",
		Dir: core, Func: "(*Guard).settlementOf", Package: core, Run: "TestBackoff_AsLongAsRetention_AttemptsAndStepsAreKept",
		Old: "s.Keep += s.Wait", New: "",
	},
	{
		Name: "attempts have no limit", Rule: "rule 13",
		Dir: seam, Func: "ifAttemptLeft", Package: core, Run: "TestMaxAttempts_ErrorsAndCrashes_Count",
		Old: "if c.MaxAttempts > 0 && r.Attempt >= c.MaxAttempts {", New: "if false {",
	},
	{
		Name: "one attempt more than the limit", Rule: "rule 13",
		Dir: seam, Func: "ifAttemptLeft", Package: core, Run: "TestMaxAttempts_ErrorsAndCrashes_Count",
		Old: "r.Attempt >= c.MaxAttempts", New: "r.Attempt > c.MaxAttempts",
	},
	{
		Name: "the last attempt does not end the key", Rule: "rule 13",
		Dir: core, Func: "(*Guard).settlementOf", Package: core, Run: "TestMaxAttempts_ErrorsAndCrashes_Count",
		Old: "if g.options.MaxAttempts > 0 && x.attempt >= g.options.MaxAttempts {", New: "if false {",
	},
	{
		Name: "under park a key without attempts has failed", Rule: "rule 13",
		Dir: core, Func: "(*pendingCall).exhaust", Package: core, Run: "TestMaxAttempts_UnderPark_ParksKey",
		Old: "if policy == Park {", New: "if false {",
	},
}
