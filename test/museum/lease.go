package museum

// Rule 6: the store's clock decides, and the owner stops in time by its own.
// Rule 7: one loop renews.
var leases = []Mutant{
	{
		Name: "a call judges by the clock of its process", Rule: "rule 6", Parent: "Powertools: Date.now()",
		File: "visit.go", Package: core, Run: "TestTheStoresClockDecides",
		Old: "d := v.decide(r, f.Now)", New: "d := v.decide(r, time.Now())",
	},
	{
		Name: "a reservation is judged by the clock of its process", Rule: "rule 6",
		File: "reserve.go", Package: core, Run: "TestTheStoresClockDecides",
		Old: "d := v.decide(&f.Record, f.Now)", New: "d := v.decide(&f.Record, time.Now())",
	},
	{
		Name: "a transaction judges by the clock of its process", Rule: "rule 6",
		File: "atomic.go", Package: core, Run: "TestInATransactionOthersClaims",
		Old: "d := t.decide(&f.Record, f.Now)", New: "d := t.decide(&f.Record, f.Now.AddDate(1, 0, 0))",
	},
	{
		Name: "a sweep judges by the clock of its process", Rule: "rule 6",
		File: "sweep.go", Package: core, Run: "TestTheStoresClockDecides",
		Old: "d := store.Decide(r, &as, now)", New: "_ = now\n\td := store.Decide(r, &as, time.Now())",
	},
	{
		Name: "a handler is not cancelled when its lease is over", Rule: "rule 6",
		File: "lease.go", Package: core, Run: "TestAHandlerThatNobodyRenews",
		Old: "case now >= k.deadline(h.sent):", New: "case false:",
	},
	{
		Name: "a handler is cancelled only when its lease is over", Rule: "rule 6",
		File: "lease.go", Package: core, Run: "TestAHandlerThatNobodyRenews",
		Old: "return sent.add(k.lease - k.lease/6)", New: "return sent.add(k.lease)",
	},
	{
		Name: "a handler is not told why it is cancelled", Rule: "rule 6",
		File: "lease.go", Package: core, Run: "TestAHandlerThatNobodyRenews",
		Old: "h.run.end(ErrLeaseLost)", New: "h.run.end(nil)",
	},
	{
		Name: "the deadline counts from the answer of the claim", Rule: "rule 6",
		File: "run.go", Package: core, Run: "TestADeadlineCountsFromTheSending",
		Old: "g.keep.add(&x.held, a.sent)", New: "g.keep.add(&x.held, now())",
	},
	{
		Name: "the deadline counts from the answer of the renewal", Rule: "rule 6",
		File: "lease.go", Package: core, Run: "TestADeadlineCountsFromTheSending",
		Old: "h.sent = max(h.sent, sent)", New: "h.sent = now()",
	},
	{
		Name: "a claim is used although its lease is over", Rule: "rule 6",
		File: "visit.go", Package: core, Run: "TestAClaimWhoseAnswerTookLongerThanItsLease",
		Old: "a.granted >= v.g.keep.deadline(a.sent) {", New: "false {",
	},
	{
		Name: "a failed renewal counts as done", Rule: "rule 6",
		File: "lease.go", Package: core, Run: "TestAHandlerThatNobodyRenews",
		Old: "\tif err != nil || len(errs) != len(due) {\n",
		New: "\tif err != nil {\n\t\terrs = make([]error, len(due))\n\t}\n\tif len(errs) != len(due) {\n",
	},
	{
		Name: "the failed renewal of one lease counts as done", Rule: "rule 6",
		File: "lease.go", Package: core, Run: "TestAHandlerThatNobodyRenews",
		Old: "case errs[i] == nil && !h.lost:", New: "case !errors.Is(errs[i], store.ErrLeaseLost) && !h.lost:",
	},
	{
		Name: "a lease that is lost goes on", Rule: "rule 6",
		File: "lease.go", Package: core, Run: "TestALeaseThatTheStoreSaysIsLost",
		Old: "case errors.Is(errs[i], store.ErrLeaseLost) && !h.lost:", New: "case errors.Is(errs[i], store.ErrLeaseLost) && h.lost:",
	},
	{
		Name: "a renewal that hangs holds up the deadlines", Rule: "rule 6",
		File: "lease.go", Package: core, Run: "TestAHandlerIsCancelled",
		Old: "\tfor h := k.held.next; h != &k.held; h = h.next {\n", New: "\tfor h := k.held.next; h != &k.held; h = h.next {\n\t\tif k.renewing != nil {\n\t\t\tbreak\n\t\t}\n",
	},
	{
		Name: "a renewal that hangs is waited for for ever", Rule: "rule 7",
		File: "lease.go", Package: core, Run: "TestARenewalThatHangs",
		Old: "ctx, cancel := context.WithTimeout(ctx, k.lease/6)", New: "ctx, cancel := context.WithCancel(ctx)",
	},
	{
		Name: "a renewal that never returns holds up all that are due later", Rule: "rule 7",
		File: "lease.go", Package: core, Run: "TestALeaseThatCannotBeRenewed",
		Old: "\tcase <-time.After(k.lease/6 + k.tick()):\n", New: "",
	},
	{
		Name: "a renewal that never returns holds up those beside it, again and again", Rule: "rule 7",
		File: "lease.go", Package: core, Run: "TestALeaseThatCannotBeRenewed",
		Old: "h.silent++; h.silent > 1 {", New: "h.silent++; h.silent > 2 {",
	},
	{
		Name: "a lease is never renewed", Rule: "rule 7",
		File: "lease.go", Package: core, Run: "TestALeaseIsRenewed",
		Old: "case now.since(h.sent) >= k.lease/3 && k.renewing == nil:", New: "case false:",
	},
	{
		Name: "a lease is renewed when it is over", Rule: "rule 7",
		File: "lease.go", Package: core, Run: "TestALeaseIsRenewed",
		Old: "now.since(h.sent) >= k.lease/3", New: "now.since(h.sent) >= k.lease",
	},
	{
		Name: "each lease is renewed by a round trip of its own", Rule: "rule 7",
		File: "lease.go", Package: core, Run: "TestRenewalsGoTogether",
		Old: "const renewBatch = 500", New: "const renewBatch = 1",
	},
	{
		Name: "a renewal counts from an old clock", Rule: "rule 6", Parent: "M19: now() in a long transaction",
		File: "store/memstore/memstore.go", Package: mem, Run: "TestConforms$/renew",
		Old: "r.Until, r.Updated = store.Time(store.Micros(now.Add(d))), now", New: "r.Until, r.Updated = r.Created.Add(d), now",
	},
	{
		Name: "anybody may renew", Rule: "rule 4",
		File: "store/memstore/memstore.go", Package: mem, Run: "TestConforms$/renew",
		Old: "if !exists || r.Lease() != lease || r.State != store.Processing {", New: "if !exists || r.Fence != lease.Fence || r.State != store.Processing {",
	},
	{
		Name: "an earlier claim of the same owner may renew", Rule: "rule 4",
		File: "store/memstore/memstore.go", Package: mem, Run: "TestConforms$",
		Old: "if !exists || r.Lease() != lease || r.State != store.Processing {", New: "if !exists || r.Owner != lease.Owner || r.State != store.Processing {",
	},
	{
		Name: "a claim that has ended may be renewed", Rule: "rule 4",
		File: "store/memstore/memstore.go", Package: mem, Run: "TestConforms$/renew",
		Old: "|| r.Lease() != lease || r.State != store.Processing {", New: "|| r.Lease() != lease {",
	},
}
