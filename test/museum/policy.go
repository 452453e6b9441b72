package museum

// Policy: the record keeps it, and the stricter of record and call applies.
var policies = []Mutant{
	{
		Name: "a nil handler claims its key, and park keeps it in doubt", Rule: "rule 13",
		Dir: core, Func: "checkHandler", Package: core, Run: "TestRun_HandlerIsNil_IsInvalidAndClaimsNothing",
		Old: "if isNil {", New: "if isNil && c == nil {",
	},
	{
		Name: "the weaker policy wins", Rule: "policy",
		Dir: seam, Func: "Policy.Stricter", Package: seam, Run: "TestPolicy_Stricter_IsPark",
		Old: "return max(p, other)", New: "return min(p, other)",
	},
	{
		Name: "the record's policy is ignored", Rule: "policy",
		Dir: seam, Func: "Decide", Package: seam, Run: "TestDecide_EachCase_MatchesTable",
		Old: "Policy: min(r.Policy.Stricter(c.Policy), Park)", New: "Policy: c.Policy",
	},
	{
		Name: "the call's policy is ignored", Rule: "policy",
		Dir: seam, Func: "Decide", Package: core, Run: "TestPolicy_RecordAndCallDiffer_StricterApplies",
		Old: "Policy: min(r.Policy.Stricter(c.Policy), Park)", New: "Policy: r.Policy",
	},
	{
		Name: "a call that failed under retry runs under park", Rule: "policy",
		Dir: seam, Func: "startAction", Package: core, Run: "TestPolicy_FailedUnderRetry_ParkDoesNotRunIt",
		Old: "if p == Park && r.Policy == Retry && r.Attempt > 0 {", New: "if false {",
	},
	{
		Name: "a reservation hides the doubt from park", Rule: "policy",
		Dir: seam, Func: "byState", Package: core, Run: "TestPolicy_ReservedAfterDoubt_ParkDoesNotRunIt",
		Old: "return startAction(r, c, p), time.Time{}", New: "return ifAttemptLeft(r, c, Execute), time.Time{}",
	},
	{
		Name: "the next claim has the call's policy", Rule: "policy",
		Dir: core, Func: "(*pendingCall).nextClaim", Package: core, Run: "TestPolicy_RecordAndCallDiffer_StricterApplies",
		Old: "p.Policy, p.Fingerprint, p.Attempt, p.Error = d.Policy, r.Fingerprint, r.Attempt+1, r.LastError",
		New: "p.Fingerprint, p.Attempt, p.Error = r.Fingerprint, r.Attempt+1, r.LastError",
	},
	{
		Name: "a run has the Guard's policy", Rule: "policy",
		Dir: core, Func: "(*Guard).newExecution", Package: core, Run: "TestPolicy_RecordAndCallDiffer_StricterApplies|TestRedeem_FailsUnderPark_IsParked",
		Old: "policy: r.Policy", New: "policy: g.options.OnDoubt",
	},
	{
		Name: "a parked record does not keep the policy park", Rule: "policy",
		Dir: core, Func: "(*pendingCall).park", Package: core, Run: "TestPolicy_ResolvedAfterPark_StaysPark",
		Old: "p.Policy = store.Park", New: "",
	},
	{
		Name: "an expired claim runs again under park", Rule: "policy",
		Dir: seam, Func: "byState", Package: core, Run: "TestTakeOver_LeaseExpired_RunsOrParksByPolicy",
		Old: "if p == Park {", New: "if false {",
	},
	{
		Name: "a plain error is not in doubt", Rule: "policy",
		Dir: core, Func: "(*Guard).settlementOf", Package: core, Run: "TestRun_HandlerReturns_DecidesState",
		Old: "if x.policy == Park {", New: "if false {",
	},
	{
		Name: "a sweep releases a record under park", Rule: "rule 7",
		Dir: "sweep", Func: "(*sweeper).recover", Package: "sweep", Run: "TestOnce_EachState_RemovesOrRecovers",
		Old: "p.State, kind, count = store.Unknown, semel.EventParked, &stats.Parked", New: "kind, count = semel.EventParked, &stats.Parked",
	},
	{
		Name: "a transaction takes over a claim under park", Rule: "rule 1",
		Dir: core, Func: "(*txCall).claimInTx", Package: core, Run: "TestRunIn_KeyClaimedByAnother_ObeysDecide",
		Old: "d := t.decide(r, f.Now)", New: "d := t.decide(r, f.Now); if d.Action == store.DoPark { d.Action = store.TakeOver }",
	},
}
