package museum

// Redis: each change is a script, and each script compares what it changes.
var redises = []Mutant{
	{
		Name: "Redis: a settlement compares no owner", Rule: "rule 4", Parent: "M2: delete without owner (Powertools)",
		Dir: fast, Func: "const luaSettle", Package: fast, Run: "TestConformance$/(histories|settle)",
		Old: "elseif sub(v, 1, 25) ~= ARGV[arg] then", New: "elseif false then",
	},
	{
		Name: "Redis: a swap compares no fence", Rule: "rule 3", Parent: "M5: orphan recovery without CAS (#5714)",
		Dir: fast, Func: "const luaSwap", Package: fast, Run: "TestConformance$/(histories|swap)",
		Old: "sub(v, 1, 25) ~= ARGV[arg + 2] or", New: "sub(v, 1, 17) ~= sub(ARGV[arg + 2], 1, 17) or",
	},
	{
		Name: "Redis: a sweep forgets the highest fence", Rule: "rule 5",
		Dir: fast, Func: "const luaSweep", Package: fast, Run: "TestConformance$/fence",
		Old: `
			call('DEL', KEYS[i])
			raise_swept_fence(unpack_('>I8', head, 18))`,
		New: "call('DEL', KEYS[i])",
	},
	{
		Name: "Redis: an own claim is somebody else's", Rule: "rule 2", Parent: "M10: own claim read as conflict (go-redis#2985)",
		Dir: fast, Func: "existing", Package: fast, Run: "TestConformance$/claim",
		Old: "return p.Found(&r, store.Time(now)), nil", New: "return store.Found{Record: r, Now: store.Time(now)}, nil",
	},
	{
		Name: "Redis: a settlement is confirmed by a master that never had it", Rule: "rule 9",
		Dir: fast, Func: "(*Store).settle", Package: fast, Run: "TestSettle_FailOverLosesIt_IsNotConfirmed",
		Old: "return settled(l, t, again)", New: "return nil",
	},
	{
		Name: "Redis: a parking is confirmed by a master that never had it", Rule: "rule 9",
		Dir: fast, Func: "(*Store).swap", Package: fast, Run: "TestSwap_FailOverLosesParking_IsNotConfirmed",
		Old: `
			f, err = swapped(p, again)
			return err`,
		New: "return nil",
	},
	{
		Name: "Redis: a release is lost because another has claimed the key since", Rule: "rule 9",
		Dir: fast, Func: "(*Store).settle", Package: fast, Run: "TestSettle_FailOverLosesIt_IsNotConfirmed",
		Old: "if t.State == store.Released {", New: "if t.State == 0 {",
	},
	{
		Name: "Redis: a full server answers no duplicate", Rule: "rule 8",
		Dir: fast, Func: "const luaClaim", Package: fast, Run: "TestFullServer_ReplayAndSweep_Succeed",
		Old: "if new ~= 0 and not ({OOM = 1, MISCONF = 1, NOREPLICAS = 1})[string.match(new.err, '%u+')] then",
		New: "if new ~= 0 then",
	},
	{
		Name: "Redis: a server without replicas refuses replays", Rule: "rule 8",
		Dir: fast, Func: "const luaClaim", Package: fast, Run: "TestReplay_ServerRefusesWrites_Succeeds",
		Old: "OOM = 1, MISCONF = 1, NOREPLICAS = 1", New: "OOM = 1",
	},
	{
		Name: "Redis: a sweep deletes what it has not looked at again", Rule: "rule 7", Parent: "margince#423",
		Dir: fast, Func: "const luaSweep", Package: fast, Run: "TestSweep_RecordChangedSinceRead_LeavesIt",
		Old: "expires ~= 0 and expires <= now then", New: "expires ~= 0 then",
	},
	{
		Name: "Redis: who reads waits for replicas", Rule: "rule 14",
		Dir: fast, Func: "(*Store).newBatcher", Package: fast, Run: "TestGet_ReplicasMissing_DoesNotWait",
		Old: "send := s.exchange", New: "send := s.send",
	},
	{
		Name: "Redis: a duplicate is answered from an outcome that no replica has", Rule: "rule 9", Parent: "0041, with PostgreSQL",
		Dir: fast, Func: "requireConfirmed", Package: fast, Run: "TestGuard_OutcomeUnconfirmed_DuplicateIsUnavailable",
		Old: "c.ackErr == nil ||", New: "true ||",
	},
	{
		Name: "Redis: a record that was sent is forgotten when the connection breaks in WAIT", Rule: "rule 11",
		Dir: fast, Func: "(*Store).exchangeAcked", Package: fast, Run: "TestDuplicate_ConnectionBreaksInWait_RecordIsKnown",
		Old: "p.keepAnswer()", New: "",
	},
	{
		Name: "Redis: a server that has become unsafe looks like an outage to calls that have a result", Rule: "rule 11",
		Dir: fast, Func: "(*Store).refusedClaim", Package: fast, Run: "TestClaim_ServerBeginsToEvict_IsRefused",
		Old: "return withoutOutcome(f), cause", New: "return store.Found{}, cause",
	},
	{
		Name: "Redis: a server that refuses to write looks like an outage to calls that have a result", Rule: "rule 11",
		Dir: fast, Func: "(*Store).refusedClaim", Package: fast, Run: "TestGuard_ServerRefusesWrites_CompletedCallDoesNotRun",
		Old: "&& !refusesWrites(cause)", New: "",
	},
	{
		Name: "Redis: a duplicate waits for a write of its connection and not for the outcome", Rule: "rule 9",
		Dir: fast, Func: "const luaClaim", Package: fast, Run: "TestDuplicate_ReplicaHangs_IsNotAnswered",
		Old: "is_answer(old) or", New: "",
	},
	{
		Name: "Redis: a final failure is answered before a replica has it", Rule: "rule 9",
		Dir: fast, Func: "const luaClaim", Package: fast, Run: "TestDuplicate_ReplicaHangs_IsNotAnswered",
		Old: "is_answer(old) or", New: "is_answer(old) and byte(old, 58) ~= FAILED or",
	},
	{
		Name: "Redis: a ticket waits for a write of its connection and not for the record", Rule: "durable",
		Dir: fast, Func: "const luaClaim", Package: fast, Run: "TestDuplicate_ReplicaHangs_IsNotAnswered",
		Old: "is_answer(old) or", New: "is_answer(old) and (byte(old, 58) == COMPLETED or byte(old, 58) == FAILED) or",
	},
	{
		Name: "Redis: a ticket is given for a record that no replica has", Rule: "durable", Parent: "PostgreSQL, where it was mended first",
		Dir: fast, Func: "requireConfirmed", Package: fast, Run: "TestReserve_RecordUnconfirmed_NoTicket",
		Old: "!f.Record.IsAnswer()", New: "!f.Record.State.Terminal()",
	},
	{
		Name: "Redis: a waiting duplicate reads an outcome that no replica has", Rule: "rule 9",
		Dir: fast, Func: "(*Store).get", Package: fast, Run: "TestGuard_WaitsForUnconfirmedOutcome_IsUnavailable",
		Old: "return s.confirmRead(ctx, k, f)", New: "return f, nil",
	},
	{
		Name: "Redis: steps that no replica has are read as recorded", Rule: "rule 9",
		Dir: fast, Func: "(*Store).steps", Package: fast, Run: "TestReplicaAway_StepsAndErasure_AreNotConfirmed",
		Old: "!s.opt.waitsForAcks()", New: "true",
	},
	{
		Name: "Redis: an erasure that is sent again is not confirmed", Rule: "rule 9",
		Dir: fast, Func: "(*Store).erase", Package: fast, Run: "TestReplicaAway_StepsAndErasure_AreNotConfirmed",
		Old: "errors.Is(err, store.ErrNotFound) && c.ackErr != nil", New: "false",
	},
	{
		Name: "Redis: an erasure that is begun again is done without the replicas", Rule: "rule 9", Parent: "PostgreSQL, where it was mended first",
		Dir: fast, Func: "(*Store).Confirm", Package: fast, Run: "TestReplicaAway_ErasureBegunAgain_IsNotDone|TestReplicaAway_StepsAndErasure_AreNotConfirmed",
		Old: "!s.opt.waitsForAcks()", New: "true",
	},
	{
		Name: "Redis: a node that hangs holds up all nodes", Rule: "isolation",
		Dir: fast, Func: "(*Store).nodeOf", Package: fast, Run: "TestCluster_NodeHangs_OtherNodesAnswer",
		Old: "return node.Options().Addr", New: "return node.Options().Addr[:0]",
	},
	{
		Name: "Redis: a bad record sinks the first batch after a restart", Rule: "isolation",
		Dir: fast, Func: "(*Store).sendWithFallback", Package: fast, Run: "TestBatch_OneRecordBadAfterScriptFlush_OthersSucceed",
		Old: "commands = again",
		New: `
			if commands = nil; len(again) > 0 {
				send(again)
			}`,
	},
	{
		Name: "Redis: a lease that replicas acknowledge is not renewed while its slot moves", Rule: "rule 7",
		Dir: fast, Func: "(*Store).followAsk", Package: fast, Run: "TestRenew_SlotIsMoving_KeepsLease",
		Old: "if addr, ok := redis.IsAskError(c.err); ok {", New: "if addr, ok := redis.IsAskError(c.err); ok && addr == \"\" {",
	},
	{
		Name: "Redis: a claim that is sent again writes the record anew", Rule: "rule 3", Parent: "an undo of a claim, delivered late, deleted the live claim",
		Dir: fast, Func: "const luaClaim", Package: fast, Run: "TestClaim_AcknowledgedAtSecondSending_NothingLateChangesIt",
		Old: "call('SETRANGE', KEYS[again], 0, sub(seen[again], 1, 1))", New: "call('SET', KEYS[again], all[2 * again], 'KEEPTTL')",
	},
	{
		Name: "Redis: an unacknowledged claim is taken back", Rule: "rule 3", Parent: "an undo of a claim, delivered late, deleted the live claim",
		Dir: fast, Func: "(*Store).claim", Package: fast, Run: "TestClaim_AcknowledgedAtSecondSending_NothingLateChangesIt",
		Old: "if err := s.checkGranted(ctx, in, c); err != nil {",
		New: `
			if err := s.checkGranted(ctx, in, c); err != nil {
				_, _ = s.Renew(ctx, []store.Lease{f.Record.Lease()}, -p.Lease)`,
	},
	{
		Name: "Redis: the settings are read once", Rule: "rule 9",
		Dir: fast, Func: "(*inspection).isFresh", Package: fast, Run: "TestClaim_ServerBeginsToEvict_IsRefused",
		Old: "&& time.Since(p.time) < recheckInterval", New: "&& !p.time.IsZero()",
	},
	{
		Name: "Redis: after a fail-over the new server's settings are not read", Rule: "rule 9",
		Dir: fast, Func: "(*inspection).isFresh", Package: fast, Run: "TestClaim_OverNewConnection_InspectsServer",
		Old: "p.dials == in.dials.Load() &&", New: "",
	},
	{
		Name: "Redis: one dead node of a cluster is an outage of the store", Rule: "rule 14",
		Dir: fast, Func: "(*Store).extent", Package: fast, Run: "TestCluster_MasterDown_ConcernsItsKeysOnly",
		Old: "return store.ExtentPart", New: "return store.ExtentStore",
	},
	{
		Name: "Redis: a swap into doubt is not in the list of doubts", Rule: "listed",
		Dir: fast, Func: "const luaSwap", Package: fast, Run: "TestConformance$/list",
		Old: `
			call('SADD', KEYS[n + 2], KEYS[i])
		elseif`, New: "elseif",
	},
	{
		Name: "Redis: a settlement into doubt is not in the list of doubts", Rule: "listed",
		Dir: fast, Func: "const luaSettle", Package: fast, Run: "TestConformance$/list",
		Old: "if doubts then call('SADD', KEYS[n + 2], KEYS[i]) end", New: "",
	},
	{
		Name: "Redis: a node that is down ends the sweep", Rule: "isolation",
		Dir: fast, Func: "(*Store).sweep", Package: fast, Run: "TestSweep_MasterDown_OtherNodesAreSwept",
		Old: "return store.SweepParts(ctx, from, limit, parts)", New: "return parts[0].Sweep(ctx, from, limit)",
	},
	{
		Name: "Redis: a node that is down hides the records of the others", Rule: "isolation",
		Dir: fast, Func: "(*Store).readAll", Package: fast, Run: "TestList_MasterDown_YieldsOthersThenError",
		Old: "errs = append(errs, n.explain(err))", New: "return n.explain(err)",
	},
	{
		Name: "Redis: a node that is down hides the doubts of the others", Rule: "isolation",
		Dir: fast, Func: "(*Store).readDoubts", Package: fast, Run: "TestList_MasterDown_YieldsOthersThenError",
		Old: "errs = append(errs, p.explain(err))", New: "if err != nil { return p.explain(err) }",
	},
	{
		Name: "Redis: a node that hangs takes all the time of a list", Rule: "isolation",
		Dir: fast, Func: "(*Store).partContext", Package: fast, Run: "TestCluster_NodeHangs_OthersAreListedAndSwept",
		Old: "return store.PartContext(ctx)", New: "return context.WithCancel(ctx)",
	},
	{
		Name: "Redis: a record that has moved is not looked for", Rule: "rule 11",
		Dir: fast, Func: "(*Store).readNode", Package: fast, Run: "TestList_SlotIsMoving_DoubtsAreWholeAndAllIsAnError",
		Old: "len(elsewhere) > 0 {", New: "len(elsewhere) > len(calls) {",
	},
	{
		Name: "Redis: a list during a move passes for whole", Rule: "rule 11",
		Dir: fast, Func: "(*Store).readAll", Package: fast, Run: "TestList_SlotIsMoving_DoubtsAreWholeAndAllIsAnError",
		Old: "errs = append(errs, p.explain(s.moving(ctx, p)))", New: "_ = p",
	},
	{
		Name: "Redis: a node that does not answer has no slot that moves", Rule: "rule 11",
		Dir: fast, Func: "(*Store).moving", Package: fast, Run: "TestList_NodeDoesNotSayWhetherSlotMoved_IsError",
		Old: "err != nil && !errors.Is(err, redis.Nil)", New: "false",
	},
	{
		Name: "Redis: a set that is refused hides the doubts of others", Rule: "rule 11",
		Dir: fast, Func: "(*Store).readSets", Package: fast, Run: "TestReadSets_OneSetRefused_OthersAreRead",
		Old: "len(from) > 0 && isAnswer(err)", New: "len(from) > 0 && err == nil",
	},
	{
		Name: "Redis: the first master's clock counts for all", Rule: "rule 5",
		Dir: fast, Func: "(*Store).Clocks", Package: fast, Run: "TestClocks_MastersDiffer_SlowestAndFastest",
		Old: "range all {", New: "range all[:1] {",
	},
	{
		Name: "Redis: a redirect counts as absence", Rule: "rule 11",
		Dir: fast, Func: "readAnswer", Package: fast, Run: "TestReadAnswer_Redirected_IsError",
		Old: "if c.err != nil {", New: "if c.err != nil && !moved(c.err) {",
	},
	{
		Name: "Redis: a lease is lost because its slot moves", Rule: "rule 7",
		Dir: fast, Func: "newScripts", Package: fast, Run: "TestRenew_SlotIsMoving_KeepsLease",
		Old: "text: luaRenew,", New: "text: luaRenew, hasSweptFence: true,",
	},
	{
		Name: "Redis: a move finds a second hash of timers at its target", Rule: "saga 7",
		Dir: fast, Func: "(*command).build", Package: fast, Run: "TestSetTimer_HalfOfTimersHasMoved_IsRefused",
		Old: "args = append(args, c.record+versionsName)", New: "args = append(args, c.record)",
	},
	{
		Name: "Redis: a slot that stays moving holds up a sweep", Rule: "rule 7",
		Dir: fast, Func: "(*sweeper).page", Package: fast, Run: "TestSweep_SlotStaysMoving_OtherSlotsAreSwept",
		Old: "expired = expired[n:]",
		New: `
			expired = expired[n:]
			break`,
	},
}
