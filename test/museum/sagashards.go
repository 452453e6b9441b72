package museum

// Timers of sagas in several shards.
var sagaShards = []Mutant{
	{
		Name: "shards: a shard that is down hides the timers of the others", Rule: "saga 6",
		Dir: shards, Func: "timers.DueTimers", Package: shards, Run: "TestDueTimers_ShardDown_OthersAreFound",
		Old: "outages = append(outages, err)", New: "return nil, now, err",
	},
	{
		Name: "shards: a shard that is down beside an unreadable timer is no outage", Rule: "rule 11",
		Dir: shards, Func: "timers.DueTimers", Package: shards, Run: "TestDueTimers_ShardDownBesideUnreadable_IsOutage",
		Old: "cmp.Or(errors.Join(outages...), errors.Join(unreadable...))", New: "cmp.Or(errors.Join(append(outages, unreadable...)...), nil)",
	},
	{
		Name: "shards: an unreadable timer hides the clock of its shard", Rule: "saga 7",
		Dir: shards, Func: "timers.DueTimers", Package: shards, Run: "TestDueTimers_EachShardHasUnreadable_TimeIsKnown",
		Old: "now.IsZero() || found.now.Before(now)", New: "err == nil && (now.IsZero() || found.now.Before(now))",
	},
	{
		Name: "shards: a shard that refuses changes holds up the sagas of the others", Rule: "saga 6",
		Dir: flow, Func: "(*finder).due", Package: shards, Run: "TestSetTimer_ShardRefuses_SagasOfOthersRun",
		Old: "errs = append(errs, c.err)", New: "if c.err != nil { return due, false, c.err }",
	},
	{
		Name: "shards: sagas that are refused again and again take the turn of the others", Rule: "saga 6",
		Dir: flow, Func: "(*finder).due", Package: shards, Run: "TestSetTimer_ShardRefuses_SagasOfOthersRun",
		Old: "return f.refused[a.Key].Compare(f.refused[b.Key])", New: "return 0",
	},
	{
		Name: "shards: sagas that are refused fill the list of those that are due", Rule: "saga 6",
		Dir: flow, Func: "(*finder).due", Package: shards, Run: "TestSetTimer_ShardRefuses_SagasOfOthersRun",
		Old: "limit+len(f.refused)", New: "limit",
	},
	{
		Name: "shards: a worker waits for the timers of a shard that hangs one after the other", Rule: "saga 6",
		Dir: flow, Func: "(*finder).postpone", Package: shards, Run: "TestSetTimer_ShardHangs_SagasOfOthersRun",
		Old: "all.Go(func() {", New: "all.Wait()\nall.Go(func() {",
	},
}
