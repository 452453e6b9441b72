package museum

// Rule 8: what is terminal never changes, and a replay equals the first answer.
var replays = []Mutant{
	{
		Name: "a completed record is replayed without a judgement", Rule: "rule 1", Parent: "M6: powertools-typescript#2058",
		File: "visit.go", Package: core, Run: "TestAnotherPayload|TestRetentionCounts",
		Old: "\t\td := v.decide(r, f.Now)\n",
		New: "\t\td := v.decide(r, f.Now)\n\t\tif r.State == store.Completed {\n\t\t\td.Action = store.Replay\n\t\t}\n",
	},
	{
		Name: "a replay loses the headers", Rule: "rule 8",
		File: "visit.go", Package: core, Run: "TestADuplicateGetsTheFirstAnswer",
		Old: "res := Result{Outcome: r.Outcome, Replayed: true,", New: "res := Result{Outcome: Outcome{Code: r.Outcome.Code, Body: r.Outcome.Body, Codec: r.Outcome.Codec}, Replayed: true,",
	},
	{
		Name: "a replay is not marked", Rule: "rule 8",
		File: "visit.go", Package: core, Run: "TestADuplicateGetsTheFirstAnswer",
		Old: "res := Result{Outcome: r.Outcome, Replayed: true,", New: "res := Result{Outcome: r.Outcome,",
	},
	{
		Name: "who appends to a kept body writes where another reads", Rule: "rule 8",
		File: "store/record.go", Package: mem, Run: "TestGet_CallerAppendsToBody_LeavesOtherReadersBody",
		Old: "slices.Clip(bytes.Clone(o.Body))", New: "append(make([]byte, 0, 100), o.Body...)",
	},
	{
		Name: "an outcome that is over is replayed", Rule: "rule 7", Parent: "M17: DynamoDB TTL",
		File: "store/decide.go", Package: core, Run: "TestRetentionCounts",
		Old: "if r.Expired(now) {", New: "if false {",
	},
	{
		Name: "an expired record is over a moment late", Rule: "rule 7",
		File: "store/record.go", Package: seam, Run: "TestRecordsEnd",
		Old: "return !r.Expires.IsZero() && !now.Before(r.Expires)", New: "return !r.Expires.IsZero() && now.After(r.Expires)",
	},
	{
		Name: "a lease is over a moment late", Rule: "rule 7",
		File: "store/record.go", Package: seam, Run: "TestRecordsEnd",
		Old: "(r.State == Started || r.State == Processing) && !now.Before(r.Until)", New: "(r.State == Started || r.State == Processing) && now.After(r.Until)",
	},
	{
		Name: "retention counts from the claim", Rule: "rule 7",
		File: "store/change.go", Package: core, Run: "TestRetentionCounts",
		Old: "r.Updated, Time(Micros(now.Add(keep))), o", New: "r.Updated, Time(Micros(r.Created.Add(keep))), o",
	},
	{
		Name: "one time to live for the lock and the result", Rule: "rule 7",
		File: "run.go", Package: core, Run: "TestRetentionCounts",
		Old: "Outcome: g.fit(o), Keep: g.opt.Retention}\n}\n\nfunc (g *Guard) failed", New: "Outcome: g.fit(o), Keep: g.opt.Lease}\n}\n\nfunc (g *Guard) failed",
	},
	{
		Name: "a released record is over before its wait", Rule: "rule 7",
		File: "store/change.go", Package: seam, Run: "TestAReleaseLasts",
		Old: "Time(Micros(now.Add(max(wait, keep))))", New: "Time(Micros(now.Add(keep)))",
	},
	{
		Name: "a parked record expires", Rule: "rule 7",
		File: "store/change.go", Package: mem, Run: "TestConforms$/expiry",
		Old: "\tcase Unknown: // stays until it is resolved\n", New: "\tcase Unknown:\n\t\tr.Expires = Time(Micros(now.Add(keep)))\n",
	},
	{
		Name: "a rerun overwrites the kept outcome", Rule: "rule 8",
		File: "run.go", Package: core, Run: "TestRerun",
		Old: "\t\treturn g.rerun(ctx, call, fn)\n",
		New: "\t\tf, err := v.swap(ctx, a.found.Record.Seen(), v.next(&a.found.Record, store.Decision{Restart: true}))\n" +
			"\t\tif err != nil {\n\t\t\treturn Result{}, err\n\t\t}\n\t\ta.found, a.sent = f, now()\n\t\treturn g.execute(ctx, &a, fn, g.end)\n",
	},
	{
		Name: "reruns run at once", Rule: "rule 8",
		File: "run.go", Package: core, Run: "TestRerun",
		Old: "\t\treturn g.rerun(ctx, call, fn)\n",
		New: "\t\to, err := fn(ctx, g.newExecution(&a.found.Record, now()))\n\t\treturn Result{Outcome: o, codecs: g.opt.Codecs}, err\n",
	},
	{
		Name: "the lock and the result of a rerun disagree", Rule: "rule 8",
		File: "run.go", Package: core, Run: "TestRerun",
		Old: "call.key.Operation += rerunSuffix", New: `call.key.Operation += "##" + fmt.Sprint(newOwner())`,
	},
	{
		Name: "a failed attempt is never set back", Rule: "rule 13",
		File: "store/decide.go", Package: core, Run: "TestWhatAHandlerReturns",
		Old: "a == DoPark || !now.Before(r.Until) {", New: "a == DoPark {",
	},
}
