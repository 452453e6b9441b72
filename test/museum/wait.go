package museum

// Rule 14: who waits is judged by the same Decide, within limits, and never in
// a transaction of the caller's.
var waits = []Mutant{
	{
		Name: "a waiter takes an outcome that nobody judged", Rule: "rule 1",
		File: "visit.go", Package: core, Run: "TestAWaiterIsJudgedAnew",
		Old: "\t\t\t*f, err = v.look(ctx)\n\t\t\tround = 0\n",
		New: "\t\t\t*f, err = v.look(ctx)\n\t\t\tround = 0\n\t\t\tif err == nil && f.Record.State == store.Completed {\n" +
			"\t\t\t\ta.result, err = v.answer(ctx, &f.Record, store.Decision{Action: store.Replay})\n\t\t\t\treturn err\n\t\t\t}\n",
	},
	{
		Name: "a waiter claims when it wakes", Rule: "rule 14",
		File: "visit.go", Package: core, Run: "TestWakingUpIsOnlyAHint|TestAWait",
		Old: "\t\t\t*f, err = v.look(ctx)\n\t\t\tround = 0\n",
		New: "\t\t\t*f, err = v.swap(ctx, r.Seen(), v.next(r, d))\n\t\t\tround = 0\n",
	},
	{
		Name: "a waiter of the same Guard is not told", Rule: "rule 14",
		File: "wait.go", Package: core, Run: "TestAWaiterOfTheSameGuardIsTold",
		Old: "\t\tw.waiting.Add(1)\n", New: "",
	},
	{
		Name: "the limit of a wait begins anew with each look", Rule: "rule 14", Parent: "fiber#3058",
		File: "wait.go", Package: core, Run: "TestAWaitEndsWithItsLimit",
		Old: "if v.waitUntil.IsZero() {", New: "if true {",
	},
	{
		Name: "a wait outlasts its caller", Rule: "rule 14", Parent: "fiber: MemoryLock waits without a context",
		File: "wait.go", Package: core, Run: "TestAWaitEndsWithItsCaller",
		Old: "ctx2, cancel := context.WithTimeout(ctx, ", New: "ctx2, cancel := context.WithTimeout(context.WithoutCancel(ctx), ",
	},
	{
		Name: "who waits trusts a store that cannot tell any more", Rule: "rule 14",
		File: "wait.go", Package: core, Run: "TestAWaiterIsToldOrPolls",
		Old: "deaf, d, last = nil, firstPoll*2/3, lastPoll", New: "deaf = nil",
	},
	{
		Name: "any number may wait", Rule: "rule 14",
		File: "wait.go", Package: core, Run: "TestWaitersAKeyAreBounded",
		Old: "if e.n >= limit {", New: "if false {",
	},
	{
		Name: "who is told to come again is not told when", Rule: "rule 14",
		File: "visit.go", Package: core, Run: "TestALeaseIsRenewed|TestAFailedAttemptWaits",
		Old: "RetryAfter: max(after, 0)", New: "RetryAfter: min(after, 0)",
	},
	{
		Name: "a waiter never sees what another process ended", Rule: "rule 14",
		File: "wait.go", Package: core, Run: "TestWaitersOfAnotherProcess",
		Old: "if f, err := g.st.Get(ctx, seen.Key); err == nil && sameClaim(f.Record.Seen(), seen) {", New: "if g.waiter == nil {",
	},
	{
		Name: "a waiter does not notice that the holder is dead", Rule: "rule 14",
		File: "wait.go", Package: core, Run: "TestAWaiterTakesOver",
		Old: "min(rest, max(left, time.Millisecond))", New: "rest",
	},
	{
		Name: "a call waits inside a transaction", Rule: "rule 14",
		File: "atomic.go", Package: core, Run: "TestInATransactionOthersClaims",
		Old: "\t\tcase store.InProgress:\n",
		New: "\t\tcase store.InProgress:\n\t\t\tif err := t.wait(ctx, &f.Record, d.Until.Sub(f.Now)); err != nil {\n\t\t\t\treturn nil, err\n\t\t\t}\n",
	},
}
