package museum

// Section 2: the policy is stored, and the stricter of record and call wins.
var policies = []Mutant{
	{
		Name: "the weaker policy wins", Rule: "policy",
		File: "store/state.go", Package: seam, Run: "TestTheStricterPolicy",
		Old: "return max(p, other)", New: "return min(p, other)",
	},
	{
		Name: "the record's policy has no say", Rule: "policy",
		File: "store/decide.go", Package: seam, Run: "TestDecideDoes",
		Old: "Policy: min(r.Policy.Stricter(c.Policy), Park)", New: "Policy: c.Policy",
	},
	{
		Name: "the call's policy has no say", Rule: "policy",
		File: "store/decide.go", Package: core, Run: "TestTheStricterPolicy",
		Old: "Policy: min(r.Policy.Stricter(c.Policy), Park)", New: "Policy: r.Policy",
	},
	{
		Name: "what failed under retry runs again under park", Rule: "policy",
		File: "store/decide.go", Package: core, Run: "TestDoubtUnderRetry",
		Old: "if p == Park && r.Policy == Retry && r.Attempt > 0 {", New: "if false {",
	},
	{
		Name: "a reservation hides the doubt from park", Rule: "policy",
		File: "store/decide.go", Package: core, Run: "TestAReservationDoesNotHide",
		Old: "return first(r, c, p), time.Time{}", New: "return next(r, c, Execute), time.Time{}",
	},
	{
		Name: "the next claim has the call's policy", Rule: "policy",
		File: "visit.go", Package: core, Run: "TestTheStricterPolicy",
		Old: "p.Policy, p.Fingerprint, p.Attempt, p.Error = d.Policy, r.Fingerprint, r.Attempt+1, r.LastError",
		New: "p.Fingerprint, p.Attempt, p.Error = r.Fingerprint, r.Attempt+1, r.LastError",
	},
	{
		Name: "a run has the Guard's policy", Rule: "policy",
		File: "run.go", Package: core, Run: "TestTheStricterPolicy|TestACrashedRedeemer",
		Old: "x.start(g, r.Policy, ", New: "x.start(g, g.opt.OnDoubt, ",
	},
	{
		Name: "a parked record forgets who was strict", Rule: "policy",
		File: "visit.go", Package: core, Run: "TestWhatWasParkedStaysStrict",
		Old: "\tp.Policy = store.Park\n", New: "",
	},
	{
		Name: "a lapsed claim is run again under park", Rule: "policy",
		File: "store/decide.go", Package: core, Run: "TestALapsedClaim",
		Old: "if p == Park {\n", New: "if false {\n",
	},
	{
		Name: "a plain error is no doubt", Rule: "policy",
		File: "run.go", Package: core, Run: "TestWhatAHandlerReturns",
		Old: "if x.policy == Park {", New: "if false {",
	},
	{
		Name: "a sweep frees what was to be parked", Rule: "rule 7",
		File: "sweep.go", Package: core, Run: "TestASweepRemovesAndRecovers",
		Old: "p.State, count = store.Unknown, &stats.Parked", New: "count = &stats.Parked",
	},
	{
		Name: "a transaction takes over what was to be parked", Rule: "rule 1",
		File: "atomic.go", Package: core, Run: "TestInATransactionOthersClaims",
		Old: "\t\td := t.decide(&f.Record, f.Now)\n",
		New: "\t\td := t.decide(&f.Record, f.Now)\n\t\tif d.Action == store.DoPark {\n\t\t\td.Action = store.TakeOver\n\t\t}\n",
	},
}
