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
		Old: "\t\ts.raise(r.Fence)\n",
		New: "\t\ts.raise(r.Fence)\n\t\tsh.mu.Unlock()\n\t\tfor range 2000 {\n\t\t\t_ = fmt.Sprint(r.Fence)\n\t\t}\n\t\tsh.mu.Lock()\n",
	},
	{
		Name: "a sweep does not look at what has lapsed", Rule: "rule 7", Parent: "CAMEL-16427",
		File: "store/memstore/sweep.go", Package: mem, Run: "TestConforms$/sweep",
		Old: "return r.Lapsed(now) })", New: "return false })",
	},
	{
		Name: "a sweep passes over what is too much for a step", Rule: "rule 7",
		File: "store/memstore/sweep.go", Package: core, Run: "TestOnePassHandsBack",
		Old: "\treturn after, false\n}\n", New: "\treturn after, left > 0\n}\n",
	},
	{
		Name: "a sweep takes all of the store's time", Rule: "rule 7",
		File: "sweep.go", Package: core, Run: "TestASweepRests",
		Old: "r.owed += time.Duration(r.times) * took", New: "r.owed += 0 * took",
	},
	{
		Name: "one record keeps the memory of a hundred that a sweep has removed", Rule: "rule 7",
		File: "store/memstore/sweep.go", Package: mem, Run: "TestASweepGivesMemoryBack",
		Old: "\tsh.tidy()\n", New: "",
	},
	{
		Name: "a row is longer than it can tell", Rule: "rule 10",
		File: "store/memstore/memstore.go", Package: mem, Run: "TestAnOutcomeThatARow",
		Old: "if n > s.most {", New: "if n < 0 {",
	},
	{
		Name: "a sweep moves what it must not lose", Rule: "rule 7",
		File: "store/memstore/shard.go", Package: mem, Run: "TestASweepGivesMemoryBack",
		Old: "\t\tcopy(mem, w)\n", New: "\t\tcopy(mem, w[:len(w)-1])\n",
	},
	{
		Name: "a sweep has no limit", Rule: "rule 7",
		File: "store/memstore/sweep.go", Package: mem, Run: "TestConforms$/sweep",
		Old: "\t\tif left == 0 {\n\t\t\treturn after, false\n", New: "\t\tif false {\n\t\t\treturn after, false\n",
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
		File: "store/memstore/sweep.go", Package: mem, Run: "TestConforms(WhereHashesCollide)?$/sweep", // where they do, claims rest
		Old: "!r.Expired(now) {\n", New: "!r.Expired(now) && " + unless + " {\n",
	}
}
