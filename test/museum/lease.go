package museum

// Rule 6: the store's clock decides, and the owner stops in time by its own clock.
// Rule 7: one timer renews all leases.
var leases = []Mutant{
	{
		Name: "a call judges by the clock of its process", Rule: "rule 6", Parent: "Powertools: Date.now()",
		Dir: core, Func: "(*pendingCall).admit", Package: core, Run: "TestTakeOver_ProcessClockWrong_StoreClockDecides",
		Old: "d := c.decide(r, f.Now)", New: "d := c.decide(r, time.Now())",
	},
	{
		Name: "a reservation is judged by the clock of its process", Rule: "rule 6",
		Dir: core, Func: "(*Guard).Reserve", Package: core, Run: "TestTakeOver_ProcessClockWrong_StoreClockDecides",
		Old: "d := c.decide(&f.Record, f.Now)", New: "d := c.decide(&f.Record, f.Now.AddDate(1, 0, 0))",
	},
	{
		Name: "a transaction judges by the clock of its process", Rule: "rule 6",
		Dir: core, Func: "(*txCall).claimInTx", Package: core, Run: "TestRunIn_KeyClaimedByAnother_ObeysDecide",
		Old: "d := t.decide(r, f.Now)", New: "d := t.decide(r, f.Now.AddDate(1, 0, 0))",
	},
	{
		Name: "a sweep judges by the clock of its process", Rule: "rule 6",
		Dir: "sweep", Func: "(*sweeper).recover", Package: "sweep", Run: "TestOnce_ProcessClockWrong",
		Old: "d := store.Decide(r, &store.Call{Policy: r.Policy, Fingerprint: r.Fingerprint}, now)",
		New: "_ = now; d := store.Decide(r, &store.Call{Policy: r.Policy, Fingerprint: r.Fingerprint}, time.Now())",
	},
	{
		Name: "a handler is not cancelled when its lease expires", Rule: "rule 6",
		Dir: core, Func: "(*heartbeat).check", Package: core, Run: "TestLease_NotRenewed_HandlerIsCancelledBeforeExpiry",
		Old: "case h.isOver(r.sent, now):", New: "case false:",
	},
	{
		Name: "a handler is cancelled when its lease expires and not before", Rule: "rule 6",
		Dir: core, Func: "(*heartbeat).isOver", Package: core, Run: "TestLease_NotRenewed_HandlerIsCancelledBeforeExpiry",
		Old: "h.lease-h.lease/6", New: "h.lease",
	},
	{
		Name: "the context of a cancelled handler has no cause", Rule: "rule 6",
		Dir: core, Func: "(*heartbeat).lose", Package: core, Run: "TestLease_NotRenewed_HandlerIsCancelledBeforeExpiry",
		Old: "r.cancel(ErrLeaseLost)", New: "r.cancel(nil)",
	},
	{
		Name: "the deadline counts from the answer of the claim", Rule: "rule 6",
		Dir: core, Func: "(*Guard).execute", Package: core, Run: "TestLease_AnswerIsLate_DeadlineCountsFromSending",
		Old: "g.heartbeat.add(x.renewal, a.sent)", New: "g.heartbeat.add(x.renewal, now())",
	},
	{
		Name: "the deadline counts from the answer of the renewal", Rule: "rule 6",
		Dir: core, Func: "(*heartbeat).renewBatch", Package: core, Run: "TestLease_AnswerIsLate_DeadlineCountsFromSending",
		Old: "r.sent = sent", New: "r.sent = now()",
	},
	{
		Name: "a lease does not end while the machine is suspended", Rule: "rule 6",
		Dir: core, Func: "instant.mostSince", Package: core, Run: "TestLease_MachineWasSuspended_IsLost",
		Old: "max(i.mono-j.mono, i.wall-j.wall)", New: "i.mono-j.mono",
	},
	{
		Name: "a wall clock that is set back prolongs a lease", Rule: "rule 6",
		Dir: core, Func: "instant.mostSince", Package: core, Run: "TestLease_WallClockIsSetBack_IsLostAllTheSame",
		Old: "max(i.mono-j.mono, i.wall-j.wall)", New: "i.wall-j.wall",
	},
	{
		Name: "a handler starts after the lease of its claim has expired", Rule: "rule 6",
		Dir: core, Func: "(*pendingCall).grant", Package: core, Run: "TestClaim_AnswerLaterThanLease_IsGivenBack",
		Old: "c.guard.heartbeat.isOver(a.sent, a.granted)", New: "false",
	},
	{
		Name: "a failed renewal counts as done", Rule: "rule 6",
		Dir: core, Func: "(*heartbeat).renewBatch", Package: core, Run: "TestLease_NotRenewed_HandlerIsCancelledBeforeExpiry",
		Old: "if err != nil || len(errs) != len(batch) {",
		New: "if err != nil { errs = make([]error, len(batch)) }; if len(errs) != len(batch) {",
	},
	{
		Name: "the failed renewal of one lease counts as done", Rule: "rule 6",
		Dir: core, Func: "(*heartbeat).renewBatch", Package: core, Run: "TestLease_NotRenewed_HandlerIsCancelledBeforeExpiry",
		Old: "case errs[i] == nil && !r.lost:", New: "case !errors.Is(errs[i], store.ErrLeaseLost) && !r.lost:",
	},
	{
		Name: "a handler goes on after the store has reported its lease lost", Rule: "rule 6",
		Dir: core, Func: "(*heartbeat).renewBatch", Package: core, Run: "TestLease_StoreReportsLost_HandlerIsCancelled",
		Old: "case errors.Is(errs[i], store.ErrLeaseLost) && !r.lost && !r.settling:", New: "case errors.Is(errs[i], store.ErrLeaseLost) && r.lost:",
	},
	{
		Name: "a completed call is cancelled by the answer to its renewal", Rule: "rule 6",
		Dir: core, Func: "(*heartbeat).renewBatch", Package: core, Run: "TestComplete_RenewalFindsRecordCompleted_HandlerGoesOn",
		Old: "&& !r.settling:", New: ":",
	},
	{
		Name: "a handler goes on after its settlement found the lease lost", Rule: "rule 6",
		Dir: core, Func: "(*Guard).settle", Package: core, Run: "TestComplete_RenewalFindsTakeOver_HandlerIsCancelled",
		Old: "g.heartbeat.setSettling(x.renewal, false)", New: "",
	},
	{
		Name: "a renewal that hangs delays the deadlines", Rule: "rule 6",
		Dir: core, Func: "(*heartbeat).check", Package: core, Run: "TestLease_RenewalHangs_HandlerIsCancelledInTime|TestLease_StoreFailsOrHangs_HandlerIsCancelledBeforeExpiry",
		Old: "for r := h.active.next; r != &h.active; r = r.next {",
		New: "for r := h.active.next; r != &h.active; r = r.next { if h.stopRenewing != nil { break };",
	},
	{
		Name: "a renewal has no timeout", Rule: "rule 7",
		Dir: core, Func: "(*heartbeat).renewBatch", Package: core, Run: "TestRenewal_Hangs_IsGivenUp",
		Old: "context.WithTimeout(ctx, h.renewTimeout())", New: "context.WithCancel(ctx)",
	},
	{
		Name: "a renewal that never returns delays all later renewals", Rule: "rule 7",
		Dir: core, Func: "(*heartbeat).renew", Package: core, Run: "TestRenewal_OneLeaseHangs_OthersAreRenewed",
		Old: "case <-time.After(h.renewTimeout() + h.interval()/4):", New: "",
	},
	{
		Name: "a lease whose renewal hangs delays the others of its batch again", Rule: "rule 7",
		Dir: core, Func: "(*heartbeat).check", Package: core, Run: "TestRenewal_OneLeaseHangs_OthersAreRenewed",
		Old: "r.unanswered++; r.unanswered > 1", New: "r.unanswered++; r.unanswered > 2",
	},
	{
		Name: "a lease is never renewed", Rule: "rule 7",
		Dir: core, Func: "(*heartbeat).check", Package: core, Run: "TestLease_LongHandler_IsRenewed",
		Old: "case now.mostSince(r.sent) >= h.lease/3 && h.stopRenewing == nil:", New: "case false:",
	},
	{
		Name: "a lease is renewed when it has expired", Rule: "rule 7",
		Dir: core, Func: "(*heartbeat).check", Package: core, Run: "TestLease_LongHandler_IsRenewed",
		Old: "now.mostSince(r.sent) >= h.lease/3", New: "now.mostSince(r.sent) >= h.lease",
	},
	{
		Name: "each lease is renewed in its own round trip", Rule: "rule 7",
		Dir: core, Func: "const maxRenewals", Package: core, Run: "TestRenewal_ManyHandlers_OneRoundTrip",
		Old: "500", New: "1",
	},
	{
		Name: "a renewal counts from an old clock", Rule: "rule 6", Parent: "M19: now() in a long transaction",
		Dir: mem, Func: "(*Store).Renew", Package: mem, Run: "TestConformance$/renew",
		Old: "r.Until, r.Updated = store.Time(store.Micros(now.Add(d))), now", New: "r.Until, r.Updated = r.Created.Add(d), now",
	},
	{
		Name: "anybody may renew", Rule: "rule 4",
		Dir: mem, Func: "(*Store).Renew", Package: mem, Run: "TestConformance$/renew",
		Old: "if !exists || r.Lease() != lease || r.State != store.Processing {",
		New: "if !exists || r.Fence != lease.Fence || r.State != store.Processing {",
	},
	{
		Name: "an earlier claim of the same owner may renew", Rule: "rule 4",
		Dir: mem, Func: "(*Store).Renew", Package: mem, Run: "TestConformance$",
		Old: "if !exists || r.Lease() != lease || r.State != store.Processing {",
		New: "if !exists || r.Owner != lease.Owner || r.State != store.Processing {",
	},
	{
		Name: "a claim that has ended may be renewed", Rule: "rule 4",
		Dir: mem, Func: "(*Store).Renew", Package: mem, Run: "TestConformance$/renew",
		Old: "|| r.Lease() != lease || r.State != store.Processing {", New: "|| r.Lease() != lease {",
	},
}
