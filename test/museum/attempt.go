package museum

// Rule 13: an attempt counts when a handler starts; who waited for one that
// failed gets the failure; attempts have a limit and a pause between them.
var attempts = []Mutant{
	{
		Name: "a sweep ends the reruns of a call", Rule: "rule 13",
		File: "sweep.go", Package: core, Run: "TestASweepDoesNotEndTheReruns",
		Old: "as.MaxAttempts = 0 //", New: "_ = as.MaxAttempts //",
	},
	{
		Name: "an attempt without effect counts", Rule: "rule 13",
		File: "run.go", Package: core, Run: "TestWhatAHandlerReturns",
		Old: "\t\ts.Attempt--\n", New: "",
	},
	{
		Name: "a crash does not count", Rule: "rule 13",
		File: "visit.go", Package: core, Run: "TestAZombiesSettlement|TestAttemptsAreLimited",
		Old: "d.Policy, r.Fingerprint, r.Attempt+1, r.LastError", New: "d.Policy, r.Fingerprint, max(1, r.Attempt), r.LastError",
	},
	{
		Name: "a reservation counts as an attempt", Rule: "rule 13",
		File: "reserve.go", Package: core, Run: "TestAReservationOutlasts",
		Old: "store.Started, 0, g.opt.Reservation", New: "store.Started, 1, g.opt.Reservation",
	},
	{
		Name: "the claim of a caller who left stays", Rule: "rule 13", Parent: "vendo#1312",
		File: "visit.go", Package: core, Run: "TestAClaimWhoseCallerLeft",
		Old: "\t\tv.g.giveBack(ctx, &a.found.Record, v.undo)\n\t\treturn context.Cause(ctx)\n",
		New: "\t\treturn context.Cause(ctx)\n",
	},
	{
		Name: "a claim is given back in the time of the caller who left", Rule: "rule 13",
		File: "settle.go", Package: core, Run: "TestAClaimWhoseCallerLeft",
		Old: "\tgrace := g.detached(ctx)\n\trecord := *r\n",
		New: "\tgrace := struct {\n\t\tcontext.Context\n\t\tstop func()\n\t}{ctx, func() {}}\n\trecord := *r\n",
	},
	{
		Name: "a claim without a reply stays", Rule: "rule 13", Parent: "go-redis#2985",
		File: "visit.go", Package: core, Run: "TestAClaimWhoseReplyNeverCame",
		Old: "\t\tv.g.abandon(ctx, nil, p, v.undo)\n", New: "",
	},
	{
		Name: "the last attempt is told of without its caller's context", Rule: "rule 13",
		File: "run.go", Package: core, Run: "TestEachEventOfACall",
		Old: "g.ended(x.ctx.Context, x, EventExhausted, err)", New: "g.ended(context.Background(), x, EventExhausted, err)",
	},
	{
		Name: "a claim that took too long stays", Rule: "rule 13",
		File: "visit.go", Package: core, Run: "TestAClaimWhoseAnswerTookLonger",
		Old: "\t\tv.g.giveBack(ctx, &a.found.Record, v.undo)\n\t\treturn fmt.Errorf(", New: "\t\treturn fmt.Errorf(",
	},
	{
		Name: "a claim that is given back keeps its attempt", Rule: "rule 13",
		File: "settle.go", Package: core, Run: "TestAClaimWhose",
		Old: "max(0, r.Attempt-1)", New: "r.Attempt",
	},
	{
		Name: "a crowd of waiters runs a failing handler once each", Rule: "rule 13",
		File: "visit.go", Package: core, Run: "TestAWaiterGetsTheFailure",
		Old: "return v.waitedFor > 0 && ", New: "return v.waitedFor < 0 && ",
	},
	{
		Name: "a waiter is refused although nothing happened", Rule: "rule 13",
		File: "visit.go", Package: core, Run: "TestAWaiterRunsWhenTheFirst",
		Old: "r.State == store.Released && r.Attempt >= v.waitedFor", New: "r.State == store.Released",
	},
	{
		Name: "the pause after a failure is not kept", Rule: "rule 13",
		File: "store/decide.go", Package: core, Run: "TestAFailedAttemptWaits",
		Old: "a == DoPark || !now.Before(r.Until) {", New: "a != 0 {",
	},
	{
		Name: "the pause after a failure is not asked for", Rule: "rule 13",
		File: "run.go", Package: core, Run: "TestAFailedAttemptWaits",
		Old: "if g.opt.Backoff != nil {", New: "if g.opt.Backoff == nil {",
	},
	{
		Name: "attempts have no limit", Rule: "rule 13",
		File: "store/decide.go", Package: core, Run: "TestAttemptsAreLimited",
		Old: "if c.MaxAttempts > 0 && r.Attempt >= c.MaxAttempts {", New: "if false {",
	},
	{
		Name: "one attempt more than the limit", Rule: "rule 13",
		File: "store/decide.go", Package: core, Run: "TestAttemptsAreLimited",
		Old: "r.Attempt >= c.MaxAttempts", New: "r.Attempt > c.MaxAttempts",
	},
	{
		Name: "the last attempt does not end the key", Rule: "rule 13",
		File: "run.go", Package: core, Run: "TestAttemptsAreLimited",
		Old: "if g.opt.MaxAttempts > 0 && x.attempt >= g.opt.MaxAttempts {", New: "if false {",
	},
	{
		Name: "under park a key without attempts has failed", Rule: "rule 13",
		File: "visit.go", Package: core, Run: "TestUnderParkAKey",
		Old: "if policy == Park {", New: "if false {",
	},
}
