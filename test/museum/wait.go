package museum

// Rule 14: who waits is judged by the same Decide, within limits, and never in
// a transaction of the caller's.
var waits = []Mutant{
	{
		Name: "a waiter takes an outcome that nobody judged", Rule: "rule 1",
		Dir: core, Func: "(*pendingCall).admit", Package: core, Run: "TestWait_KeyBeganAgain_IsJudgedAgain",
		Old: `
			*f, err = c.look(ctx)
			round = 0`,
		New: `
			*f, err = c.look(ctx)
			round = 0
			if err == nil && f.Record.State == store.Completed {
				a.result, err = c.answer(ctx, &f.Record, store.Decision{Action: store.Replay})
				return err
			}`,
	},
	{
		Name: "a waiter claims when it wakes", Rule: "rule 14",
		Dir: core, Func: "(*pendingCall).admit", Package: core, Run: "TestWait_RunEndsWithoutOutcome_IsInProgress|TestWait_LimitReached_IsInProgress|TestWait_CallerLeaves_Ends|TestWait_AttemptFails_IsReleasedAndDoesNotRun|TestWait_FirstHadNoEffect_OneRuns|TestWait_HolderCrashed_TakesOver|TestWait_KeyBeganAgain_IsJudgedAgain|TestWait_StoreNotifiesOrNot_NoticesEnd|TestWait_SameGuard_IsWokenAtOnce|TestWait_NotifierStillWaiting_DoesNotRace",
		Old: "*f, err = c.look(ctx) round = 0", New: "*f, err = c.swap(ctx, r.Seen(), c.nextClaim(r, d)); round = 0",
	},
	{
		Name: "a waiter of the same Guard is not told", Rule: "rule 14",
		Dir: core, Func: "(*waiters).join", Package: core, Run: "TestWait_SameGuard_IsWokenAtOnce",
		Old: "w.keys.Add(1)", New: "",
	},
	{
		Name: "the limit of a wait begins anew with each look", Rule: "rule 14", Parent: "fiber#3058",
		Dir: core, Func: "(*pendingCall).waitForEnd", Package: core, Run: "TestWait_LimitReached_IsInProgress",
		Old: "if c.waitUntil.IsZero() {", New: "if true {",
	},
	{
		Name: "a wait outlasts its caller", Rule: "rule 14", Parent: "fiber: MemoryLock waits without a context",
		Dir: core, Func: "(*pendingCall).waitForEnd", Package: core, Run: "TestWait_CallerLeaves_Ends",
		Old: "context.WithTimeout(ctx,", New: "context.WithTimeout(context.WithoutCancel(ctx),",
	},
	{
		Name: "who waits trusts a store that cannot tell any more", Rule: "rule 14",
		Dir: core, Func: "(*Guard).sleep", Package: core, Run: "TestWait_StoreNotifiesOrNot_NoticesEnd",
		Old: "notifierFailed, d, last = nil, firstPoll*2/3, lastPoll", New: "notifierFailed = nil",
	},
	{
		Name: "any number may wait", Rule: "rule 14",
		Dir: core, Func: "(*waiters).join", Package: core, Run: "TestWait_OverMaxWaiters_IsInProgress",
		Old: "if group.size >= limit {", New: "if false {",
	},
	{
		Name: "who is told to come again is not told when", Rule: "rule 14",
		Dir: core, Func: "(*pendingCall).refuse", Package: core, Run: "TestLease_LongHandler_IsRenewed|TestBackoff_AttemptFailed_NextCallIsInProgress",
		Old: "RetryAfter: max(after, 0)", New: "RetryAfter: min(after, 0)",
	},
	{
		Name: "a waiter never sees what another process ended", Rule: "rule 14",
		Dir: core, Func: "(*Guard).sleep", Package: core, Run: "TestWait_RunOfAnotherProcess_Polls",
		Old: "if f, err := g.store.Get(ctx, seen.Key); err == nil && sameClaim(f.Record.Seen(), seen) {", New: "if g.notifier == nil {",
	},
	{
		Name: "a waiter does not notice that the holder is dead", Rule: "rule 14",
		Dir: core, Func: "(*pendingCall).waitForEnd", Package: core, Run: "TestWait_HolderCrashed_TakesOver",
		Old: "min(rest, max(left, time.Millisecond))", New: "rest",
	},
	{
		Name: "a call waits inside a transaction", Rule: "rule 14",
		Dir: core, Func: "(*txCall).claim", Package: core, Run: "TestRunIn_KeyClaimedByAnother_ObeysDecide",
		Old: "case store.InProgress:",
		New: "case store.InProgress: if err := t.waitForEnd(ctx, r, d.Until.Sub(f.Now)); err != nil { return nil, err };",
	},
}
