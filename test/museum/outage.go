package museum

// Rule 11: a store error never reads as "absent".
var outages = []Mutant{
	{
		Name: "the handler runs when the store does not answer", Rule: "rule 11",
		Dir: core, Func: "(*Guard).Run", Package: core, Run: "TestRun_StoreDown_RunsNothing",
		Old: "err != nil && g.options.UnprotectedOnOutage", New: "err != nil",
	},
	{
		Name: "running without a record is a remedy for everything", Rule: "rule 11",
		Dir: core, Func: "(*Guard).Run", Package: core, Run: "TestUnprotected_NoOutage_DoesNotRun",
		Old: "&& !c.answered && errors.Is(err, ErrUnavailable)", New: "",
	},
	{
		Name: "a caller who left is an outage", Rule: "rule 11",
		Dir: core, Func: "(*pendingCall).unavailable", Package: core, Run: "TestUnprotected_NoOutage_DoesNotRun",
		Old: "case ctx.Err() != nil:", New: "case false:",
	},
	{
		Name: "an outage after an answer is one from the start", Rule: "rule 11",
		Dir: core, Func: "(*Guard).Run", Package: core, Run: "TestUnprotected_LeaseExpiredUnderPark_DoesNotRun|TestUnprotected_RunInProgress_DoesNotRun|TestUnprotected_RecordCorrupt_DoesNotRun",
		Old: "!c.answered &&", New: "",
	},
	{
		Name: "an unreadable record is an outage", Rule: "rule 11",
		Dir: core, Func: "(*pendingCall).unavailable", Package: core, Run: "TestUnprotected_NoOutage_DoesNotRun",
		Old: "case errors.Is(cause, store.ErrCorrupt):", New: "case false:",
	},
	{
		Name: "another's record is replayed", Rule: "rule 11", Parent: "OpenAI, 20 March 2023",
		Dir: core, Func: "(*pendingCall).decide", Package: core, Run: "TestRun_RecordOfAnotherKey_IsNotReplayed",
		Old: "if r.Key != c.key {", New: "if false {",
	},
	{
		Name: "a claim without a deadline is an orphan", Rule: "rule 11", Parent: "M4: powertools-python#8386, powertools-typescript#5678",
		Dir: seam, Func: "Decide", Package: seam, Run: "TestDecide_UntilMissing_IsCorrupt",
		Old: "|| r.Until.IsZero() && (held || r.State == Released)", New: "",
	},
	{
		Name: "running without a record is not told", Rule: "rule 11",
		Dir: core, Func: "(*Guard).runUnprotected", Package: core, Run: "TestUnprotected_StoreDown_RunsAndReports",
		Old: "EventUnprotected", New: "EventExecuted",
	},
	{
		Name: "a promise of at most once gives way to an outage", Rule: "rule 11",
		Dir: core, Func: "(*Options).validate", Package: core, Run: "TestNew_InvalidOptions_ReportsAll",
		Old: "if o.UnprotectedOnOutage && o.OnDoubt == Park {", New: "if false {",
	},
	{
		Name: "an unreadable record counts as absent", Rule: "rule 11",
		Dir: seam, Func: "Decide", Package: core, Run: "TestRun_RecordCorrupt_RunsNothing",
		Old: "return Decision{Action: Corrupt, Policy: Park}",
		New: "return Decision{Action: Execute, Policy: Park, Restart: true}",
	},
	{
		Name: "an unknown state is passed over", Rule: "rule 11",
		Dir: seam, Func: "Decide", Package: seam, Run: "TestDecide_RecordContradictsItself_IsCorrupt",
		Old: "if !r.State.Valid() ||", New: "if",
	},
	{
		Name: "an unknown policy is passed over", Rule: "rule 11",
		Dir: seam, Func: "Decide", Package: seam, Run: "TestDecide_RecordContradictsItself_IsCorrupt",
		Old: "|| r.Policy > Park", New: "",
	},
	{
		Name: "a running claim may expire", Rule: "rule 11",
		Dir: seam, Func: "Decide", Package: seam, Run: "TestDecide_RecordContradictsItself_IsCorrupt",
		Old: "|| r.Expires.IsZero() != (held || r.State == Unknown)", New: "",
	},
	{
		Name: "an outage reads as an expired token", Rule: "rule 11",
		Dir: core, Func: "(*pendingCall).admit", Package: core, Run: "TestRedeem_StoreDown_IsUnavailable",
		Old: "if errors.Is(err, store.ErrNotFound) {", New: "if err != nil {",
	},
}
