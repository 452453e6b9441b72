package museum

// DynamoDB: each change is a conditional write. Parents with M are faults of rivals.
var dynamos = []Mutant{
	{
		Name: "DynamoDB: a claim writes over the item that is there", Rule: "rule 2",
		Dir: dynamo, Func: "(*Store).claim", Package: dynamo, Run: "TestClaim_64CallersRace_OneWinsEachRound",
		Old: "condition := e.equal(s.opt.PartitionKey, nil)", New: `condition := e.equal("absent", nil)`,
	},
	{
		Name: "DynamoDB: an own claim is somebody else's", Rule: "rule 2", Parent: "M10: own claim read as conflict (AWS SDK #2667)",
		Dir: dynamo, Func: "(*Store).existing", Package: dynamo, Run: "TestChange_ReplyLost_SentAgainIsRecognized",
		Old: "return s.found(&r, p, now), nil", New: "return store.Found{Record: r, Now: now}, nil",
	},
	{
		Name: "DynamoDB: a settlement compares no owner", Rule: "rule 4", Parent: "M2: completion without owner (Powertools)",
		Dir: dynamo, Func: "(*Store).settle", Package: dynamo, Run: "TestConformance$/settle",
		Old: "e.allEqual(leaseItem(l), leaseAttributes...)", New: "e.allEqual(leaseItem(l), attrFence, attrState)",
	},
	{
		Name: "DynamoDB: a settlement compares no fence", Rule: "rule 4", Parent: "M2: completion without fence (Powertools)",
		Dir: dynamo, Func: "(*Store).settle", Package: dynamo, Run: "TestConformance$/settle",
		Old: "e.allEqual(leaseItem(l), leaseAttributes...)", New: "e.allEqual(leaseItem(l), attrOwner, attrState)",
	},
	{
		Name: "DynamoDB: a settlement makes the item that has gone", Rule: "rule 4", Parent: "completion that re-creates an expired item (Powertools)",
		Dir: dynamo, Func: "(*Store).settle", Package: dynamo, Run: "TestConformance$/settle",
		Old: "e.allEqual(leaseItem(l), leaseAttributes...)", New: `e.equal(attrOwner, nil) + " OR " + e.allEqual(leaseItem(l), leaseAttributes...)`,
	},
	{
		Name: "DynamoDB: a swap compares no state", Rule: "rule 3", Parent: "M5: orphan recovery without CAS (#5714)",
		Dir: dynamo, Func: "(*Store).swap", Package: dynamo, Run: "TestConformance$/swap",
		Old: "e.allEqual(seenItem(seen), seenAttributes...)", New: "e.allEqual(seenItem(seen), attrOwner, attrFence, attrUntil, attrExpires)",
	},
	{
		Name: "DynamoDB: a record expires when the time to live may delete it", Rule: "rule 8", Parent: "expiry judged by TTL alone",
		Dir: dynamo, Func: "(*Store).encode", Package: dynamo, Run: "TestExpiry_ItemStillThere_JudgedOnRead",
		Old: "attrExpires: r.Expires", New: "attrExpires: r.Expires.Add(linger)",
	},
	{
		Name: "DynamoDB: a sweep deletes what it has read before", Rule: "rule 7", Parent: "unconditional delete (Powertools)",
		Dir: dynamo, Func: "(*Store).deleteRecord", Package: dynamo, Run: "TestSweep_RecordRestartedBeforeDeletion_Stays",
		Old: "e.allEqual(was, seenAttributes...)", New: "e.equal(s.opt.PartitionKey, was[s.opt.PartitionKey])",
	},
	{
		Name: "DynamoDB: a sweep reads a large partition of the application again and again", Rule: "rule 7",
		Dir: dynamo, Func: "(*sweeper).tablePage", Package: dynamo, Run: "TestSweep_LargePartitionOfApplication_PassEnds",
		Old: "sort: d.text(s.opt.SortKey)", New: "sort: sortValue",
	},
	{
		Name: "DynamoDB: a store sweeps the records of a longer prefix", Rule: "scope",
		Dir: dynamo, Func: "(*Store).isOwn", Package: dynamo, Run: "TestPrefix_BeginsAnother_StoresSeeNothingOfEachOther",
		Old: "== len(s.opt.Prefix)", New: ">= len(s.opt.Prefix)",
	},
	{
		Name: "DynamoDB: a key that the time to live removed begins with a low fence", Rule: "rule 5",
		Dir: dynamo, Func: "(*Store).claim", Package: dynamo, Run: "TestFence_RemovedByTimeToLive_Grows",
		Old: "r := p.Insert(now, s.sweptFence.Load())", New: "r := p.Insert(now, s.sweptFence.Load())\nr.Fence = s.sweptFence.Load() + 1",
	},
	{
		Name: "DynamoDB: a record in doubt keeps the time to live that it had", Rule: "doubt",
		Dir: dynamo, Func: "(*Store).written", Package: dynamo, Run: "TestTimeToLive_RecordInFlightOrInDoubt_HasNone",
		Old: "append([]string{s.opt.TTL}, settleAttributes...)", New: "append([]string(nil), settleAttributes...)",
	},
	{
		Name: "DynamoDB: a clock that is ahead takes leases over", Rule: "rule 6",
		Dir: dynamo, Func: "(*clock).decisionTime", Package: dynamo, Run: "TestLease_ClocksDiffer_BoundIsMaxSkew/at_the_bound",
		Old: "return now.Add(-c.skew)", New: "return now",
	},
	{
		Name: "DynamoDB: a clock that is wrong grants claims", Rule: "rule 6",
		Dir: dynamo, Func: "(*clock).check", Package: dynamo, Run: "TestClaim_ClockWrong_RefusedUntilItIsRight",
		Old: "wrong > c.skew/2", New: "wrong > 24*time.Hour",
	},
	{
		Name: "DynamoDB: a wrong clock looks like an outage to calls that have a result", Rule: "rule 11",
		Dir: dynamo, Func: "(*Store).refusedClaim", Package: dynamo, Run: "TestClaim_ClockWrong_RefusedUntilItIsRight",
		Old: "r.Owner != p.Owner", New: "false",
	},
	{
		Name: "DynamoDB: records are judged by a clock that is known to be ahead", Rule: "rule 6",
		Dir: dynamo, Func: "(*clock).decisionTime", Package: dynamo, Run: "TestJudging_ClockAhead_IsNotAheadOfServer",
		Old: "now = c.trusted(now)", New: "",
	},
	{
		Name: "DynamoDB: a step of the clock after the last reply is not seen", Rule: "rule 6",
		Dir: dynamo, Func: "(*clock).trusted", Package: dynamo, Run: "TestTrusted_ClockSteps_IsNotAheadOfServer",
		Old: "time.Since(last.sent)", New: "now.Sub(last.sent.Round(0))",
	},
	{
		Name: "DynamoDB: a transaction claims by a clock that its read has shown to be wrong", Rule: "rule 6",
		Dir: dynamo, Func: "(*Tx).Claim", Package: dynamo, Run: "TestTx_ClockAheadShownByItsRead_Refused",
		Old: "if err := t.store.clock.checkFor(p.State); err != nil {", New: "if err := t.store.clock.checkFor(p.State); err != nil && false {",
	},
	{
		Name: "DynamoDB: a request that was throttled got no answer if its time ends", Rule: "rule 11",
		Dir: dynamo, Func: "keepRefusals", Package: dynamo, Run: "TestUnprotected_KeyThrottled_DoesNotRun",
		Old: "refusal.Store(&ErrThrottled)", New: "refusal.Store(nil)",
	},
	{
		Name: "DynamoDB: a clock that no reply has shown is right", Rule: "rule 6",
		Dir: dynamo, Func: "(*Store).checkClock", Package: dynamo, Run: "TestClaim_FirstOfProcessWithWrongClock_IsNotSent",
		Old: "!s.clock.hasReply.Load()", New: "false",
	},
	{
		Name: "DynamoDB: a sweep by a clock that is wrong deletes what is to be kept", Rule: "rule 6",
		Dir: dynamo, Func: "(*Store).sweep", Package: dynamo, Run: "TestClaim_ClockWrong_RefusedUntilItIsRight",
		Old: "if err := s.checkClock(ctx, store.Processing); err != nil {", New: "if err := s.checkClock(ctx, store.Processing); err != nil && false {",
	},
	{
		Name: "DynamoDB: an outcome expires by a clock that is known to be wrong", Rule: "rule 8",
		Dir: dynamo, Func: "(*Store).settleTime", Package: dynamo, Run: "TestSettle_ClockWrong_IsDatedByServer",
		Old: "-time.Duration(s.clock.wrong.Load())", New: "0*time.Duration(s.clock.wrong.Load())",
	},
	{
		Name: "DynamoDB: an outcome expires by how wrong the clock was", Rule: "rule 8",
		Dir: dynamo, Func: "(*Store).settleTime", Package: dynamo, Run: "TestSettle_ClockWrong_IsDatedByServer",
		Old: "s.checkClock(ctx, store.Processing) != nil", New: "s.clock.check() != nil && ctx != nil",
	},
	{
		Name: "DynamoDB: a renewal that arrives late shortens the lease", Rule: "rule 7",
		Dir: dynamo, Func: "(*Store).renew", Package: dynamo, Run: "TestRenew_ArrivesLate_DoesNotShortenLease",
		Old: "OR %s < %s)", New: "OR %s <> %s)",
	},
	{
		Name: "DynamoDB: a read may be old", Rule: "rule 8",
		Dir: dynamo, Func: "(*Store).read", Package: dynamo, Run: "TestReads_EachMethod_AreConsistent",
		Old: "consistent := true", New: "consistent := false",
	},
	{
		Name: "DynamoDB: a step is recorded over another", Rule: "steps",
		Dir: dynamo, Func: "(*Store).stepUpdate", Package: dynamo, Run: "TestConformance$/journal",
		Old: `condition += " AND " + e.equal(attribute, nil)`, New: `condition += ""`,
	},
	{
		Name: "DynamoDB: a new life has the steps of the old one", Rule: "steps",
		Dir: dynamo, Func: "(*Store).swap", Package: dynamo, Run: "TestConformance$/journal",
		Old: "if p.Restart {", New: "if false {",
	},
	{
		Name: "DynamoDB: a record with the tombstone of a step cannot be received", Rule: "steps",
		Dir: dynamo, Func: "addSteps", Package: dynamo, Run: "TestAddSteps_TombstoneBeyondOthersLimit_Fits",
		Old: "max(limit, stepLimit(step))", New: "max(limit, maxStepBytes)",
	},
	{
		Name: "DynamoDB: a settlement that is too large is an outage", Rule: "rule 10",
		Dir: dynamo, Func: "classify", Package: dynamo, Run: "TestSettle_LargeOutcome_CompressedOrRefused",
		Old: "aboutSize(api.ErrorMessage())", New: "false",
	},
	{
		Name: "DynamoDB: a transaction writes over the record of another", Rule: "atomic",
		Dir: dynamo, Func: "(*Store).put", Package: dynamo, Run: "TestAtomic_RequestsLostLateAndDoubled_OneEffect",
		Old: "condition := x.equal(s.opt.PartitionKey, nil)", New: `condition := x.equal("absent", nil)`,
	},
	{
		Name: "DynamoDB: a handler's transaction outlives the handler", Rule: "atomic",
		Dir: dynamo, Func: "(*Tx).end", Package: dynamo, Run: "TestAtomic_HandlersTransaction_EndsWithHandler",
		Old: "t.returned = true", New: "t.returned = false",
	},
	{
		Name: "DynamoDB: a transaction commits the writes of a handler that failed", Rule: "atomic",
		Dir: dynamo, Func: "(*Tx).Nested", Package: dynamo, Run: "TestAtomic_HandlerFails_WritesNothing",
		Old: "t.entries, t.order, t.writes = saved, t.order[:order:order], t.writes[:writes:writes]", New: "t.entries, t.order, _ = saved, t.order[:order:order], writes",
	},
	{
		Name: "DynamoDB: a transaction in doubt says that nothing was written", Rule: "atomic",
		Dir: dynamo, Func: "(*Store).explain", Package: dynamo, Run: "TestCommit_InProgress_IsInDoubtAndNoConflict",
		Old: "if errors.Is(err, semel.ErrInDoubt) {", New: "if false {",
	},
	{
		Name: "DynamoDB: a refusal of the second sending speaks for the first", Rule: "atomic",
		Dir: dynamo, Func: "(*Tx).commit", Package: dynamo, Run: "TestCommit_SecondSendingRefused_IsNoRefusalOfFirst",
		Old: "sent <= 1 &&", New: "",
	},
	{
		Name: "DynamoDB: a write of the handler that is refused is an outage of the store", Rule: "rule 13",
		Dir: dynamo, Func: "(*Atomic).Run", Package: dynamo, Run: "TestAtomic_WriteRefused_WritesNothingAndSaysWhy",
		Old: "if errors.Is(refused, ErrWriteRefused) ||", New: "if errors.Is(refused, ErrConflict) ||",
	},
	{
		Name: "DynamoDB: a renewal by a clock that was set back ends the lease", Rule: "rule 6",
		Dir: dynamo, Func: "(*Store).checkClock", Package: dynamo, Run: "TestRenew_ClockWasSet_LeaseIsNotChanged",
		Old: "|| s.clock.stepped()", New: "",
	},
	{
		Name: "DynamoDB: a handler counts on a renewal whose reply shows a wrong clock", Rule: "rule 6",
		Dir: dynamo, Func: "(*Store).Renew", Package: dynamo, Run: "TestRenew_ReplyShowsWrongClock_IsRefused",
		Old: "if err := s.clock.check(); err != nil {", New: "if err := s.clock.check(); err != nil && false {",
	},
	{
		Name: "DynamoDB: a process does not start because another one has migrated", Rule: "settings",
		Dir: dynamo, Func: "(*Store).migrate", Package: dynamo, Run: "TestMigrate_AnotherProcessWasFaster",
		Old: "if isValidation(err) {", New: "if false {",
	},
}
