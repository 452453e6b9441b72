package museum

// Rule 7: a sweep re-checks what it deletes, never touches a live claim or an
// unknown record, and recovers what has lapsed.
var sweeps = []Mutant{
	{
		Name: "a sweep fails for good what is not known", Rule: "rule 9",
		File: "sweep.go", Package: core, Run: "TestASweepFailsNoParkedKey",
		Old: "if action == store.Exhausted && d.Policy == Park {", New: "if false {",
	},
	{
		Name: "the longest pause between two passes is none", Rule: "rule 7",
		File: "guard.go", Package: core, Run: "TestASweeperWhosePause",
		Old: "\td = min(d, maxDuration) ", New: "\t",
	},
	deletes("a live claim", "M16: Stockpile#424", "r.State != store.Processing"),
	deletes("a lapsed claim", "M16: margince#423", "!r.Lapsed(now)"),
	deletes("a parked record", "", "r.State != store.Unknown"),
	{
		Name: "a sweep deletes what it has not checked again", Rule: "rule 7", Parent: "margince#423",
		File: "store/memstore/sweep.go", Package: mem, Run: "TestConforms$/sweep",
		Old: "\t\t\ts.sweptFence = max(s.sweptFence, r.Fence)\n",
		New: "\t\t\ts.sweptFence = max(s.sweptFence, r.Fence)\n\t\t\ts.mu.Unlock()\n\t\t\tfor range 2000 {\n\t\t\t\t_ = fmt.Sprint(r.Fence)\n\t\t\t}\n\t\t\ts.mu.Lock()\n",
	},
	{
		Name: "a sweep does not look at what has lapsed", Rule: "rule 7", Parent: "CAMEL-16427",
		File: "store/memstore/sweep.go", Package: mem, Run: "TestConforms$/sweep",
		Old: "case r.Lapsed(res.Now) &&", New: "case false &&",
	},
	{
		Name: "a sweep passes over what is too much for a step", Rule: "rule 7",
		File: "store/memstore/sweep.go", Package: core, Run: "TestOnePassHandsBack",
		Old: "\tres.Next = store.Cursor(cursorPrefix + after)\n", New: "",
	},
	{
		Name: "a sweep takes all of the store's time", Rule: "rule 7",
		File: "sweep.go", Package: core, Run: "TestASweepRests",
		Old: "r.owed += time.Duration(r.times) * took", New: "r.owed += 0 * took",
	},
	{
		Name: "a sweep has no limit", Rule: "rule 7",
		File: "store/memstore/sweep.go", Package: mem, Run: "TestConforms$/sweep",
		Old: "if res.Deleted == limit {", New: "if false {",
	},
	{
		Name: "a sweep gives the last attempt another", Rule: "rule 13",
		File: "sweep.go", Package: core, Run: "TestASweepEndsAClaim",
		Old: "Fingerprint: r.Fingerprint, MaxAttempts: maxAttempts}", New: "Fingerprint: r.Fingerprint}\n\t_ = maxAttempts",
	},
	{
		Name: "a sweep does not say what it recovered", Rule: "rule 7",
		File: "sweep.go", Package: core, Run: "TestASweepRemovesAndRecovers",
		Old: "Event{Kind: EventRecovered,", New: "Event{Kind: EventReleased,",
	},
}

// deletes takes something for expired, unless a condition says otherwise.
func deletes(what, parent, unless string) Mutant {
	return Mutant{
		Name: "a sweep deletes " + what, Rule: "rule 7", Parent: parent,
		File: "store/memstore/sweep.go", Package: mem, Run: "TestConforms$/sweep",
		Old: "\t\tcase r.Expired(res.Now):\n", New: "\t\tcase r.Expired(res.Now) || !(" + unless + "):\n",
	}
}
