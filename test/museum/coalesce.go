package museum

// Section 4: requests that share a round trip do not share their fate.
var coalescers = []Mutant{
	{
		Name: "requests of one number go in one batch", Rule: "isolation", Parent: "PostgreSQL: error 21000 in a batch of upserts",
		Dir: coalesceDir, Func: "(*Batcher).enter", Package: coalesceDir, Run: "TestConflict_EqualNumbers_NeverInTwoFlushes|TestConflict_EqualNumbers_TakeTurns|TestStorm",
		Old: "if h := b.holder[it.number]; h != nil {", New: "if h := b.holder[it.number]; h != nil && h.urgent && !it.urgent {",
	},
	{
		Name: "a renewal waits behind what is queued", Rule: "rule 7",
		Dir: coalesceDir, Func: "(*Batcher).enqueue", Package: coalesceDir, Run: "TestUrgent_Conflict_WaitsForEarlierRequest|TestUrgent_OthersQueued_GoesFirst",
		Old: `
			if it.urgent {
				b.queue[0].push(it)`,
		New: `
			if it.urgent && b.closed {
				b.queue[0].push(it)`,
	},
	{
		Name: "a caller that has left the queue is sent all the same", Rule: "rule 13",
		Dir: coalesceDir, Func: "(*Batcher).leave", Package: coalesceDir, Run: "TestDo_ContextEndsInQueue_SendsNothing|TestDo_AllLeaveQueue_NothingIsFlushed",
		Old: `
				b.queue[1].remove(it)
			}
			b.waiting--`,
		New: `
				_ = b.queue[1].remove
			}
			b.waiting--`,
	},
	{
		Name: "strangers wait behind a flush that hangs", Rule: "isolation",
		Dir: coalesceDir, Func: "(*Batcher).hold", Package: coalesceDir, Run: "TestCrowd_FlushHangs_OthersAreFlushed",
		Old: "b.help()", New: "_ = b.help",
	},
}
