package museum

// Section 4: requests that share a round trip do not share their fate.
var coalescers = []Mutant{
	{
		Name: "requests of one number go in one batch", Rule: "lanes", Parent: "PostgreSQL: error 21000 in a batch of upserts",
		Dir: lanes, Func: "(*Lane).enter", Package: lanes, Run: "TestConflict_EqualNumbers_NeverInTwoFlushes|TestConflict_EqualNumbers_TakeTurns|TestStorm",
		Old: "if h := l.holder[it.number]; h != nil {", New: "if h := l.holder[it.number]; h != nil && h.urgent && !it.urgent {",
	},
	{
		Name: "a renewal waits behind what is queued", Rule: "rule 7",
		Dir: lanes, Func: "(*Lane).enqueue", Package: lanes, Run: "TestUrgent_Conflict_WaitsForEarlierRequest|TestUrgent_OthersQueued_GoesFirst",
		Old: `
			if it.urgent {
				l.queue[0].push(it)`,
		New: `
			if it.urgent && l.closed {
				l.queue[0].push(it)`,
	},
	{
		Name: "a caller that has left the queue is sent all the same", Rule: "rule 13",
		Dir: lanes, Func: "(*Lane).leave", Package: lanes, Run: "TestDo_ContextEndsInQueue_SendsNothing|TestDo_AllLeaveQueue_NothingIsFlushed",
		Old: `
				l.queue[1].remove(it)
			}
			l.waiting--`,
		New: `
				_ = l.queue[1].remove
			}
			l.waiting--`,
	},
	{
		Name: "strangers wait behind a flush that hangs", Rule: "lanes",
		Dir: lanes, Func: "(*Lane).hold", Package: lanes, Run: "TestCrowd_FlushHangs_OthersAreFlushed",
		Old: "l.help()", New: "_ = l.help",
	},
}
