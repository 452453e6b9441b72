package museum

// A cache answers only what the store would, and shards do not share their fate.
var caches = []Mutant{
	{
		Name: "a cache keeps what is not final", Rule: "rule 8",
		Dir: nearby, Func: "(*Store).cache", Package: nearby, Run: "TestClaim_NotTerminal_AsksStoreEachTime",
		Old: `
			if !replayable(&f.Record, f.Now) {
				return false
			}
			e :=`,
		New: "e :=",
	},
	{
		Name: "a cache judges a record itself", Rule: "rule 1",
		Dir: nearby, Func: "replayable", Package: nearby, Run: "TestClaim_InvalidRecord_IsNotCached",
		Old: "return action == store.Replay || action == store.ReplayFailure", New: "return action != 0 && r.State.Terminal()",
	},
	{
		Name: "of two keys with one hash a cache gives either", Rule: "scope",
		Dir: nearby, Func: "(*shard).find", Package: nearby, Run: "TestConformance_HashesCollide",
		Old: "case e == nil || e.record.Key != *k:", New: "case e == nil:",
	},
	{
		Name: "a cache keeps an answer to another question", Rule: "scope",
		Dir: nearby, Func: "(*Store).Claim", Package: nearby, Run: "TestClaim_StoreAnswersOtherKey_IsNotCached",
		Old: "if err == nil && f.Record.Key == p.Key { s.cache(", New: "if err == nil { s.cache(",
	},
	{
		Name: "a swap leaves the cache as it is", Rule: "rule 3",
		Dir: nearby, Func: "(*Store).Swap", Package: nearby, Run: "TestSwap_CachedKey_IsSeenAtOnce",
		Old: "l.epoch = l.shard.invalidate(l.hash)", New: "l.epoch = l.shard.epoch",
	},
	{
		Name: "an answer that a swap overtook is kept", Rule: "rule 3",
		Dir: nearby, Func: "(*shard).put", Package: nearby, Run: "TestSwap_EarlierAnswerArrivesLate_IsNotCached",
		Old: "if epoch == sh.epoch {", New: "if epoch <= sh.epoch {",
	},
	{
		Name: "a cache outlives the record", Rule: "rule 7",
		Dir: nearby, Func: "(*Store).lifetime", Package: nearby, Run: "TestLifetime_Record_ExpiresBeforeStores",
		Old: "return min(left-drift(left)-s.skew, least+s.maxAge)", New: "return left - left + least + s.maxAge",
	},
	{
		Name: "the longest age of a cache is none", Rule: "rule 8",
		Dir: nearby, Func: "(*Options).withDefaults", Package: nearby, Run: "TestMaxAge_Longest_Works|TestFront_FailedWithLongestCooldown_IsNotAskedAgain",
		Old: "d.MaxAge, d.FrontCooldown = min(d.MaxAge, forever), min(d.FrontCooldown, forever)", New: "",
	},
	{
		Name: "a place that another's sweep has released is lost", Rule: "rule 8",
		Dir: nearby, Func: "replaces", Package: nearby, Run: "TestFront_SweptByOthers_KeyIsFree",
		Old: "case store.Execute, store.TakeOver:", New: "case store.TakeOver:",
	},
	{
		Name: "a cache trusts that clocks agree", Rule: "rule 6",
		Dir: nearby, Func: "(*Store).lifetime", Package: nearby, Run: "TestLifetime_Record_ExpiresBeforeStores",
		Old: "left-drift(left)-s.skew", New: "left",
	},
	{
		Name: "a cache never asks again", Rule: "rule 8",
		Dir: nearby, Func: "(*Store).lifetime", Package: nearby, Run: "TestMaxAge_RecordOfStore_IsAskedForAgain|TestMaxAge_OwnOutcome_IsAskedForAgain",
		Old: "return min(left-drift(left)-s.skew, least+s.maxAge)", New: "return left - drift(left) - s.skew + 0*least",
	},
	{
		Name: "a cache counts a life from the answer", Rule: "rule 6",
		Dir: nearby, Func: "(*Store).entry", Package: nearby, Run: "TestLifetime_SlowStore_CountsFromBeforeAsking",
		Old: "= l.hash, l.asked, s.stamp(), f.Now", New: "= l.hash, s.stamp(), s.stamp(), f.Now",
	},
	{
		Name: "an own outcome expires later than the store's", Rule: "rule 6",
		Dir: nearby, Func: "(*Store).Settle", Package: nearby, Run: "TestLifetime_OwnOutcome_ExpiresNoLaterThanStores",
		Old: "least, _ := first.since(claim.answered)", New: "_, least := s.stamp().since(claim.asked)\n_ = first",
	},
	{
		Name: "a cache counts a settlement from its second sending", Rule: "rule 6",
		Dir: nearby, Func: "(*shard).setSettling", Package: nearby, Run: "TestLifetime_SettledByFirstOfTwoSendings_ExpiresNoLaterThanStores",
		Old: "e.settling == (stamp{})", New: "false",
	},
	{
		Name: "a cache keeps what the store has not confirmed", Rule: "rule 9",
		Dir: nearby, Func: "(*Store).Settle", Package: nearby, Run: "TestSettle_NotConfirmed_IsNotCached",
		Old: "s.st.Settle(ctx, lease, t); err != nil {", New: "s.st.Settle(ctx, lease, t); errors.Is(err, store.ErrLeaseLost) {",
	},
	{
		Name: "what was reckoned is read as the store's", Rule: "rule 3",
		Dir: nearby, Func: "(*shard).find", Package: nearby, Run: "TestClaim_DuplicateOfOwnCall_MakesNoTrip|TestGet_StoreContradictsEstimate_RemovesIt",
		Old: "case exact && e.estimated:", New: "case exact && e.estimated && e.ownClaim:",
	},
	{
		Name: "a process that slept thinks no time has passed", Rule: "rule 6",
		Dir: nearby, Func: "stamp.since", Package: nearby, Run: "TestSince_TwoClocks_LeastAndMost",
		Old: "return max(0, min(mono, wall)), max(mono, wall)", New: "return max(0, min(mono, wall)), mono",
	},
	{
		Name: "a cache has no bound", Rule: "rule 10",
		Dir: nearby, Func: "(*shard).add", Package: nearby, Run: "TestMemory_MaxBytes_IsNotExceeded",
		Old: "for sh.bytes+e.cost > sh.max {", New: "for sh.bytes < 0 {",
	},
	{
		Name: "what is used goes first", Rule: "rule 8",
		Dir: nearby, Func: "(*shard).add", Package: nearby, Run: "TestMemory_UsedRecord_StaysLonger",
		Old: "if oldest.used && !oldest.expired(now) {", New: "if false {",
	},
	{
		Name: "a cache keeps its caller's memory", Rule: "rule 8",
		Dir: nearby, Func: "newEntry", Package: nearby, Run: "TestMemory_CallerChangesOutcome_CacheKeepsItsCopy",
		Old: "*o = o.Clone()", New: "o.Header = o.Clone().Header",
	},
	{
		Name: "a cache answers a caller who has left", Rule: "rule 13",
		Dir: nearby, Func: "(*Store).lookup", Package: nearby, Run: "TestClaim_ContextEnded_IsError",
		Old: `
			if err := ctx.Err(); err != nil {
				return lookup{}, store.Found{}, err
			}`,
		New: "",
	},
	{
		Name: "a front that fails is asked again and again", Rule: "isolation",
		Dir: nearby, Func: "(*front).call", Package: nearby, Run: "TestFront_Failed_IsNotUsedForFrontCooldown",
		Old: "f.cooldownUntil.Store(now.mono + int64(f.cooldown))", New: "f.cooldownUntil.Store(now.mono)",
	},
	{
		Name: "a front is believed by its own clock alone", Rule: "rule 6",
		Dir: nearby, Func: "(*Store).readFront", Package: nearby, Run: "TestFront_RecordExpired_IsMiss",
		Old: "|| !s.now().Before(expires) {", New: "&& s.now().Before(expires) {",
	},
	{
		Name: "a front whose clock went back is believed", Rule: "rule 6",
		Dir: nearby, Func: "parseFront", Package: nearby, Run: "TestFront_RecordExpired_IsMiss",
		Old: "|| v.age < 0 ||", New: "||",
	},
	{
		Name: "a front gives another key's outcome", Rule: "scope",
		Dir: nearby, Func: "parseFront", Package: nearby, Run: "TestFront_ForeignRecord_IsMiss",
		Old: "|| !bytes.Equal(m.KeyDigest, digest[:]) ||", New: "|| bytes.Equal(nil, digest[:]) ||",
	},
	{
		Name: "memory gives the front's records a new life", Rule: "rule 7",
		Dir: nearby, Func: "(*Store).readFront", Package: nearby, Run: "TestFront_RecordCachedInMemory_KeepsItsLife",
		Old: "= store.Time(v.meta.Clock).Add(v.age), life", New: "= store.Time(v.meta.Clock).Add(v.age), v.meta.Life",
	},
	{
		Name: "a slow fill lives longer", Rule: "rule 7",
		Dir: nearby, Func: "(*Store).writeFront", Package: nearby, Run: "TestFront_SlowWrite_DoesNotExtendLife",
		Old: "e.settlement(e.clock.Add(passed), e.life-passed, s.swapLife())", New: "e.settlement(e.clock, e.life, s.swapLife())",
	},
	{
		Name: "a swap leaves the front as it is", Rule: "rule 3",
		Dir: nearby, Func: "(*Store).Swap", Package: nearby, Run: "TestSwap_KeyInFront_RemovesIt",
		Old: "if seen.State.Terminal() {", New: "if false {",
	},
	{
		Name: "a record from before a swap replaces the swap's mark in the front", Rule: "rule 3",
		Dir: nearby, Func: "replaces", Package: nearby, Run: "TestSwap_LateWriteOfEarlierRecord_FrontKeepsItOut|TestSwap_LaterRecordIsGone_FrontKeepsEarlierOut",
		Old: "if fence < fenceFloor(&f.Record) {", New: "if false {",
	},
	{
		Name: "a swap marks only what the front already has", Rule: "rule 3",
		Dir: nearby, Func: "(*Store).markSwapped", Package: nearby, Run: "TestSwap_LateWriteOfEarlierRecord_FrontKeepsItOut",
		Old: "if errors.Is(err, store.ErrNotFound) {",
		New: `
			if errors.Is(err, store.ErrNotFound) {
				return
			}
			if false {`,
	},
	{
		Name: "the mark of a swap lets its own record back in", Rule: "rule 3",
		Dir: nearby, Func: "(*Store).markSwapped", Package: nearby, Run: "TestSwap_LateWriteOfEarlierRecord_FrontKeepsItOut",
		Old: "frontProposal(seen.Key, seen.Fence+1)", New: "frontProposal(seen.Key, seen.Fence)",
	},
	{
		Name: "a record that has expired in the front lets an earlier one in", Rule: "rule 3",
		Dir: nearby, Func: "(*entry).settlement", Package: nearby, Run: "TestSwap_LaterRecordIsGone_FrontKeepsEarlierOut",
		Old: "Keep: max(life, keep)", New: "Keep: life",
	},
	{
		Name: "a sweep of the front forgets what must stay out", Rule: "rule 3",
		Dir: nearby, Func: "(*Store).release", Package: nearby, Run: "TestSwap_LaterRecordIsGone_FrontKeepsEarlierOut",
		Old: "if fenceFloor(r) > 0 {", New: "if fenceFloor(r) > 0 && r.LastError == fenceFloorPrefix {",
	},
	{
		Name: "a sweep recovers what is another's in the front", Rule: "scope",
		Dir: nearby, Func: "(*Store).release", Package: nearby, Run: "TestSweep_Front_DeletesExpiredRecords",
		Old: `
			if !strings.HasSuffix(r.Key.Operation, frontSuffix) {
				return`,
		New: `
			if !strings.HasSuffix(r.Key.Operation, "") {
				return`,
	},
}

var shardings = []Mutant{
	{
		Name: "shards are numbered by their order", Rule: "scope",
		Dir: shards, Func: "New", Package: shards, Run: "TestShardOf_OrderOfShards_DoesNotMatter",
		Old: "slices.SortFunc(s.shards, func(a, b shard) int { return cmp.Compare(a.name, b.name) })",
		New: `
			slices.SortFunc(s.shards, func(a, b shard) int { return 0 * cmp.Compare(a.name, b.name) })
			s.shards[0].seed = 0`,
	},
	{
		Name: "one more shard moves every key", Rule: "scope",
		Dir: shards, Func: "(*Store).shardOf", Package: shards, Run: "TestShardOf_ShardAdded_MovesOnlyItsShare",
		Old: "best, highest := 0, uint64(0)", New: "best, highest := int(h%uint64(len(s.shards))), ^uint64(0)",
	},
	{
		Name: "a release moves keys", Rule: "durable",
		Dir: shards, Func: "(*Store).shardOf", Package: shards, Run: "TestShardOf_KnownKeys_NeverChanges",
		Old: "h := binary.BigEndian.Uint64(d[:])", New: "h := binary.BigEndian.Uint64(d[8:])",
	},
	{
		Name: "an error does not name the shard", Rule: "rule 11",
		Dir: shards, Func: "(*shard).wrap", Package: shards, Run: "TestShardDown_OnlyItsKeys_Fail",
		Old: `fmt.Errorf("shardstore: shard %q: %w", sh.name, err)`, New: `fmt.Errorf("shardstore: %w", err)`,
	},
	{
		Name: "what can be found behind shards is one of them", Rule: "scope",
		Dir: shards, Func: "(*Store).Unwrap", Package: shards, Run: "TestUnwrap_OptionalInterfaces_AreThoseOfShards",
		Old: "{ return s.optional }", New: "{ return s.shards[0].st }",
	},
	{
		Name: "a shard that hangs holds up all renewals", Rule: "isolation",
		Dir: shards, Func: "next", Package: shards, Run: "TestRenew_ShardHangs_OthersAreRenewed|TestGuard_ShardHangs_HandlerKeepsLease",
		Old: `
			case <-ctx.Done():
			}
			select {`,
		New: `
			case <-make(chan struct{}):
			}
			select {`,
	},
	{
		Name: "a shard that is down fails all renewals", Rule: "isolation",
		Dir: shards, Func: "(*Store).Renew", Package: shards, Run: "TestShardDown_OnlyItsKeys_Fail",
		Old: "if errs[at] = answers[n].err; errs[at] == nil {",
		New: `
			if answers[n].err != nil {
				return nil, answers[n].err
			}
			if errs[at] = answers[n].err; errs[at] == nil {`,
	},
	{
		Name: "a step of a sweep loses what was handed back", Rule: "rule 7",
		Dir: seam, Func: "SweepParts", Package: shards, Run: "TestSweep_Step_ReturnsLapsedOfOneShard",
		Old: `p.inner != "" || len(all.Lapsed) > 0 || all`, New: `p.inner != "" || all`,
	},
	{
		Name: "a shard that fails ends the sweep", Rule: "isolation",
		Dir: seam, Func: "SweepParts", Package: shards, Run: "TestSweep_ShardFails_OthersAreSwept|TestSweep_ShardFailsOnce_IsSweptInSamePass",
		Old: "case ctx.Err() == nil && !p.again:", New: "case ctx.Err() == nil && p.again && false:",
	},
	{
		Name: "a shard that fails passes for swept", Rule: "rule 11",
		Dir: seam, Func: "(*place).next", Package: shards, Run: "TestSweep_ShardFails_OthersAreSwept|TestSweep_ShardFailsOnce_IsSweptInSamePass",
		Old: "if len(p.failed) == 0 {", New: "if len(p.failed) >= 0 {",
	},
	{
		Name: "a list without a shard passes for whole", Rule: "rule 11",
		Dir: shards, Func: "lister.List", Package: shards, Run: "TestList_ShardDown_YieldsOthersThenError",
		Old: "err != nil { yield", New: "err != nil && len(errs) > len(l.listers) { yield",
	},
	{
		Name: "a store that cannot be searched has no records", Rule: "rule 11",
		Dir: shards, Func: "(*Store).abilities", Package: shards, Run: "TestUnwrap_OptionalInterfaces_AreThoseOfShards",
		Old: "each[store.Lister](s); all {", New: "each[store.Lister](s); all || listers != nil {",
	},
	{
		Name: "a set of shards that was changed goes unseen", Rule: "scope",
		Dir: shards, Func: "checker.strays", Package: shards, Run: "TestCheck_RecordOnWrongShard_IsNamed",
		Old: "if seen++; c.shardOf(f.Record.Key) != i {", New: "if seen++; c.shardOf(f.Record.Key) < 0 {",
	},
	{
		Name: "a record that cannot be read hides the rest of its shard", Rule: "rule 11",
		Dir: shards, Func: "lister.list", Package: shards, Run: "TestList_UnreadableRecord_Continues",
		Old: "if err != nil && !errors.Is(err, store.ErrCorrupt) {", New: "if err != nil {",
	},
	{
		Name: "a shard that hangs hides the records of the others", Rule: "isolation",
		Dir: shards, Func: "lister.list", Package: shards, Run: "TestList_ShardHangs_YieldsOthersThenError",
		Old: "store.PartContext(ctx)", New: "context.WithCancel(ctx)",
	},
	{
		Name: "a shard that hangs delays the sagas of the others", Rule: "saga 6",
		Dir: shards, Func: "timers.DueTimers", Package: shards, Run: "TestDueTimers_ShardHangs_SagasOfOthersRun",
		Old: "store.PartContext(ctx)", New: "context.WithCancel(ctx)",
	},
	{
		Name: "a front that hangs costs a sweep the lapsed records of the store", Rule: "rule 7",
		Dir: nearby, Func: "(*Store).Sweep", Package: nearby, Run: "TestSweep_FrontHangs_LapsedRecordsOfStoreAreReturned",
		Old: "store.PartContext(ctx)", New: "context.WithCancel(ctx)",
	},
}
