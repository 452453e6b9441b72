package museum

// Rule 8: a terminal record does not change, and a replay equals the first answer.
var replays = []Mutant{
	{
		Name: "a completed record is replayed without Decide", Rule: "rule 1", Parent: "M6: powertools-typescript#2058",
		Dir: core, Func: "(*pendingCall).admit", Package: core, Run: "TestPayload_Differs_IsMismatchInEveryState|TestRetention_LongRun_CountsFromCompletion",
		Old: "d := c.decide(r, f.Now)",
		New: `
			d := c.decide(r, f.Now)
			if r.State == store.Completed {
				d.Action = store.Replay
			}`,
	},
	{
		Name: "a replay loses the headers", Rule: "rule 8",
		Dir: core, Func: "(*pendingCall).answer", Package: core, Run: "TestRun_Duplicate_GetsSameBytes",
		Old: "Outcome: r.Outcome", New: "Outcome: store.Outcome{Code: r.Outcome.Code, Body: r.Outcome.Body, Codec: r.Outcome.Codec}",
	},
	{
		Name: "a replay is not marked", Rule: "rule 8",
		Dir: core, Func: "(*pendingCall).answer", Package: core, Run: "TestRun_Duplicate_GetsSameBytes",
		Old: "res := Result{Outcome: r.Outcome, Replayed: true,", New: "res := Result{Outcome: r.Outcome,",
	},
	{
		Name: "who appends to a kept body writes where another reads", Rule: "rule 8",
		Dir: seam, Func: "Outcome.Clone", Package: mem, Run: "TestGet_CallerAppendsToBody_LeavesOtherReadersBody",
		Old: "slices.Clip(bytes.Clone(o.Body))", New: "append(make([]byte, 0, 100), o.Body...)",
	},
	{
		Name: "an expired outcome is replayed", Rule: "rule 7", Parent: "M17: DynamoDB TTL",
		Dir: seam, Func: "Decide", Package: core, Run: "TestRetention_LongRun_CountsFromCompletion",
		Old: "if r.Expired(now) {", New: "if false {",
	},
	{
		Name: "a record expires a microsecond late", Rule: "rule 7",
		Dir: seam, Func: "(*Record).Expired", Package: seam, Run: "TestRecord_ReachesItsEnd_IsLapsedOrExpired",
		Old: "return !r.Expires.IsZero() && !now.Before(r.Expires)", New: "return !r.Expires.IsZero() && now.After(r.Expires)",
	},
	{
		Name: "a lease expires a microsecond late", Rule: "rule 7",
		Dir: seam, Func: "(*Record).Lapsed", Package: seam, Run: "TestRecord_ReachesItsEnd_IsLapsedOrExpired",
		Old: "(r.State == Started || r.State == Processing) && !now.Before(r.Until)",
		New: "(r.State == Started || r.State == Processing) && now.After(r.Until)",
	},
	{
		Name: "retention counts from the claim", Rule: "rule 7",
		Dir: seam, Func: "(*Record).settle", Package: core, Run: "TestRetention_LongRun_CountsFromCompletion",
		Old: "r.Updated, Time(Micros(now.Add(keep))), o", New: "r.Updated, Time(Micros(r.Created.Add(keep))), o",
	},
	{
		Name: "an outcome is kept for the time of the lease", Rule: "rule 7",
		Dir: core, Func: "(*Guard).completion", Package: core, Run: "TestRetention_LongRun_CountsFromCompletion",
		Old: "Keep: g.options.Retention", New: "Keep: g.options.Lease",
	},
	{
		Name: "a released record expires before its wait ends", Rule: "rule 7",
		Dir: seam, Func: "(*Record).settle", Package: seam, Run: "TestApply_Release_ExpiresAfterLongerOfWaitAndKeep",
		Old: "Time(Micros(now.Add(max(wait, keep))))", New: "Time(Micros(now.Add(keep)))",
	},
	{
		Name: "a parked record expires", Rule: "rule 7",
		Dir: seam, Func: "(*Record).settle", Package: mem, Run: "TestConformance$/expiry",
		Old: "case Unknown:", New: "case Unknown: r.Expires = Time(Micros(now.Add(keep)))",
	},
	{
		Name: "a rerun overwrites the kept outcome", Rule: "rule 8",
		Dir: core, Func: "(*Guard).Run", Package: core, Run: "TestRerun",
		Old: "return g.rerun(ctx, call, fn)",
		New: `
			f, err := c.swap(ctx, a.found.Record.Seen(), c.nextClaim(&a.found.Record, store.Decision{Restart: true}, store.Processing))
			if err != nil {
				return Result{}, err
			}
			a.found, a.sent = f, now()
			return g.execute(ctx, &a, fn, nil)`,
	},
	{
		Name: "two reruns run at the same time", Rule: "rule 8",
		Dir: core, Func: "(*Guard).Run", Package: core, Run: "TestRerun",
		Old: "return g.rerun(ctx, call, fn)",
		New: `
			o, err := fn(ctx, g.newExecution(&a.found.Record, now()))
			return Result{Outcome: o, codecs: g.options.Codecs}, err`,
	},
	{
		Name: "each rerun has another key", Rule: "rule 8",
		Dir: core, Func: "(*Guard).rerun", Package: core, Run: "TestRerun",
		Old: "call.Operation += protocol.RerunSuffix", New: `call.Operation += "##" + fmt.Sprint(protocol.NewOwner())`,
	},
	{
		Name: "the pause after a failure is ignored under every policy", Rule: "rule 13",
		Dir: seam, Func: "byState", Package: core, Run: "TestRun_HandlerReturns_DecidesState",
		Old: "a == DoPark || !now.Before(r.Until) {", New: "a == DoPark {",
	},
	{
		Name: "a replay adds the credentials of the first request's origin", Rule: "http",
		Dir: door, Func: "(*config).setReplayHeaders", Package: door, Run: "TestReplay_OuterHandlerSetOrigin",
		Old: `outer = append(outer, "Access-Control-Allow-Credentials")`, New: "_ = outer",
	},
}
