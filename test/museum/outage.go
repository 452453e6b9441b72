package museum

// Rule 11: a store error never reads as "absent".
var outages = []Mutant{
	{
		Name: "the handler runs when the store does not answer", Rule: "rule 11",
		File: "run.go", Package: core, Run: "TestAStoreThatDoesNotAnswer",
		Old: "err != nil && g.opt.UnprotectedOnOutage && ", New: "err != nil && ",
	},
	{
		Name: "running without a record is a remedy for everything", Rule: "rule 11",
		File: "run.go", Package: core, Run: "TestUnprotectedIsForOutages",
		Old: "!v.answered && errors.Is(err, ErrUnavailable) && ", New: "",
	},
	{
		Name: "a caller who left is an outage", Rule: "rule 11",
		File: "run.go", Package: core, Run: "TestUnprotectedIsForOutages",
		Old: " && ctx.Err() == nil:", New: ":",
	},
	{
		Name: "an outage after an answer is one from the start", Rule: "rule 11",
		File: "run.go", Package: core, Run: "TestUnprotectedDoesNotRun",
		Old: "!v.answered && ", New: "",
	},
	{
		Name: "an unreadable record is an outage", Rule: "rule 11",
		File: "run.go", Package: core, Run: "TestUnprotectedIsForOutages",
		Old: " && !errors.Is(err, store.ErrCorrupt)", New: "",
	},
	{
		Name: "another's record is replayed", Rule: "rule 11", Parent: "OpenAI, 20 March 2023",
		File: "visit.go", Package: core, Run: "TestAForeignRecord",
		Old: "if r.Key != v.call.key {", New: "if false {",
	},
	{
		Name: "a claim without a deadline is an orphan", Rule: "rule 11", Parent: "M4: powertools-python#8386, powertools-typescript#5678",
		File: "store/decide.go", Package: seam, Run: "TestDecideTakesAMissingLease",
		Old: "|| r.Until.IsZero() && (waits || r.State == Released) ", New: "",
	},
	{
		Name: "running without a record is not told", Rule: "rule 11",
		File: "run.go", Package: core, Run: "TestUnprotectedOnOutage",
		Old: "g.ended(ctx, x, EventUnprotected, err)", New: "g.ended(ctx, x, EventExecuted, err)",
	},
	{
		Name: "a promise of at most once gives way to an outage", Rule: "rule 11",
		File: "options.go", Package: core, Run: "TestNewReports",
		Old: "if o.UnprotectedOnOutage && o.OnDoubt == Park {", New: "if false {",
	},
	{
		Name: "an unreadable record counts as absent", Rule: "rule 11",
		File: "store/decide.go", Package: core, Run: "TestACorruptRecord",
		Old: "return Decision{Action: Corrupt, Policy: Park}", New: "return Decision{Action: Execute, Policy: Park, Restart: true}",
	},
	{
		Name: "an unknown state is passed over", Rule: "rule 11",
		File: "store/decide.go", Package: seam, Run: "TestDecideTouchesNothing",
		Old: "if !r.State.Valid() || ", New: "if ",
	},
	{
		Name: "an unknown policy is passed over", Rule: "rule 11",
		File: "store/decide.go", Package: seam, Run: "TestDecideTouchesNothing",
		Old: "|| r.Policy > Park ", New: "",
	},
	{
		Name: "a running claim may expire", Rule: "rule 11",
		File: "store/decide.go", Package: seam, Run: "TestDecideTouchesNothing",
		Old: " || r.Expires.IsZero() != (waits || r.State == Unknown)", New: "",
	},
	{
		Name: "an outage reads as an expired token", Rule: "rule 11",
		File: "visit.go", Package: core, Run: "TestAnOutageIsNotAnExpiredToken",
		Old: "\t\tif errors.Is(err, store.ErrNotFound) {\n\t\t\tif !v.call", New: "\t\tif err != nil {\n\t\t\tif !v.call",
	},
}
