package museum

// A cache answers only what the store would, and shards do not share their fate.
var caches = []Mutant{
	{
		Name: "a cache keeps what is not final", Rule: "rule 8",
		Dir: nearby, Func: "(*Store).fill", Package: nearby, Run: "TestWhatIsNotTerminal|TestConformance$",
		Old: `
			if !worth(&f.Record, f.Now) {
				return false
			}
			e :=`,
		New: "e :=",
	},
	{
		Name: "a cache judges a record itself", Rule: "rule 1",
		Dir: nearby, Func: "worth", Package: nearby, Run: "TestARecordWithoutSense",
		Old: "return a == store.Replay || a == store.ReplayFailure", New: "return a != 0 && r.State.Terminal()",
	},
	{
		Name: "of two keys with one hash a cache gives either", Rule: "scope",
		Dir: nearby, Func: "(*shard).find", Package: nearby, Run: "TestConformanceWhereHashesCollide",
		Old: "case e == nil || e.record.Key != *k:", New: "case e == nil:",
	},
	{
		Name: "a cache keeps an answer to another question", Rule: "scope",
		Dir: nearby, Func: "(*Store).Claim", Package: nearby, Run: "TestAnAnswerForAnotherKey",
		Old: `
			if err == nil && f.Record.Key == p.Key {
				s.fill(`,
		New: `
			if err == nil {
				s.fill(`,
	},
	{
		Name: "a swap leaves the cache as it is", Rule: "rule 3",
		Dir: nearby, Func: "(*Store).Swap", Package: nearby, Run: "TestASwapIsSeenAtOnce",
		Old: "q.epoch = q.sh.drop(q.h)", New: "q.epoch = q.sh.epoch",
	},
	{
		Name: "an answer that a swap overtook is kept", Rule: "rule 3",
		Dir: nearby, Func: "(*shard).put", Package: nearby, Run: "TestAnAnswerOfBeforeASwap",
		Old: "if epoch == sh.epoch {", New: "if epoch <= sh.epoch {",
	},
	{
		Name: "a cache outlives the record", Rule: "rule 7",
		Dir: nearby, Func: "(*Store).lifetime", Package: nearby, Run: "TestARecordIsOverHere",
		Old: "return min(left-drift(left)-s.skew, least+s.maxAge)", New: "return left - left + least + s.maxAge",
	},
	{
		Name: "the longest age of a cache is none", Rule: "rule 8",
		Dir: nearby, Func: "(*Options).withDefaults", Package: nearby, Run: "TestTheLongestAge|TestAFrontThatFailedIsLeftAloneForEver",
		Old: "d.MaxAge, d.FrontRest = min(d.MaxAge, forever), min(d.FrontRest, forever)", New: "",
	},
	{
		Name: "a shelf that another's sweep has failed is lost", Rule: "rule 8",
		Dir: nearby, Func: "(*Store).replaces", Package: nearby, Run: "TestAShelfThatAnothersSweep",
		Old: "case store.Execute, store.TakeOver, store.ReplayFailure:", New: "case store.Execute, store.TakeOver:",
	},
	{
		Name: "a cache trusts that clocks agree", Rule: "rule 6",
		Dir: nearby, Func: "(*Store).lifetime", Package: nearby, Run: "TestARecordIsOverHere",
		Old: "left-drift(left)-s.skew", New: "left",
	},
	{
		Name: "a cache never asks again", Rule: "rule 8",
		Dir: nearby, Func: "(*Store).lifetime", Package: nearby, Run: "TestTheAge",
		Old: "return min(left-drift(left)-s.skew, least+s.maxAge)", New: "return left - drift(left) - s.skew + 0*least",
	},
	{
		Name: "a cache counts a life from the answer", Rule: "rule 6",
		Dir: nearby, Func: "(*Store).entry", Package: nearby, Run: "TestALifeIsCounted",
		Old: "= q.h, q.asked, s.stamp(), f.Now", New: "= q.h, s.stamp(), s.stamp(), f.Now",
	},
	{
		Name: "an own outcome expires later than the store's", Rule: "rule 6",
		Dir: nearby, Func: "(*Store).settled", Package: nearby, Run: "TestAnOwnOutcomeExpires",
		Old: "least, _ := q.asked.since(claim.told)", New: "_, least := s.stamp().since(claim.asked)",
	},
	{
		Name: "a cache keeps what the store has not confirmed", Rule: "rule 9",
		Dir: nearby, Func: "(*Store).Settle", Package: nearby, Run: "TestWhatTheStoreHasNotConfirmed",
		Old: "s.st.Settle(ctx, l, t); err != nil {", New: "s.st.Settle(ctx, l, t); errors.Is(err, store.ErrLeaseLost) {",
	},
	{
		Name: "what was reckoned is read as the store's", Rule: "rule 3",
		Dir: nearby, Func: "(*shard).find", Package: nearby, Run: "TestADuplicateOfAnOwnCall|TestAReadContradicts",
		Old: "case exact && e.reckoned:", New: "case exact && e.reckoned && e.mine:",
	},
	{
		Name: "a process that slept thinks no time has passed", Rule: "rule 6",
		Dir: nearby, Func: "stamp.since", Package: nearby, Run: "TestTheMoreAndTheLess",
		Old: "return max(0, min(mono, wall)), max(mono, wall)", New: "return max(0, min(mono, wall)), mono",
	},
	{
		Name: "a cache has no bound", Rule: "rule 10",
		Dir: nearby, Func: "(*shard).add", Package: nearby, Run: "TestTheMemoryIsBounded",
		Old: "for sh.bytes+e.cost > sh.max {", New: "for sh.bytes < 0 {",
	},
	{
		Name: "what is used goes first", Rule: "rule 8",
		Dir: nearby, Func: "(*shard).add", Package: nearby, Run: "TestWhatIsUsedStays",
		Old: "if oldest.used && !oldest.over(now) {", New: "if false {",
	},
	{
		Name: "a cache keeps its caller's memory", Rule: "rule 8",
		Dir: nearby, Func: "keep", Package: nearby, Run: "TestTheCachesMemory",
		Old: `
			copy(body, o.Body)
			o.Body = body`,
		New: "_ = body",
	},
	{
		Name: "a cache answers a caller who has left", Rule: "rule 13",
		Dir: nearby, Func: "(*Store).ask", Package: nearby, Run: "TestAContextThatIsOver|TestConformance$",
		Old: `
			if err := ctx.Err(); err != nil {
				return question{}, store.Found{}, err
			}`,
		New: "",
	},
	{
		Name: "a front that fails is asked again and again", Rule: "lanes",
		Dir: nearby, Func: "(*front).call", Package: nearby, Run: "TestAFrontThatFailedIsLeftAlone",
		Old: "f.until.Store(now.mono + int64(f.rest))", New: "f.until.Store(now.mono)",
	},
	{
		Name: "a front is believed by its own clock alone", Rule: "rule 6",
		Dir: nearby, Func: "(*Store).look", Package: nearby, Run: "TestNothingComesOut",
		Old: "|| !s.now().Before(wall) {", New: "&& s.now().Before(wall) {",
	},
	{
		Name: "a front whose clock went back is believed", Rule: "rule 6",
		Dir: nearby, Func: "opened", Package: nearby, Run: "TestNothingComesOut",
		Old: "|| passed < 0 ||", New: "||",
	},
	{
		Name: "a front gives another key's outcome", Rule: "scope",
		Dir: nearby, Func: "opened", Package: nearby, Run: "TestAFrontWithOtherThings",
		Old: "|| v.record.Key != k ||", New: "||",
	},
	{
		Name: "memory gives the front's records a new life", Rule: "rule 7",
		Dir: nearby, Func: "(*Store).look", Package: nearby, Run: "TestMemoryDoesNot",
		Old: "v.clock.Add(passed), v.life-passed-drift(passed)", New: "v.clock.Add(passed), v.life",
	},
	{
		Name: "a slow fill lives longer", Rule: "rule 7",
		Dir: nearby, Func: "(*Store).show", Package: nearby, Run: "TestALateFill",
		Old: "clock: e.clock.Add(passed), life: e.life - passed,", New: "clock: e.clock, life: e.life + 0*passed,",
	},
	{
		Name: "a swap leaves the front as it is", Rule: "rule 3",
		Dir: nearby, Func: "(*Store).Swap", Package: nearby, Run: "TestASwapTakesItOut",
		Old: "if seen.State.Terminal() {", New: "if false {",
	},
	{
		Name: "a sweep recovers what is another's in the front", Rule: "scope",
		Dir: nearby, Func: "(*Store).clear", Package: nearby, Run: "TestASweepTidies",
		Old: `
			if !strings.HasSuffix(r.Key.Operation, suffix) {
				return`,
		New: `
			if !strings.HasSuffix(r.Key.Operation, "") {
				return`,
	},
}

var shardings = []Mutant{
	{
		Name: "shards are numbered by their order", Rule: "scope",
		Dir: shards, Func: "New", Package: shards, Run: "TestTheOrder",
		Old: "slices.SortFunc(s.shards, func(a, b shard) int { return cmp.Compare(a.name, b.name) })",
		New: `
			slices.SortFunc(s.shards, func(a, b shard) int { return 0 * cmp.Compare(a.name, b.name) })
			s.shards[0].seed = 0`,
	},
	{
		Name: "one more shard moves every key", Rule: "scope",
		Dir: shards, Func: "(*Store).of", Package: shards, Run: "TestAShardThatIsAdded",
		Old: "best, highest := 0, uint64(0)", New: "best, highest := int(h%uint64(len(s.shards))), ^uint64(0)",
	},
	{
		Name: "a release moves keys", Rule: "durable",
		Dir: shards, Func: "(*Store).of", Package: shards, Run: "TestWhereKeysAre",
		Old: "h := binary.BigEndian.Uint64(d[:])", New: "h := binary.BigEndian.Uint64(d[8:])",
	},
	{
		Name: "an error does not name the shard", Rule: "rule 11",
		Dir: shards, Func: "(*shard).says", Package: shards, Run: "TestAShardThatIsDown",
		Old: `return fmt.Errorf("shardstore: shard %q: %w", sh.name, err)`, New: `return fmt.Errorf("shardstore: %w", err)`,
	},
	{
		Name: "what can be found behind shards is one of them", Rule: "scope",
		Dir: shards, Func: "(*Store).Unwrap", Package: shards, Run: "TestTheShardsTogether",
		Old: "{ return s.can }", New: "{ return s.shards[0].st }",
	},
	{
		Name: "a shard that hangs holds up all renewals", Rule: "lanes",
		Dir: shards, Func: "next", Package: shards, Run: "TestAShardThatHangs|TestAHandlerKeeps",
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
		Name: "a shard that is down fails all renewals", Rule: "lanes",
		Dir: shards, Func: "(*Store).Renew", Package: shards, Run: "TestAShardThatIsDown",
		Old: "parts[p.shard] = nil",
		New: `
			parts[p.shard] = nil
			if p.err != nil {
				return nil, p.err
			}`,
	},
	{
		Name: "a step of a sweep loses what was handed back", Rule: "rule 7",
		Dir: shards, Func: "(*Store).Sweep", Package: shards, Run: "TestTheLapsed",
		Old: `p.inner != "" || len(all.Lapsed) > 0 || all`, New: `p.inner != "" || all`,
	},
	{
		Name: "a shard that fails ends the sweep", Rule: "lanes",
		Dir: shards, Func: "(*Store).Sweep", Package: shards, Run: "TestAShardThatFails",
		Old: "case ctx.Err() == nil && !p.again:", New: "case ctx.Err() == nil && p.again && false:",
	},
	{
		Name: "a shard that fails passes for swept", Rule: "rule 11",
		Dir: shards, Func: "(*Store).next", Package: shards, Run: "TestAShardThatFails",
		Old: "if len(p.failed) == 0 {", New: "if len(p.failed) >= 0 {",
	},
	{
		Name: "a list without a shard passes for whole", Rule: "rule 11",
		Dir: shards, Func: "lister.List", Package: shards, Run: "TestListGives",
		Old: "if errs != nil {", New: "if len(errs) > len(l.listers) {",
	},
	{
		Name: "a store that cannot be searched has no records", Rule: "rule 11",
		Dir: shards, Func: "(*Store).abilities", Package: shards, Run: "TestTheShardsTogether",
		Old: "each[store.Lister](s); all {", New: "each[store.Lister](s); all || listers != nil {",
	},
	{
		Name: "a set of shards that was changed goes unseen", Rule: "scope",
		Dir: shards, Func: "checker.strays", Package: shards, Run: "TestCheckFinds",
		Old: "if seen++; c.of(f.Record.Key) != i {", New: "if seen++; c.of(f.Record.Key) < 0 {",
	},
	{
		Name: "a record that cannot be read hides the rest of its shard", Rule: "rule 11",
		Dir: shards, Func: "lister.List", Package: shards, Run: "TestListGoesOnBehind",
		Old: "if errors.Is(err, store.ErrCorrupt) {", New: "if false {",
	},
}
