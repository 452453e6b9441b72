package museum

// Rule 17: a reconciler runs under its own lease, and its DidNotHappen is final. Rule 3:
// an operator's verdict applies only to the record that the operator has seen.
var reconciliations = []Mutant{
	{
		Name: "a reconciler asks without a lease", Rule: "rule 17",
		Dir: core, Func: "(*Guard).reconcile", Package: core, Run: "TestReconcile_ManyCalls_AskOnce",
		Old: "p := g.change(r, store.Processing, r.LastError)",
		New: `
			if said, err := g.options.Reconcile(ctx, g.newExecution(r, now())); err != nil || said.kind != undecided {
				return errors.Join(err, g.Resolve(ctx, *r, said))
			}
			p := g.change(r, store.Processing, r.LastError)`,
	},
	{
		Name: "a round asks about one operation while its hook hangs, and about no other", Rule: "isolation",
		Dir: sidecar, Func: "(*Proxy).Run", Package: sidecar, Run: "TestReconcileRound_HookHangsForOneOperation",
		Old: "for _, op := range ops {",
		New: `
			for _, op := range ops[:1] {`,
	},
	{
		Name: "a reconciler asks although another was first", Rule: "rule 17", Parent: "M15: granit-dotnet#1151",
		Dir: core, Func: "(*Guard).reconcile", Package: core, Run: "TestReconcile_SwapLost_AsksNothing",
		Old: "errors.Is(err, store.ErrNotFound) || err == nil && !f.Won", New: "errors.Is(err, store.ErrNotFound)",
	},
	{
		Name: "a reconciler's error counts as DidNotHappen", Rule: "rule 17",
		Dir: core, Func: "(*Guard).settleReconciled", Package: core, Run: "TestReconcile_NextCall_FollowsVerdict|TestReconcile_Panics_CallStaysParked",
		Old: "return store.Settlement{State: store.Unknown, Attempt: x.attempt, Error: protocol.UndecidedText(r, errorText(err))}",
		New: "return store.Settlement{State: store.Released, Attempt: x.attempt, Error: errorText(err), Keep: g.options.Retention}",
	},
	{
		Name: "an undecided reconciler overwrites the cause of the doubt", Rule: "rule 17",
		Dir: core, Func: "(*Guard).settleReconciled", Package: core, Run: "TestReconcile_Undecided_KeepsFirstCause",
		Old: "protocol.UndecidedText(r, errorText(err))", New: "errorText(err)",
	},
	{
		Name: "a verdict counts although the reconciler failed", Rule: "rule 17",
		Dir: core, Func: "(*Guard).settleReconciled", Package: core, Run: "TestReconcile_NextCall_FollowsVerdict",
		Old: `
			if err == nil {
				var s store.Settlement`,
		New: `
			if err == nil || v.kind != undecided {
				var s store.Settlement`,
	},
	{
		Name: "a verdict that is not stored makes a parked call done", Rule: "rule 9",
		Dir: core, Func: "(*Guard).conclude", Package: core, Run: "TestObserve_ReconcilersRun_EndsNoCall",
		Old: "case settleErr != nil && x.reconciling:", New: "case settleErr != nil && x.reconciling && !s.State.Terminal():",
	},
	{
		Name: "the error of a parked call has the reasons of the reconciler's own call", Rule: "rule 9",
		Dir: core, Func: "(*pendingCall).admit", Package: core, Run: "TestReconcile_OwnRunFails_CallIsOnlyParked",
		Old: "asCause(err)", New: "err",
	},
	{
		Name: "a reconciler's run ends a call", Rule: "rule 17",
		Dir: core, Func: "(*Guard).observeEnd", Package: core, Run: "TestObserve_ReconcilersRun_EndsNoCall",
		Old: "EndsCall: !x.reconciling", New: "EndsCall: true",
	},
	{
		Name: "an operator's verdict that is too large is refused", Rule: "rule 10",
		Dir: core, Func: "(*Guard).applyDecision", Package: core, Run: "TestResolve_VerdictTooLargeForStore_LeavesTombstone",
		Old: "if errors.Is(err, store.ErrTooLarge) {", New: "if false {",
	},
	{
		Name: "a verdict fails a stuck saga, and undoes nothing", Rule: "saga 4",
		Dir: core, Func: "(*Guard).Resolve", Package: core, Run: "TestResolve_Saga_VerdictAndReopeningAreRefused",
		Old: "if protocol.IsSaga(seen.Key) {", New: "if protocol.IsSaga(seen.Key) && v.kind == undecided {",
	},
	{
		Name: "a saga whose steps are undone is reopened", Rule: "saga 5",
		Dir: core, Func: "(*Guard).Reopen", Package: core, Run: "TestResolve_Saga_VerdictAndReopeningAreRefused",
		Old: "case protocol.IsSaga(seen.Key):", New: "case protocol.IsSaga(seen.Key) && g.options.Retention == 0:",
	},
	{
		Name: "a call whose handler has undone its steps is reopened", Rule: "steps",
		Dir: core, Func: "(*Guard).Reopen", Package: core, Run: "TestReopen_StepWasUndone_IsRefused",
		Old: "err := g.checkSteps(ctx, &seen); err != nil", New: "err := g.checkSteps(ctx, &seen); err != nil && g.options.Retention == 0",
	},
	{
		Name: "a call whose steps cannot be read is reopened", Rule: "rule 11",
		Dir: core, Func: "(*Guard).checkSteps", Package: core, Run: "TestReopen_StepsCannotBeRead_IsRefused",
		Old: "case err != nil:", New: "case err != nil && seen.Fence == 0:",
	},
	{
		Name: "a call is reopened because a step has used up attempts", Rule: "steps",
		Dir: "internal/protocol", Func: "ReopenRefusal", Package: core, Run: "TestReopen_FailureOfStepPassedOn_IsRefused",
		Old: "return s.Failed && FailureCode(&s.Outcome) == CodeExhausted", New: "return false",
	},
	{
		Name: "a call with steps is not reopened after its last attempt", Rule: "steps",
		Dir: "internal/protocol", Func: "ReopenRefusal", Package: core, Run: "TestReopen_AttemptsUsedUp_GoesOnAfterItsSteps",
		Old: "|| usedUp", New: "|| usedUp && len(steps) == 0",
	},
	{
		Name: "the zero verdict counts as DidNotHappen", Rule: "rule 17",
		Dir: core, Func: "(*Guard).settlement", Package: core, Run: "TestReconcile_NextCall_FollowsVerdict",
		Old: `s.State, s.Error = store.Unknown, "reconciled: still not known"`,
		New: `s.State, s.Error = store.Released, "reconciled: still not known"`,
	},
	{
		Name: "a reconciler's claim that is given back counts as DidNotHappen", Rule: "rule 17",
		Dir: core, Func: "(*Guard).reconcile", Package: core, Run: "TestReconcile_ClaimGivenBack_CallStaysParked",
		Old: "undoState: store.Unknown", New: "undoState: store.Released",
	},
	{
		Name: "a verdict applies to a record that has changed", Rule: "rule 3", Parent: "M5: powertools-typescript#5714",
		Dir: core, Func: "(*Guard).applyDecision", Package: core, Run: "TestResolve_RecordChanged_IsRefused",
		Old: "f, err := g.ask(ctx, func(ctx context.Context) (store.Found, error) { f, err := g.store.Swap(ctx, seen.Seen(), p)",
		New: "current, err := g.store.Get(ctx, seen.Key); if err != nil { return err }; f, err := g.ask(ctx, func(ctx context.Context) (store.Found, error) { f, err := g.store.Swap(ctx, current.Record.Seen(), p)",
	},
	{
		Name: "a verdict that came too late is a success", Rule: "rule 3", Parent: "M15: granit-dotnet#1151",
		Dir: core, Func: "(*Guard).applyDecision", Package: core, Run: "TestResolve_RecordChanged_IsRefused",
		Old: "errors.Is(err, store.ErrNotFound) || err == nil && !f.Won", New: "errors.Is(err, store.ErrNotFound) || err == nil && f.Record.Key != seen.Key",
	},
	{
		Name: "a verdict overwrites an outcome", Rule: "rule 8",
		Dir: core, Func: "(*Guard).Resolve", Package: core, Run: "TestResolve_RecordChanged_IsRefused",
		Old: "if seen.State != store.Unknown {", New: "if false {",
	},
	{
		Name: "an operator may give the zero verdict", Rule: "rule 17",
		Dir: core, Func: "(*Guard).Resolve", Package: core, Run: "TestResolve_RecordChanged_IsRefused",
		Old: "if v.kind == undecided {", New: "if false {",
	},
	{
		Name: "an unreadable record keeps all parked calls parked", Rule: "rule 17",
		Dir: core, Func: "(*Guard).listParked", Package: core, Run: "TestReconcile_RecordUnreadable_OthersAreDecided",
		Old: "if errors.Is(err, store.ErrCorrupt) {", New: "if false {",
	},
	{
		Name: "Reconcile does not report an unreadable record", Rule: "rule 11",
		Dir: core, Func: "(*Guard).listParked", Package: core, Run: "TestReconcile_RecordUnreadable_OthersAreDecided",
		Old: `
			if errs == nil {
				errs`,
		New: `
			if errs != nil {
				errs`,
	},
	{
		Name: "a part of the store that is down keeps all parked calls parked", Rule: "isolation",
		Dir: core, Func: "(*Guard).listParked", Package: shards, Run: "TestReconcile_ShardDownOrHangs_CallsOfOthersAreDecided",
		Old: "return parked, append(errs, &Error{Reason: ErrUnavailable", New: "return nil, append(errs, &Error{Reason: ErrUnavailable",
	},
	{
		Name: "the list of parked calls may hang without end", Rule: "isolation",
		Dir: core, Func: "(*Guard).listParked", Package: shards, Run: "TestReconcile_ShardDownOrHangs_CallsOfOthersAreDecided",
		Old: "g.lister.List(limited,", New: "g.lister.List(ctx,",
	},
}
