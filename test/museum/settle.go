package museum

import "slices"

// Rule 4: a settlement names owner, fence and state, and settles a lease once. Rule 9:
// the outcome is stored even if the caller has left, and a doubtful call is not a
// failure.
var settlements = slices.Concat(storeSettlements, coreSettlements)

var storeSettlements = []Mutant{
	{
		Name: "a settlement that the store did not acknowledge counts as stored", Rule: "durable",
		Dir: core, Func: "(*Guard).sendUntil", Package: "test/sim", Run: "TestCampaign_StandbyTakesOver_AcknowledgedStays",
		Old: `
			case !retry.Pause(ctx, wait):
				return err`,
		New: `
			case !retry.Pause(ctx, wait):
				return nil`,
	},
	{
		Name: "a settlement does not compare the fence", Rule: "rule 4", Parent: "M1: Powertools, River",
		Dir: mem, Func: "(*Store).Settle", Package: mem, Run: "TestConformance$/settle",
		Old: "case !exists || r.Lease() != l:", New: "case !exists || r.Owner != l.Owner:",
	},
	{
		Name: "a settlement does not compare the owner", Rule: "rule 4", Parent: "M1: Powertools, River",
		Dir: mem, Func: "(*Store).Settle", Package: mem, Run: "TestConformance$/settle",
		Old: "case !exists || r.Lease() != l:", New: "case !exists || r.Fence != l.Fence:",
	},
	{
		Name: "a frozen owner settles after a take-over", Rule: "rule 4", Parent: "M1: Powertools, River",
		Dir: mem, Func: "(*Store).Settle", Package: mem, Run: "TestConformance$/settle",
		Old: "case !exists || r.Lease() != l:", New: "case !exists:",
	},
	{
		Name: "a reservation is settled", Rule: "rule 4",
		Dir: mem, Func: "(*Store).Settle", Package: mem, Run: "TestConformance$/settle",
		Old: "case r.State == store.Processing:", New: "case !r.State.Terminal():",
	},
	{
		Name: "an outcome is overwritten by its owner", Rule: "rule 8",
		Dir: mem, Func: "(*Store).Settle", Package: mem, Run: "TestConformance$/settle",
		Old: "case r.State == store.Processing:", New: "case r.State == store.Processing || r.State.Terminal():",
	},
	{
		Name: "another settlement counts as the same", Rule: "rule 4",
		Dir: seam, Func: "(*Settlement).Done", Package: seam, Run: "TestDone",
		Old: "return r.State == s.State && (!s.State.Terminal() || r.Outcome.Equal(s.Outcome))", New: "return r.State == s.State",
	},
	{
		Name: "the same settlement again is a lost lease", Rule: "rule 4",
		Dir: mem, Func: "(*Store).Settle", Package: core, Run: "TestSettle_NoAnswer_IsSentAgain",
		Old: "case t.Done(&r.Record):", New: "case false && t.Done(&r.Record):",
	},
	{
		Name: "a settlement makes the record that is not there", Rule: "rule 4", Parent: "M18: Powertools",
		Dir: mem, Func: "(*Store).Settle", Package: mem, Run: "TestConformance$/settle",
		Old: "case !exists || r.Lease() != l:",
		New: `
			case !exists:
				s.put(t.Apply(store.Record{Key: l.Key, Owner: l.Owner, Fence: l.Fence, Format: store.Format}, s.now()), nil)
				return nil
			case r.Lease() != l:`,
	},
	{
		Name: "a release deletes the record", Rule: "rule 5", Parent: "M2: Powertools",
		Dir: mem, Func: "(*Store).Settle", Package: mem, Run: "TestConformance$/settle",
		Old: "s.put(t.Apply(r.Record, s.now()), r.steps)",
		New: `
			s.put(t.Apply(r.Record, s.now()), r.steps)
			if t.State == store.Released {
				delete(s.records, l.Key)
			}`,
	},
	{
		Name: "a release deletes another's record", Rule: "rule 4", Parent: "M2: Powertools",
		Dir: mem, Func: "(*Store).Settle", Package: mem, Run: "TestConformance$/settle",
		Old: "case !exists || r.Lease() != l:",
		New: `
			case exists && t.State == store.Released:
				delete(s.records, l.Key)
				return nil
			case !exists || r.Lease() != l:`,
	},
}

var coreSettlements = []Mutant{
	{
		Name: "a NoEffect after a stored outcome counts for the call around it", Rule: "doubt",
		Dir: core, Func: "(*Guard).execute", Package: core, Run: "TestComplete_ThenNoEffect_OuterCallIsInDoubt",
		Old: "handlererr.HideNoEffect(err)", New: "err",
	},
	{
		Name: "a settlement ends with the caller", Rule: "rule 9", Parent: "M20: golang/go#43082",
		Dir: core, Func: "(*Guard).settle", Package: core, Run: "TestSettle_CallerLeft_StoresOutcome",
		Old: "ctx, cancel := g.settleContext(ctx)",
		New: `
			caller := ctx
			ctx, cancel := g.settleContext(ctx)
			if caller.Err() != nil {
				cancel()
			}`,
	},
	{
		Name: "a settlement is sent once", Rule: "rule 9", Parent: "fiber: failed to save response",
		Dir: core, Func: "(*Guard).sendUntil", Package: core, Run: "TestSettle_NoAnswer_IsSentAgain",
		Old: "case !retry.Pause(ctx, wait):", New: "default:",
	},
	{
		Name: "a settlement has another key than the claim", Rule: "rule 4", Parent: "M8: CAMEL-24091, midaz#1799",
		Dir: core, Func: "(*Guard).settle", Package: core, Run: "TestRun_Duplicate_GetsSameBytes",
		Old: "err := g.settleUntil(ctx, x.lease, s)",
		New: "l := x.lease; l.Key = store.Key{Operation: l.Key.Operation, Value: l.Key.Value}; err := g.settleUntil(ctx, l, s)",
	},
	{
		Name: "a doubtful call counts as failed", Rule: "rule 9",
		Dir: core, Func: "(*Guard).settlementOf", Package: core, Run: "TestRun_HandlerReturns_DecidesState",
		Old: "s.State = store.Unknown", New: "s.State = store.Failed",
	},
	{
		Name: "an outcome that could not be stored is not reported", Rule: "rule 9",
		Dir: core, Func: "(*Guard).conclude", Package: core, Run: "TestSettle_StoreDown_CallerGetsOutcome",
		Old: "case settleErr != nil && s.State.Terminal():", New: "case false:",
	},
	{
		Name: "an outcome that could not be stored is withheld", Rule: "rule 9", Parent: "fiber: failed to save response",
		Dir: core, Func: "(*Guard).conclude", Package: core, Run: "TestSettle_StoreDown_CallerGetsOutcome",
		Old: "if err != nil && !errors.Is(err, ErrOutcomeNotStored) {", New: "if err != nil {",
	},
	{
		Name: "the result of a handler without a lease counts as the outcome", Rule: "rule 9", Parent: "Powertools, River",
		Dir: core, Func: "(*Guard).conclude", Package: core, Run: "TestTakeOver_OldOwnerSettles_IsRefused",
		Old: "case settleErr != nil && x.reconciling:", New: "case lost && s.State.Terminal(): case settleErr != nil && x.reconciling:",
	},
	{
		Name: "a panic does not settle the claim", Rule: "rule 9", Parent: "Truxify#4622, Friday#403",
		Dir: core, Func: "(*Guard).call", Package: core, Run: "TestRun_HandlerPanics_IsDoubt|TestRun_HandlerCallsGoexit_IsDoubt",
		Old: "case returned:", New: "case returned || true:",
	},
	{
		Name: "a panic is caught by recover, which misses Goexit", Rule: "rule 9", Parent: "Truxify#4622, Friday#403",
		Dir: core, Func: "(*Guard).call", Package: core, Run: "TestRun_HandlerPanics_IsDoubt|TestRun_HandlerCallsGoexit_IsDoubt",
		Old: `
			defer func() {
				switch {
				case returned:`,
		New: `
			defer func() {
				p := recover()
				switch {
				case returned || p == nil:`,
	},
	{
		Name: "a panic means that nothing happened", Rule: "rule 9",
		Dir: core, Func: "(*Guard).call", Package: core, Run: "TestRun_HandlerPanics_IsDoubt|TestRun_HandlerCallsGoexit_IsDoubt",
		Old: "settle(x, store.Outcome{}, errPanicked)", New: "settle(x, store.Outcome{}, NoEffect(errPanicked))",
	},
	{
		Name: "a cancelled handler had no effect", Rule: "rule 9",
		Dir: core, Func: "(*Guard).settlementOf", Package: core, Run: "TestRun_HandlerReturns_DecidesState",
		Old: "if handlererr.IsNoEffect(err) {", New: "if handlererr.IsNoEffect(err) || errors.Is(err, context.Canceled) {",
	},
	{
		Name: "a final failure is not kept", Rule: "doubt",
		Dir: core, Func: "(*Guard).settlementOf", Package: core, Run: "TestRun_HandlerReturns_DecidesState",
		Old: "ok && f != nil {", New: "ok && f != nil && x.policy == Park {",
	},
	{
		Name: "a call without effect is parked", Rule: "doubt",
		Dir: core, Func: "(*Guard).settlementOf", Package: core, Run: "TestRun_HandlerReturns_DecidesState",
		Old: "if handlererr.IsNoEffect(err) {", New: "if handlererr.IsNoEffect(err) && x.policy != Park {",
	},
	{
		Name: "NoEffect of a step counts for its parent", Rule: "doubt",
		Dir: "internal/handlererr", Func: "IsNoEffect", Package: core, Run: "TestNoEffect_OfStep_DoesNotReleaseParent",
		Old: "case *hiddenNoEffect: return false", New: "case *hiddenNoEffect: return IsNoEffect(e.Err)",
	},
	{
		Name: "one of several errors without effect is enough", Rule: "doubt",
		Dir: "internal/handlererr", Func: "IsNoEffect", Package: core, Run: "TestNoEffect_JoinedWithPlainError_IsDoubt",
		Old: "len(parts) > 0 && !slices.ContainsFunc(parts, func(err error) bool { return !IsNoEffect(err) })", New: "slices.ContainsFunc(parts, IsNoEffect)",
	},
	{
		Name: "a failure that is not kept is found in the error", Rule: "rule 9",
		Dir: core, Func: "(*Guard).conclude", Package: core, Run: "TestFailure_LeaseLost_IsNotInError",
		Old: "x.failure(ErrLeaseLost, textOnly(err))", New: "x.failure(ErrLeaseLost, err)",
	},
	{
		Name: "the handler's error replaces the outcome that Complete stored", Rule: "rule 8",
		Dir: core, Func: "(*Guard).execute", Package: core, Run: "TestComplete_InHandler_StoresAtOnce",
		Old: "if x.isCompleted() {", New: "if x.isCompleted() && err == nil {",
	},
	{
		Name: "an outcome counts as stored before the store says so", Rule: "rule 9", Parent: "M7: CAMEL-24046",
		Dir: core, Func: "(*Execution).complete", Package: core, Run: "TestComplete_StoreFails_IsNotCompleted",
		Old: "return x.failure(ErrOutcomeNotStored, err)",
		New: `
			x.completed.Store(completed)
			return x.failure(ErrOutcomeNotStored, err)`,
	},
}

// Values whose own methods panic.
var unreadables = []Mutant{
	{
		Name: "a panic of the encoder loses the outcome", Rule: "rule 10",
		Dir: core, Func: "encode", Package: core, Run: "TestDo_ResultPanicsWhenEncoded_IsDoneAndNotKept",
		Old: "defer recovered(c, &err)", New: "",
	},
	{
		Name: "a nil pointer in an error is read after the effect", Rule: "rule 9",
		Dir: core, Func: "(*Guard).call", Package: core, Run: "TestRun_ErrorPanicsWhenRead_IsSettled",
		Old: "handlerError(err), true", New: "err, true",
	},
	{
		Name: "a nil pointer in a handler's error ends the consumer's process", Rule: "isolation",
		Dir: consumer, Func: "safely", Package: consumer, Run: "TestServe_ErrorIsNilPointer_MessageIsDeadLetter",
		Old: "return driver.ReadableError(h(ctx, x, m))", New: "_ = driver.ReadableError\nreturn h(ctx, x, m)",
	},
	{
		Name: "a nil pointer in a sink's error ends the publisher's process", Rule: "outbox",
		Dir: outboxDir, Func: "(*session).onAnswer", Package: outboxDir, Run: "TestPublisher_ErrorIsNilPointer",
		Old: "a.err = handlererr.Readable(a.err)", New: "_ = handlererr.Readable",
	},
	{
		Name: "a call takes the outcome of another run for its own", Rule: "rule 9",
		Dir: core, Func: "handlerError", Package: core, Run: "TestRun_HandlerReturnsOutcomeOfAnotherRun",
		Old: "return &notOutcome{err}", New: "return err",
	},
	{
		Name: "a replay of another type is an error without a reason", Rule: "rule 9",
		Dir: core, Func: "Do", Package: core, Run: "TestDo_KeptResultDoesNotDecode_IsNotKeptWithCause",
		Old: "errors.Join(notKept(&call, cause), err)", New: "errors.Join(cause, err)",
	},
}
