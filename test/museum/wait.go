package museum

// Rule 14: a waiting call is judged by Decide again, waits within limits, and never
// waits inside a transaction.
var waits = []Mutant{
	{
		Name: "a waiting call replays without Decide", Rule: "rule 1",
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
		Name: "a waiting call swaps when it wakes", Rule: "rule 14",
		Dir: core, Func: "(*pendingCall).admit", Package: core, Run: "TestWait_RunEndsWithoutOutcome_IsInProgress",
		Old: "*f, err = c.look(ctx) round = 0", New: "*f, err = c.swap(ctx, r.Seen(), c.nextClaim(r, d, store.Processing)); round = 0",
	},
	{
		Name: "a waiting call of the same Guard is not woken", Rule: "rule 14",
		Dir: core, Func: "(*waiters).wake", Package: core, Run: "TestWait_SameGuard_IsWokenAtOnce",
		Old: "close(group.ended)", New: "",
	},
	{
		Name: "the time limit of a wait restarts with each read", Rule: "rule 14", Parent: "fiber#3058",
		Dir: core, Func: "(*pendingCall).waitForEnd", Package: core, Run: "TestWait_LimitReached_IsInProgress",
		Old: "if c.waitUntil.IsZero() {", New: "if true {",
	},
	{
		Name: "a wait outlasts its caller", Rule: "rule 14", Parent: "fiber: MemoryLock waits without a context",
		Dir: core, Func: "(*pendingCall).waitForEnd", Package: core, Run: "TestWait_CallerLeaves_Ends",
		Old: "context.WithTimeout(ctx,", New: "context.WithTimeout(context.WithoutCancel(ctx),",
	},
	{
		Name: "a waiting call does not poll after the store has stopped notifying", Rule: "rule 14",
		Dir: core, Func: "(*Guard).sleep", Package: core, Run: "TestWait_StoreNotifiesOrNot_NoticesEnd",
		Old: "notifierFailed, d, last = nil, firstPoll*2/3, lastPoll", New: "notifierFailed = nil",
	},
	{
		Name: "a call that waits for a reconciler gets the failure of an earlier attempt", Rule: "rule 14",
		Dir: core, Func: "(*pendingCall).waitForEnd", Package: core, Run: "TestReconcile_DidNotHappen_OneOfWaitingCallsRuns",
		Old: "&& !protocol.IsReconcilerClaim(r)", New: "&& protocol.LastAttemptText(r) != \"\"",
	},
	{
		Name: "MaxWaiters is ignored", Rule: "rule 14",
		Dir: core, Func: "(*waiters).join", Package: core, Run: "TestWait_OverMaxWaiters_IsInProgress",
		Old: "if group.size >= limit {", New: "if false {",
	},
	{
		Name: "RetryAfter is missing", Rule: "rule 14",
		Dir: core, Func: "(*pendingCall).refuse", Package: core, Run: "TestLease_LongHandler_IsRenewed|TestBackoff_AttemptFailed_NextCallIsInProgress",
		Old: "RetryAfter: max(after, 0)", New: "RetryAfter: min(after, 0)",
	},
	{
		Name: "a waiting call does not notice the end of another process's run", Rule: "rule 14",
		Dir: core, Func: "(*Guard).sleep", Package: core, Run: "TestWait_RunOfAnotherProcess_Polls",
		Old: "if f, err := g.read(ctx, seen.Key); err == nil && sameClaim(f.Record.Seen(), seen) {", New: "if g.notifier == nil {",
	},
	{
		Name: "a waiting call does not notice that the lease has expired", Rule: "rule 14",
		Dir: core, Func: "(*pendingCall).waitForEnd", Package: core, Run: "TestWait_HolderCrashed_TakesOver",
		Old: "min(waitLeft, max(leaseLeft, time.Millisecond))", New: "waitLeft",
	},
	{
		Name: "a call waits inside a transaction", Rule: "rule 14",
		Dir: core, Func: "(*txCall).claimInTx", Package: core, Run: "TestRunIn_KeyClaimedByAnother_ObeysDecide",
		Old: "case store.InProgress:",
		New: "case store.InProgress: if err := t.waitForEnd(ctx, r, d.Until.Sub(f.Now)); err != nil { return nil, err };",
	},
}
