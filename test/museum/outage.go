package museum

// Rule 11: an error of the store does not count as an absent record.
var outages = []Mutant{
	{
		Name: "the handler runs when the store does not answer", Rule: "rule 11",
		Dir: core, Func: "(*Guard).Run", Package: core, Run: "TestRun_StoreDown_RunsNothing",
		Old: "c.mayRunUnprotected = g.options.UnprotectedOnOutage", New: "c.mayRunUnprotected = true",
	},
	{
		Name: "each error makes a call run without a record", Rule: "rule 11",
		Dir: core, Func: "(*pendingCall).runsUnprotected", Package: core, Run: "TestUnprotected_NoOutage_DoesNotRun",
		Old: "&& !c.answered && errors.Is(err, ErrUnavailable)", New: "",
	},
	{
		Name: "an answer about one call counts as an outage", Rule: "rule 11",
		Dir: core, Func: "(*pendingCall).noteAnswer", Package: core, Run: "TestUnprotected_StoreRefusesOnlyThisCall_DoesNotRun|TestUnprotected_RefusedAloneThenNoAnswer",
		Old: "store.Affects(err) == store.ExtentCall ||", New: "",
	},
	{
		Name: "a store that is busy counts as an outage", Rule: "rule 11",
		Dir: core, Func: "(*pendingCall).noteAnswer", Package: core, Run: "TestUnprotected_StoreBusy_DoesNotRun",
		Old: "errors.Is(err, store.ErrBusy) ||", New: "",
	},
	{
		Name: "PostgreSQL: a claim whose turn at a locked row does not come counts as an outage", Rule: "rule 11",
		Dir: postgres, Func: "(*Store).Claim", Package: postgres, Run: "TestUnprotected_TurnDoesNotCome_DoesNotRun",
		Old: "err != nil && ctx.Err() != nil && s.lockedRows.Since(hash, start)", New: "s.lockedRows.Since(hash, start.Add(time.Hour))",
	},
	{
		Name: "a store that refuses changes is not asked for the record", Rule: "rule 11",
		Dir: core, Func: "(*pendingCall).claim", Package: core, Run: "TestUnprotected_StoreRefusesChanges",
		Old: "err != nil && c.mayRunUnprotected && !c.answered", New: "false",
	},
	{
		Name: "a call without a record is not run, because the store says that there is none", Rule: "rule 11",
		Dir: core, Func: "(*pendingCall).askForRecord", Package: core, Run: "TestUnprotected_StoreRefusesChanges",
		Old: "!errors.Is(err, store.ErrNotFound)", New: "true || err == nil",
	},
	{
		Name: "a claim that the store holds and does not confirm keeps its own call from running", Rule: "rule 11",
		Dir: core, Func: "(*pendingCall).noteClaim", Package: core, Run: "TestUnprotected_OwnClaimIsThere_Runs",
		Old: "|| r.Owner == owner && r.State == store.Processing", New: "",
	},
	{
		Name: "a record that has expired keeps a new call from running in an outage", Rule: "rule 11",
		Dir: core, Func: "(*pendingCall).noteClaim", Package: core, Run: "TestUnprotected_RecordHasExpired",
		Old: "r.Expired(f.Now) ||", New: "",
	},
	{
		Name: "the claim of another caller counts as the call's own", Rule: "rule 11",
		Dir: core, Func: "(*pendingCall).noteClaim", Package: core, Run: "TestUnprotected_OwnClaimWasTakenOverOrSettled_DoesNotRun",
		Old: "r.Owner == owner && r.State == store.Processing", New: "r.State == store.Processing",
	},
	{
		Name: "a claim that has an outcome counts as unanswered", Rule: "rule 11",
		Dir: core, Func: "(*pendingCall).noteClaim", Package: core, Run: "TestUnprotected_OwnClaimWasTakenOverOrSettled_DoesNotRun",
		Old: "r.Owner == owner && r.State == store.Processing", New: "r.Owner == owner",
	},
	{
		Name: "a token whose record has expired runs in an outage", Rule: "rule 11",
		Dir: core, Func: "(*pendingCall).look", Package: core, Run: "TestUnprotected_RecordHasExpired",
		Old: "return c.noteAnswer(c.guard.store.Get(ctx, c.key))", New: "f, err := c.guard.store.Get(ctx, c.key); c.noteClaim(store.Owner{}, f, err); return f, err",
	},
	{
		Name: "a run without a record that panics is not reported", Rule: "rule 11",
		Dir: core, Func: "(*Guard).runUnprotected", Package: core, Run: "TestObserve_UnprotectedRunPanics_OneEndingEvent",
		Old: "if !returned {", New: "if !returned && x == nil {",
	},
	{
		Name: "a caller that left counts as an outage", Rule: "rule 11",
		Dir: core, Func: "(*pendingCall).unavailable", Package: core, Run: "TestUnprotected_NoOutage_DoesNotRun",
		Old: "case ctx.Err() != nil:", New: "case false:",
	},
	{
		Name: "an outage after an answer counts as one from the start", Rule: "rule 11",
		Dir: core, Func: "(*pendingCall).runsUnprotected", Package: core, Run: "TestUnprotected_LeaseExpiredUnderPark_DoesNotRun|TestUnprotected_RunInProgress_DoesNotRun|TestUnprotected_RecordCorrupt_DoesNotRun",
		Old: "!c.answered &&", New: "",
	},
	{
		Name: "a record that was sent is forgotten when a repeat gets no answer", Rule: "rule 11",
		Dir: core, Func: "(*pendingCall).claim", Package: core, Run: "TestUnprotected_RecordSentThenNoAnswer_DoesNotRun",
		Old: "c.noteClaim(p.Owner, f, err)", New: "c.answered = false; c.noteClaim(p.Owner, f, err)",
	},
	{
		Name: "a reserved record that was sent is forgotten when a repeat gets no answer", Rule: "rule 11",
		Dir: core, Func: "(*pendingCall).look", Package: core, Run: "TestUnprotected_RecordSentThenNoAnswer_DoesNotRun",
		Old: "return c.guard.ask(ctx, func(ctx context.Context) (store.Found, error) { return c.noteAnswer(c.guard.store.Get(ctx, c.key)) })",
		New: "return c.noteAnswer(c.guard.ask(ctx, func(ctx context.Context) (store.Found, error) { return c.guard.store.Get(ctx, c.key) }))",
	},
	{
		Name: "an unreadable record counts as an outage", Rule: "rule 11",
		Dir: core, Func: "(*pendingCall).unavailable", Package: core, Run: "TestUnprotected_NoOutage_DoesNotRun",
		Old: "case errors.Is(cause, store.ErrCorrupt):", New: "case false:",
	},
	{
		Name: "the record of another key is replayed", Rule: "rule 11", Parent: "OpenAI, 20 March 2023",
		Dir: core, Func: "(*pendingCall).decide", Package: core, Run: "TestRun_RecordOfAnotherKey_IsNotReplayed",
		Old: "if r.Key != c.key {", New: "if false {",
	},
	{
		Name: "a claim without Until counts as expired", Rule: "rule 11", Parent: "M4: powertools-python#8386, powertools-typescript#5678",
		Dir: seam, Func: "Decide", Package: seam, Run: "TestDecide_UntilMissing_IsCorrupt",
		Old: "|| r.Until.IsZero() && (held || r.State == Released)", New: "",
	},
	{
		Name: "a run without a record is not reported", Rule: "rule 11",
		Dir: core, Func: "(*Guard).runUnprotected", Package: core, Run: "TestUnprotected_StoreDown_RunsAndReports",
		Old: "g.observeEnd(ctx, x, EventUnprotected, err)", New: "g.observeEnd(ctx, x, EventExecuted, err)",
	},
	{
		Name: "a call under park runs without a record", Rule: "rule 11",
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
		Name: "an invalid state is not corrupt", Rule: "rule 11",
		Dir: seam, Func: "Decide", Package: seam, Run: "TestDecide_RecordContradictsItself_IsCorrupt",
		Old: "if !r.State.Valid() ||", New: "if",
	},
	{
		Name: "an invalid policy is not corrupt", Rule: "rule 11",
		Dir: seam, Func: "Decide", Package: seam, Run: "TestDecide_RecordContradictsItself_IsCorrupt",
		Old: "|| r.Policy > Park", New: "",
	},
	{
		Name: "a running claim may expire", Rule: "rule 11",
		Dir: seam, Func: "Decide", Package: seam, Run: "TestDecide_RecordContradictsItself_IsCorrupt",
		Old: "|| r.Expires.IsZero() != (held || r.State == Unknown)", New: "",
	},
	{
		Name: "an outage counts as an expired token", Rule: "rule 11",
		Dir: core, Func: "(*pendingCall).admit", Package: core, Run: "TestRedeem_StoreDown_IsUnavailable",
		Old: "if errors.Is(err, store.ErrNotFound) {", New: "if err != nil {",
	},
	{
		Name: "a store that hangs holds its callers", Rule: "rule 11",
		Dir: core, Func: "(*Guard).storeContext", Package: core, Run: "TestStoreHangs_EachMethod_ReturnsWithinStoreTimeout",
		Old: `
			limit, _ := g.storeLimit()
			return context.WithTimeout(ctx, limit)`,
		New: "return context.WithCancel(ctx)",
	},
	{
		Name: "an outage is explained by a limit that did not end the wait", Rule: "rule 11",
		Dir: core, Func: "(*Guard).explainLimit", Package: core, Run: "TestStoreHangs_CallsMayRunUnprotected_ErrorNamesTheShorterLimit",
		Old: "limit, name := g.storeLimit()", New: "limit, name := g.options.StoreTimeout, \"StoreTimeout\"",
	},
	{
		Name: "a claim whose answer did not come in time is forgotten", Rule: "rule 11",
		Dir: core, Func: "(*pendingCall).claim", Package: core, Run: "TestStoreTimeout_ClaimWasGranted_IsGivenBack",
		Old: "if c.maybeGranted(&a.found, err, p.Owner) {", New: "if c.maybeGranted(&a.found, err, p.Owner) && ctx.Err() != nil {",
	},
	{
		Name: "a shard that is down is an outage of the store", Rule: "rule 14",
		Dir: shards, Func: "New", Package: shards, Run: "TestShardDown_Error_ConcernsItsKeysOnly",
		Old: "extent := store.ExtentPart", New: "extent := store.ExtentStore",
	},
	{
		Name: "the store's health is that of its first shard", Rule: "rule 14",
		Dir: seam, Func: "PingParts", Package: shards, Run: "TestShardDown_Error_ConcernsItsKeysOnly|TestPing_ShardHangs_OthersAnswer",
		Old: "for range parts {", New: "for range parts[:1] {",
	},
}
