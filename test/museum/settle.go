package museum

import "slices"

// Rule 4: who settles shows owner, fence and state, once a lease. Rule 9:
// completion does not end with the caller, and what is not known is never a
// failure.
var settlements = slices.Concat(storeSettlements, coreSettlements)

var storeSettlements = []Mutant{
	{
		Name: "a settlement does not compare the fence", Rule: "rule 4", Parent: "M1: Powertools, River",
		File: "store/memstore/memstore.go", Package: mem, Run: "TestConforms$/settle",
		Old: "case !exists || r.Lease() != l:", New: "case !exists || r.Owner != l.Owner:",
	},
	{
		Name: "a settlement does not compare the owner", Rule: "rule 4", Parent: "M1: Powertools, River",
		File: "store/memstore/memstore.go", Package: mem, Run: "TestConforms$/settle",
		Old: "case !exists || r.Lease() != l:", New: "case !exists || r.Fence != l.Fence:",
	},
	{
		Name: "a frozen owner settles after a take-over", Rule: "rule 4", Parent: "M1: Powertools, River",
		File: "store/memstore/memstore.go", Package: mem, Run: "TestConforms$/settle",
		Old: "case !exists || r.Lease() != l:", New: "case !exists:",
	},
	{
		Name: "a reservation is settled", Rule: "rule 4",
		File: "store/memstore/memstore.go", Package: mem, Run: "TestConforms$/settle",
		Old: "case r.State == store.Processing:", New: "case !r.State.Terminal():",
	},
	{
		Name: "an outcome is overwritten by its owner", Rule: "rule 8",
		File: "store/memstore/memstore.go", Package: mem, Run: "TestConforms$/settle",
		Old: "case r.State == store.Processing:", New: "case r.State == store.Processing || r.State.Terminal():",
	},
	{
		Name: "another settlement counts as the same", Rule: "rule 4",
		File: "store/change.go", Package: seam, Run: "TestDone",
		Old: "return r.State == s.State && (!s.State.Terminal() || r.Outcome.Equal(s.Outcome))", New: "return r.State == s.State",
	},
	{
		Name: "the same settlement again is a lost lease", Rule: "rule 4",
		File: "store/memstore/memstore.go", Package: core, Run: "TestASettlementIsSentAgain",
		Old: "case t.Done(r):", New: "case false && t.Done(r):",
	},
	{
		Name: "a settlement makes the record that is not there", Rule: "rule 4", Parent: "M18: Powertools",
		File: "store/memstore/memstore.go", Package: mem, Run: "TestConforms$/settle",
		Old: "\tcase !exists || r.Lease() != l:\n",
		New: "\tcase !exists:\n\t\ts.put(t.Apply(store.Record{Key: l.Key, Owner: l.Owner, Fence: l.Fence, Format: store.Format}, s.now()))\n" +
			"\t\treturn nil\n\tcase r.Lease() != l:\n",
	},
	{
		Name: "a release deletes the record", Rule: "rule 5", Parent: "M2: Powertools",
		File: "store/memstore/memstore.go", Package: mem, Run: "TestConforms$/settle",
		Old: "\t\ts.put(t.Apply(*r, s.now()))\n",
		New: "\t\ts.put(t.Apply(*r, s.now()))\n\t\tif t.State == store.Released {\n\t\t\tdelete(s.records, l.Key)\n\t\t}\n",
	},
	{
		Name: "a release deletes another's record", Rule: "rule 4", Parent: "M2: Powertools",
		File: "store/memstore/memstore.go", Package: mem, Run: "TestConforms$/settle",
		Old: "\tcase !exists || r.Lease() != l:\n",
		New: "\tcase exists && t.State == store.Released:\n\t\tdelete(s.records, l.Key)\n\t\treturn nil\n\tcase !exists || r.Lease() != l:\n",
	},
}

var coreSettlements = []Mutant{
	{
		Name: "a settlement ends with the caller", Rule: "rule 9", Parent: "M20: golang/go#43082",
		File: "settle.go", Package: core, Run: "TestAClientThatHangsUp",
		Old: "c.begin(ctx, g.opt.SettleTimeout)\n",
		New: "c.begin(ctx, g.opt.SettleTimeout)\n\tif ctx.Err() != nil {\n\t\tc.stop()\n\t}\n",
	},
	{
		Name: "a settlement is sent once", Rule: "rule 9", Parent: "fiber: failed to save response",
		File: "settle.go", Package: core, Run: "TestASettlementIsSentAgain",
		Old: "case !pause(ctx, wait):", New: "default:",
	},
	{
		Name: "the key is made anew at the end", Rule: "rule 4", Parent: "M8: CAMEL-24091, midaz#1799",
		File: "settle.go", Package: core, Run: "TestADuplicateGetsTheFirstAnswer",
		Old: "return g.settleUntil(c, x.lease, s)",
		New: "l := x.lease\n\tl.Key = store.Key{Operation: l.Key.Operation, Value: l.Key.Value}\n\treturn g.settleUntil(c, l, s)",
	},
	{
		Name: "what is not known is a failure", Rule: "rule 9",
		File: "run.go", Package: core, Run: "TestWhatAHandlerReturns",
		Old: "s.State = store.Unknown", New: "s.State = store.Failed",
	},
	{
		Name: "an outcome that could not be stored is passed over", Rule: "rule 9",
		File: "run.go", Package: core, Run: "TestAnOutcomeThatCannotBeStored",
		Old: "case serr != nil && s.State.Terminal():", New: "case false:",
	},
	{
		Name: "an outcome that could not be stored is withheld", Rule: "rule 9", Parent: "fiber: failed to save response",
		File: "run.go", Package: core, Run: "TestAnOutcomeThatCannotBeStored",
		Old: "if err != nil && !errors.Is(err, ErrOutcomeNotStored) {", New: "if err != nil {",
	},
	{
		Name: "the answer of a lost lease passes for the outcome", Rule: "rule 9", Parent: "Powertools, River",
		File: "run.go", Package: core, Run: "TestAZombiesSettlementIsRefused",
		Old: "\tcase serr != nil && reconciles:", New: "\tcase errors.Is(serr, store.ErrLeaseLost) && s.State.Terminal():\n\tcase serr != nil && reconciles:",
	},
	{
		Name: "a panic leaves its claim behind", Rule: "rule 9", Parent: "Truxify#4622, Friday#403",
		File: "run.go", Package: core, Run: "TestAPanicIsDoubt|TestGoexit",
		Old: "\t\tcase returned:\n", New: "\t\tcase returned || true:\n",
	},
	{
		Name: "a panic is caught by recover, which misses Goexit", Rule: "rule 9", Parent: "Truxify#4622, Friday#403",
		File: "run.go", Package: core, Run: "TestAPanicIsDoubt|TestGoexit",
		Old: "\tdefer func() {\n\t\tswitch {\n\t\tcase returned:\n", New: "\tdefer func() {\n\t\tp := recover()\n\t\tswitch {\n\t\tcase returned || p == nil:\n",
	},
	{
		Name: "a panic means that nothing happened", Rule: "rule 9",
		File: "run.go", Package: core, Run: "TestAPanicIsDoubt|TestGoexit",
		Old: "end(x, Outcome{}, errPanicked)", New: "end(x, Outcome{}, NoEffect(errPanicked))",
	},
	{
		Name: "a cancelled handler had no effect", Rule: "rule 9",
		File: "run.go", Package: core, Run: "TestWhatAHandlerReturns",
		Old: "if SaysNoEffect(err) {", New: "if SaysNoEffect(err) || errors.Is(err, context.Canceled) {",
	},
	{
		Name: "a final failure is not kept", Rule: "doubt",
		File: "run.go", Package: core, Run: "TestWhatAHandlerReturns",
		Old: "ok && f != nil {", New: "ok && f != nil && x.policy == Park {",
	},
	{
		Name: "what had no effect is parked", Rule: "doubt",
		File: "run.go", Package: core, Run: "TestWhatAHandlerReturns",
		Old: "if SaysNoEffect(err) {", New: "if SaysNoEffect(err) && x.policy != Park {",
	},
	{
		Name: "a step without effect frees its parent", Rule: "doubt",
		File: "failure.go", Package: core, Run: "TestNestedNoEffect",
		Old: "\tcase *passedOn:\n\t\treturn false\n", New: "\tcase *passedOn:\n\t\treturn SaysNoEffect(e.error)\n",
	},
	{
		Name: "one of several errors without effect is enough", Rule: "doubt",
		File: "failure.go", Package: core, Run: "TestJoinedNoEffect",
		Old: "len(errs) > 0 && !slices.ContainsFunc(errs, func(err error) bool { return !SaysNoEffect(err) })", New: "slices.ContainsFunc(errs, SaysNoEffect)",
	},
	{
		Name: "a failure that is not kept looks like one that is", Rule: "rule 9",
		File: "run.go", Package: core, Run: "TestLeaseLostDoesNotLookLike",
		Old: "Cause: textOf(err)}", New: "Cause: err}",
	},
	{
		Name: "a stored outcome is settled over by what the handler returns", Rule: "rule 8",
		File: "run.go", Package: core, Run: "TestComplete",
		Old: "\tif x.Completed() {\n", New: "\tif x.Completed() && err == nil {\n",
	},
	{
		Name: "an outcome counts as stored before the store says so", Rule: "rule 9", Parent: "M7: CAMEL-24046",
		File: "execution.go", Package: core, Run: "TestAnOutcomeIsStoredOnlyWhen",
		Old: "\treason := ErrOutcomeNotStored\n", New: "\tx.completed.Store(completed)\n\treason := ErrOutcomeNotStored\n",
	},
}
