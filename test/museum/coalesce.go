package museum

// Section 4: requests that share a round trip do not share their fate.
var coalescers = []Mutant{
	{
		Name: "requests of one number go in one batch", Rule: "lanes", Parent: "PostgreSQL: error 21000 in a batch of upserts",
		File: "store/coalesce/lane.go", Package: lanes, Run: "TestConflict_EqualNumbers_NeverInTwoFlushes|TestConflict_EqualNumbers_TakeTurns|TestStorm",
		Old: "if h := l.holder[it.number]; h != nil {", New: "if h := l.holder[it.number]; h != nil && h.urgent && !it.urgent {",
	},
	{
		Name: "a renewal waits behind what is queued", Rule: "rule 7",
		File: "store/coalesce/lane.go", Package: lanes, Run: "TestUrgent_Conflict_WaitsForEarlierRequest|TestUrgent_OthersQueued_GoesFirst",
		Old: "\tif it.urgent {\n\t\tl.queue[0].push(it)\n", New: "\tif it.urgent && l.closed {\n\t\tl.queue[0].push(it)\n",
	},
	{
		Name: "a caller that has left the queue is sent all the same", Rule: "rule 13",
		File: "store/coalesce/lane.go", Package: lanes, Run: "TestDo_ContextEndsInQueue_SendsNothing|TestDo_AllLeaveQueue_NothingIsFlushed",
		Old: "\t\t\tl.queue[1].remove(it)\n\t\t}\n\t\tl.waiting--\n", New: "\t\t\t_ = l.queue[1].remove\n\t\t}\n\t\tl.waiting--\n",
	},
	{
		Name: "strangers wait behind a flush that hangs", Rule: "lanes",
		File: "store/coalesce/pace.go", Package: lanes, Run: "TestCrowd_FlushHangs_OthersAreFlushed",
		Old: "\t\t\tl.help() // the flushes in flight hang\n", New: "\t\t\t_ = l.help\n",
	},
}
