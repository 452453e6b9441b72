package museum

// Rule 7: a sweep checks a record again before it deletes it, changes no live claim and
// no Unknown record, and recovers expired claims.
var sweeps = []Mutant{
	{
		Name: "an Observe that panics ends the sweep", Rule: "rule 7",
		Dir: "sweep", Func: "(*sweeper).recover", Package: "sweep", Run: "TestRun_OptionPanics_GoesOn",
		Old: `callback.Report(ctx, "sweep: Observe", func() { observe(ctx, e) })`, New: "s.options.Observe(ctx, e)",
	},
	{
		Name: "the longest pause between two passes overflows", Rule: "rule 7",
		Dir: "internal/retry", Func: "Pause", Package: "sweep", Run: "TestRun_LongestPause_MakesOnePass",
		Old: "d = min(d, longestPause)", New: "",
	},
	deletes("a live claim", "M16: Stockpile#424", "r.State != store.Processing"),
	deletes("a lapsed claim", "M16: margince#423", "!r.Lapsed(res.Now)"),
	deletes("a parked record", "", "r.State != store.Unknown"),
	{
		Name: "a sweep deletes what it has not checked again", Rule: "rule 7", Parent: "margince#423",
		Dir: mem, Func: "(*Store).Sweep", Package: mem, Run: "TestConformance$/sweep",
		Old: "s.sweptFence = max(s.sweptFence, r.Fence)",
		New: `
			s.sweptFence = max(s.sweptFence, r.Fence)
			s.mu.Unlock()
			for range 2000 {
				_ = fmt.Sprint(r.Fence)
			}
			s.mu.Lock()`,
	},
	{
		Name: "a sweep does not look at what has lapsed", Rule: "rule 7", Parent: "CAMEL-16427",
		Dir: mem, Func: "(*Store).Sweep", Package: mem, Run: "TestConformance$/sweep",
		Old: "case r.Lapsed(res.Now) &&", New: "case false &&",
	},
	{
		Name: "a sweep leaves out the rest of a full step", Rule: "rule 7",
		Dir: mem, Func: "(*Store).Sweep", Package: "sweep", Run: "TestOnce_ManyExpired_RecoversAll",
		Old: "res.Next = store.Cursor(cursorPrefix + after)", New: "",
	},
	{
		Name: "a sweep does not rest", Rule: "rule 7",
		Dir: "sweep", Func: "(*pacer).rest", Package: "sweep", Run: "TestOnce_ManySteps_RestsAfterEach",
		Old: "p.owed += time.Duration(p.factor) * took", New: "p.owed += 0 * took",
	},
	{
		Name: "a sweep has no limit", Rule: "rule 7",
		Dir: mem, Func: "(*Store).Sweep", Package: mem, Run: "TestConformance$/sweep",
		Old: "if res.Deleted == limit {", New: "if false {",
	},
	{
		Name: "a sweep applies a limit of attempts of its own", Rule: "rule 13",
		Dir: "sweep", Func: "(*sweeper).recover", Package: "sweep", Run: "TestOnce_LastAttemptExpired_NextGuardDecides",
		Old: "Policy: r.Policy, Fingerprint: r.Fingerprint}, now)", New: "Policy: r.Policy, Fingerprint: r.Fingerprint, MaxAttempts: 1}, now)",
	},
	{
		Name: "a sweep keeps the record of a consumer for a day", Rule: "steps",
		Dir: "sweep", Func: "(*Options).withDefaults", Package: "sweep", Run: "TestOnce_GuardKeepsForAWeek_StepsAreNotRepeated",
		Old: "cmp.Or(d.Retention, DefaultRetention)", New: "cmp.Or(d.Retention, 24*time.Hour)",
	},
	{
		Name: "a proxy keeps the records of other programs for its own retention", Rule: "steps",
		Dir: sidecar, Func: "(*Proxy).Run", Package: sidecar, Run: "TestSweep_ProgramOfOtherOptions_KeepsItsRecord",
		Old: "max(c.Retention(), sweep.DefaultRetention)", New: "c.Retention()",
	},
	{
		Name: "a sweep does not report recovered records", Rule: "rule 7",
		Dir: "sweep", Func: "(*sweeper).recover", Package: "sweep", Run: "TestOnce_EachState_RemovesOrRecovers",
		Old: "if observe != nil {", New: `if observe != nil && kind == "" {`,
	},
	{
		Name: "a step of a sweep may hang without end", Rule: "rule 7",
		Dir: "sweep", Func: "(*sweeper).step", Package: "sweep", Run: "TestOnce_StoreHangs_EndsAfterStoreTimeout",
		Old: "s.store.Sweep(limited,", New: "s.store.Sweep(ctx,",
	},
	{
		Name: "a sweep begins at the start after each failure", Rule: "rule 7",
		Dir: "sweep", Func: "Run", Package: "sweep", Run: "TestRun_StepFails_NextPassGoesOnThere",
		Old: "from = failed", New: `from = ""`,
	},
	{
		Name: "a part that hangs takes all the time of a step", Rule: "isolation",
		Dir: seam, Func: "PartContext", Package: shards, Run: "TestSweep_ShardHangs_OthersAreSwept",
		Old: "return context.WithTimeout(ctx, time.Until(deadline)/2)", New: "_ = deadline; return context.WithCancel(ctx)",
	},
	{
		Name: "a slow part is not swept because it comes after others in a step", Rule: "isolation",
		Dir: seam, Func: "SweepParts", Package: seam, Run: "TestSweepParts_PartsHang_OthersHaveAllTheirTime|TestSweepParts_LaterPartFails_GetsAStepOfItsOwn",
		Old: "case !first:", New: "case !first && false:",
	},
}

// deletes takes something for expired, unless a condition says otherwise.
func deletes(what, parent, unless string) Mutant {
	return Mutant{
		Name: "a sweep deletes " + what, Rule: "rule 7", Parent: parent,
		Dir: mem, Func: "(*Store).Sweep", Package: mem, Run: "TestConformance$/sweep",
		Old: "\t\tcase r.Expired(res.Now):\n", New: "\t\tcase r.Expired(res.Now) || !(" + unless + "):\n",
	}
}
