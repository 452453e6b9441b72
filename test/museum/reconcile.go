package museum

// Rule 17: a reconciler runs under a lease of its own, and its "no" is final
// or is not given. Rule 4: an operator's verdict is guarded by what was seen.
var reconciliations = []Mutant{
	{
		Name: "a reconciler asks without a lease", Rule: "rule 17",
		File: "reconcile.go", Package: core, Run: "TestNoTwoReconcileAtOnce",
		Old: "\tp := g.change(r, store.Processing, r.LastError)\n",
		New: "\tif said, err := g.opt.Reconcile(ctx, g.newExecution(r, now())); err != nil || said.kind != undecided {\n" +
			"\t\treturn errors.Join(err, g.Resolve(ctx, *r, said))\n\t}\n\tp := g.change(r, store.Processing, r.LastError)\n",
	},
	{
		Name: "a reconciler asks although another was first", Rule: "rule 17", Parent: "M15: granit-dotnet#1151",
		File: "reconcile.go", Package: core, Run: "TestAReconcilerThatLostTheRace",
		Old: "|| err == nil && !f.Won:\n\t\treturn ErrChanged\n\tcase err != nil:\n\t\treturn &Error{Reason: ErrUnavailable, Operation: v", New: ":\n\t\treturn ErrChanged\n\tcase err != nil:\n\t\treturn &Error{Reason: ErrUnavailable, Operation: v",
	},
	{
		Name: "a reconciler's error is a no", Rule: "rule 17",
		File: "reconcile.go", Package: core, Run: "TestTheNextCallReconciles|TestAReconcilerThatDies",
		Old: "return store.Settlement{State: store.Unknown, Attempt: x.attempt, Error: undecidedText(r, errText(err))}, EventUndecided, err",
		New: "return store.Settlement{State: store.Released, Attempt: x.attempt, Error: errText(err), Keep: g.opt.Retention}, EventUndecided, err",
	},
	{
		Name: "a reconciler that does not know hides why the call is unknown", Rule: "rule 17",
		File: "reconcile.go", Package: core, Run: "TestAnUndecidedReconciler",
		Old: "Error: undecidedText(r, errText(err))}", New: "Error: errText(err)}",
	},
	{
		Name: "a reconciler's no counts although it failed", Rule: "rule 17",
		File: "reconcile.go", Package: core, Run: "TestTheNextCallReconciles",
		Old: "\tif err == nil {\n\t\tvar s store.Settlement\n", New: "\tif err == nil || v.kind != undecided {\n\t\tvar s store.Settlement\n",
	},
	{
		Name: "a verdict that is not stored makes a parked call done", Rule: "rule 9",
		File: "run.go", Package: core, Run: "TestAReconcilersRunEndsNoCall",
		Old: "\tcase serr != nil && reconciles:", New: "\tcase serr != nil && reconciles && !s.State.Terminal():",
	},
	{
		Name: "what a reconciler's own call came to is said of the parked one", Rule: "rule 9",
		File: "visit.go", Package: core, Run: "TestWhatComesOverAReconciler",
		Old: "0, ofItsOwn(err))", New: "0, err)",
	},
	{
		Name: "a reconciler's run ends a call", Rule: "rule 17",
		File: "run.go", Package: core, Run: "TestAReconcilersRunEndsNoCall",
		Old: "\t\tkind = EventUndecided\n", New: "\t\tkind = EventNotStored\n",
	},
	{
		Name: "an operator's verdict that is too large is no verdict", Rule: "rule 10",
		File: "reconcile.go", Package: core, Run: "TestAVerdictThatIsTooLarge",
		Old: "if errors.Is(err, store.ErrTooLarge) {", New: "if false {",
	},
	{
		Name: "the zero verdict is a no", Rule: "rule 17",
		File: "reconcile.go", Package: core, Run: "TestTheNextCallReconciles",
		Old: `s.State, s.Error = store.Unknown, "reconciled: still not known"`, New: `s.State, s.Error = store.Released, "reconciled: still not known"`,
	},
	{
		Name: "a claim to reconcile that came to nothing is a no", Rule: "rule 17",
		File: "reconcile.go", Package: core, Run: "TestAClaimToReconcileThatComesToNothing",
		Old: "undo: store.Unknown", New: "undo: store.Released",
	},
	{
		Name: "a verdict ignores what was seen", Rule: "rule 3", Parent: "M5: powertools-typescript#5714",
		File: "reconcile.go", Package: core, Run: "TestResolveHolds",
		Old: "\tf, err := send(ctx, func() (store.Found, error) {\n\t\tf, err := g.st.Swap(ctx, seen.Seen(), p)\n",
		New: "\tis, err := g.st.Get(ctx, seen.Key)\n\tif err != nil {\n\t\treturn err\n\t}\n" +
			"\tf, err := send(ctx, func() (store.Found, error) {\n\t\tf, err := g.st.Swap(ctx, is.Record.Seen(), p)\n",
	},
	{
		Name: "a verdict that came too late is a success", Rule: "rule 3", Parent: "M15: granit-dotnet#1151",
		File: "reconcile.go", Package: core, Run: "TestResolveHolds",
		Old: "|| err == nil && !f.Won:\n\t\treturn &Error{Reason: ErrChanged", New: "|| err == nil && f.Record.Key != seen.Key:\n\t\treturn &Error{Reason: ErrChanged",
	},
	{
		Name: "a verdict overwrites an outcome", Rule: "rule 8",
		File: "reconcile.go", Package: core, Run: "TestResolveHolds",
		Old: "if seen.State != store.Unknown {", New: "if false {",
	},
	{
		Name: "an operator may say nothing", Rule: "rule 17",
		File: "reconcile.go", Package: core, Run: "TestResolveHolds",
		Old: "if v.kind == undecided {", New: "if false {",
	},
	{
		Name: "a record that cannot be read keeps all parked calls parked", Rule: "rule 17",
		File: "reconcile.go", Package: core, Run: "TestReconcilePassesOverWhatCannotBeRead",
		Old: "if errors.Is(err, store.ErrCorrupt) { // the list", New: "if false { // the list",
	},
	{
		Name: "a reconciler does not tell of what it cannot read", Rule: "rule 11",
		File: "reconcile.go", Package: core, Run: "TestReconcilePassesOverWhatCannotBeRead",
		Old: "\t\t\tif errs == nil {\n\t\t\t\terrs", New: "\t\t\tif errs != nil {\n\t\t\t\terrs",
	},
}
