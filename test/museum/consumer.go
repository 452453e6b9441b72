package museum

// Consumers: the outcome is stored before the ack, and every way to end a
// message is one the broker hears of.
var consumers = []Mutant{
	{
		Name: "a Backoff that panics ends the process of a worker", Rule: "saga 7",
		Dir: "internal/callback", Func: "Backoff", Package: flow, Run: "TestWork_BackoffPanics_GoesOnAfterDefault",
		Old: `log(context.Background(), pkg+": Backoff panicked; the pause is the default one", p)`, New: "panic(p)",
	},
	{
		Name: "an Observe that panics ends the process of a consumer", Rule: "isolation",
		Dir: "internal/callback", Func: "Do", Package: consumer, Run: "TestServe_ObservePanics_GoesOn",
		Old: `log(ctx, name+" panicked", p)`, New: "panic(p)",
	},
	{
		Name: "messages of a shard that is down take all handlers", Rule: "isolation",
		Dir: consumer, Func: "(*session).wakeSuspects", Package: consumer, Run: "TestSuspects_ShardDown_TakeAQuarterOfHandlers",
		Old: "max(1, s.c.opt.Concurrency/4)", New: "max(1, s.c.opt.Concurrency)",
	},
	{
		Name: "a message is acked before it has run", Rule: "ack", Parent: "M21: ack before complete",
		Dir: consumer, Func: "(*session).work", Package: consumer, Run: "TestServe|TestSettle",
		Old: `
			case stepRun:
				s.try(ctx, t)`,
		New: `
			case stepRun:
				_ = t.d.Ack(ctx)
				s.try(ctx, t)`,
	},
	{
		Name: "a message in flight elsewhere is acked", Rule: "ack", Parent: "M21: ack before complete",
		Dir: "consume/driver", Func: "Policy.decideReason", Package: consumer + "/driver", Run: "TestDecide_EachResult_FollowsTheTable",
		Old: "d := Disposition{Action: Hold, Reason: ReasonInProgress,",
		New: "d := Disposition{Action: Ack, Reason: ReasonInProgress,",
	},
	{
		Name: "a duplicate is never acked", Rule: "ack", Parent: "M23: wolverine#2639",
		Dir: "consume/driver", Func: "Policy.decide", Package: consumer + "/driver", Run: "TestDecide_EachResult_FollowsTheTable",
		Old: `
			if r.Err == nil && r.Replayed {
				return Disposition{Action: Ack,`,
		New: `
			if r.Err == nil && r.Replayed {
				return Disposition{Action: Hold,`,
	},
	{
		Name: "an ack is trusted to have arrived", Rule: "ack", Parent: "M24: nats-server#4786",
		Dir: consumer, Func: "(*session).settle", Package: consumer, Run: "TestSettle",
		Old: "switch s.call(ctx, t, t.d.Ack) {", New: "switch s.call(ctx, t, t.d.Ack); replyOK {",
	},
	{
		Name: "a message is acked without its copy", Rule: "ack",
		Dir: consumer, Func: "(*session).settle", Package: consumer, Run: "TestSettle_AckOfALetterFails_DoesNotRepeatTheCopy|TestSettle_CopyFails_RepeatsThenAcksOnce",
		Old: `
				s.letterFailed(ctx, t, answer)
				return
			}
			t.forwarded`,
		New: `
				_ = answer
			}
			t.forwarded`,
	},
	{
		Name: "the letters of two messages of RabbitMQ have one id, and a reader drops one", Rule: "ack",
		Dir: "consume/driver", Func: "letterID", Package: consumer, Run: "TestLetter_NoOriginID_DiffersByContent",
		Old: "slices.Sort(lines)", New: "lines = nil",
	},
	{
		Name: "a letter that was refused once is overtaken by later letters of its order key", Rule: "order",
		Dir: consumer, Func: "(*task).mayBeOvertaken", Package: consumer, Run: "TestLetter_IsRefused_NextLetterOfTheKeyWaits",
		Old: "(t.disp.Action == driver.Ack ||", New: "(t.failed > 0 ||",
	},
	{
		Name: "a letter that is held for ever stops its order key", Rule: "isolation",
		Dir: consumer, Func: "(*task).mayBeOvertaken", Package: consumer, Run: "TestLetter_IsHeldForEver_KeyGoesOn",
		Old: "|| t.failed >= maxSettlements)", New: ")",
	},
	{
		Name: "letters that hang take the places of handlers when they are tried again", Rule: "isolation",
		Dir: consumer, Func: "(*session).start", Package: consumer, Run: "TestLetter_Hangs_OtherMessagesAreServed",
		Old: "if t.step == stepRun {", New: "if t.step != stepReturn {",
	},
	{
		Name: "letters that hang keep the places of their handlers", Rule: "isolation",
		Dir: consumer, Func: "(*session).firstSettlement", Package: consumer, Run: "TestLetter_Hangs_OtherMessagesAreServed",
		Old: "case s.settling <- t:", New: "case s.settling <- &task{}:",
	},
	{
		Name: "letters that hang fill the limit of messages in work", Rule: "isolation",
		Dir: consumer, Func: "(*session).wake", Package: consumer, Run: "TestLetter_Hangs_OtherMessagesAreServed",
		Old: "if t.step == stepRun {", New: "if true {",
	},
	{
		Name: "an outage that ends with its messages is never over", Rule: "rule 14",
		Dir: consumer, Func: "(*session).resume", Package: consumer, Run: "TestOutage_AllMessagesRevoked_Ends",
		Old: "if !s.outage.reported {", New: "if !s.outage.on {",
	},
	{
		Name: "letters that cannot be sent stop the consumer", Rule: "ack",
		Dir: consumer, Func: "(*session).letterFailed", Package: consumer, Run: "TestLetter_TwoGroups_HaveTwoIDs|TestSettle_LettersFail_OtherMessagesGoOn",
		Old: "if isLast {", New: "if isLast && false {",
	},
	{
		Name: "what another has taken over is acked", Rule: "ack",
		Dir: "consume/driver", Func: "Policy.decideReason", Package: consumer + "/driver", Run: "TestDecide_EachResult_FollowsTheTable",
		Old: "return Disposition{Action: Hold, Reason: ReasonLeaseLost,",
		New: "return Disposition{Action: Ack, Reason: ReasonLeaseLost,",
	},
	{
		Name: "an outage sends messages to the dead letters", Rule: "ack",
		Dir: "consume/driver", Func: "Policy.decideReason", Package: consumer + "/driver", Run: "TestDecide_EachResult_FollowsTheTable",
		Old: "return Disposition{Action: Hold, Reason: ReasonUnavailable,",
		New: "return Disposition{Action: DeadLetter, Reason: ReasonUnavailable,",
	},
	{
		Name: "what still ends after the drain is given to others", Rule: "rule 7",
		Dir: consumer, Func: "(*session).loop", Package: consumer, Run: "TestServe_HandlerEndsAfterDrain_ExtendsItsMessage",
		Old: "context.WithCancel(context.WithoutCancel(ctx))", New: "context.WithCancel(hctx)",
	},
	{
		Name: "an extension hides a message that was given back", Rule: "ack",
		Dir: consumer, Func: "(*extender).each", Package: consumer, Run: "TestNak_ExtendRunsOrIsDue_NakIsLast",
		Old: "if x.paused || x.ended != nil {", New: "if x.ended != nil {",
	},
	{
		Name: "an extension that runs hides a message that is given back meanwhile", Rule: "ack",
		Dir: consumer, Func: "(*extender).setPaused", Package: consumer, Run: "TestNak_ExtendRunsOrIsDue_NakIsLast",
		Old: "return x.ended", New: "return nil",
	},
	{
		Name: "a message that could not be given back is given to others while it waits", Rule: "rule 7",
		Dir: consumer, Func: "(*session).nak", Package: consumer, Run: "TestNak_ExtendRunsOrIsDue_NakIsLast",
		Old: "s.extends.resume(t.d)", New: "",
	},
	{
		Name: "a message is given back while the source still takes", Rule: "isolation",
		Dir: consumer, Func: "(*session).startReady", Package: consumer, Run: "TestServe_ContextEnds_StopsTheSource",
		Old: "case s.returning || t.revoked():", New: "case s.draining || t.revoked():",
	},
	{
		Name: "a message without a key is tried for ever", Rule: "rule 13",
		Dir: consumer, Func: "(*session).retry", Package: consumer, Run: "TestServe_UnprotectedMessageFails_DeadLetters",
		Old: "strings.HasPrefix(t.m.Key, unprotected) {", New: "strings.HasPrefix(t.m.Key, unprotected) && s.info.HoldsOnly {",
	},
	{
		Name: "a group that is no name sends a stream to the dead letters", Rule: "scope",
		Dir: consumer, Func: "New", Package: consumer, Run: "TestNew_InvalidGroup_IsRefused",
		Old: "if err := call.Check(); err != nil {", New: "if err := call.Check(); false {",
	},
	{
		Name: "an outage at COMMIT is an attempt", Rule: "rule 13",
		Dir: consumer, Func: "(*Consumer).tryOnce", Package: consumer, Run: "TestOutage_CutsOffTries_CountsNoAttempt",
		Old: "t.uncommitted && t.forgiven < maxForgiven {", New: "false {",
	},
	{
		Name: "a message that drives the store away has no end", Rule: "rule 13",
		Dir: consumer, Func: "(*Consumer).tryOnce", Package: consumer, Run: "TestOutage_CutsOffTries_CountsNoAttempt",
		Old: "t.uncommitted && t.forgiven < maxForgiven {", New: "t.uncommitted {",
	},
	{
		Name: "one key uses up the limit of all", Rule: "isolation",
		Dir: consumer, Func: "(*session).fetchLimit", Package: consumer, Run: "TestServe_OneKeyFails_OtherKeysAreServed",
		Old: "most-(s.taken-s.waiting.messages)", New: "most-s.taken",
	},
	{
		Name: "messages that wait have no limit", Rule: "isolation",
		Dir: consumer, Func: "(*session).fetchLimit", Package: consumer, Run: "TestServe_RoomIsFull_TakesNoMore",
		Old: "s.c.opt.Waiting-s.waiting.messages)", New: "most)",
	},
	{
		Name: "a message is taken that cannot begin, though the broker counts that", Rule: "rule 13",
		Dir: consumer, Func: "(*session).fetchLimit", Package: consumer, Run: "TestServe_BrokerLimitsDeliveries_TakesOnlyWhatCanBegin",
		Old: "most = s.c.opt.Concurrency", New: "_ = most",
	},
	{
		Name: "waiting counts as trying", Rule: "rule 13",
		Dir: consumer, Func: "(*Consumer).tryOnce", Package: consumer, Run: "TestHandle_MaxDeliveries_DeadLetters",
		Old: "c.deliveredTooOften(t.m) && x.Attempt() > c.opt.MaxDeliveries && c.opt.Starts == nil", New: "c.deliveredTooOften(t.m)",
	},
	{
		Name: "a start that a dead process has made is forgotten", Rule: "rule 13",
		Dir: consumer, Func: "(*Consumer).tryCounted", Package: consumer, Run: "TestHandle_ProcessDies_CountsStarts",
		Old: "x.Attempt() > c.opt.MaxDeliveries)", New: "false)",
	},
	{
		Name: "a start that failed is forgotten", Rule: "rule 13",
		Dir: consumer, Func: "(*Consumer).tryCounted", Package: consumer, Run: "TestHandle_FailsAtEachDelivery_CountsStarts",
		Old: "return store.Outcome{}, errStartFailed", New: "_ = errStartFailed",
	},
	{
		Name: "a message without a key kills process after process", Rule: "rule 13",
		Dir: consumer, Func: "(*Consumer).undeliverable", Package: consumer, Run: "TestHandle_UnprotectedBeyondMaxDeliveries_DeadLetters",
		Old: "!c.deliveredTooOften(m) ||", New: "m.Key != \"\" ||",
	},
	{
		Name: "an error of one key is an outage", Rule: "rule 14",
		Dir: consumer, Func: "(*session).try", Package: consumer, Run: "TestOutage_OfOneKey_OtherKeysAreServed",
		Old: "s.concernsKeyOnly(ctx, t, began)", New: "began.IsZero()",
	},
	{
		Name: "a message that its adapter cannot read runs", Rule: "ack",
		Dir: consumer, Func: "(*Consumer).identify", Package: consumer, Run: "TestServe_InvalidMessage_IsDeadLetterWithoutRun",
		Old: "err = t.m.Invalid", New: "_ = t.m.Invalid",
	},
	{
		Name: "consume: the letter of an unreadable message names a panic of the CallFunc only", Rule: "ack",
		Dir: consumer, Func: "(*Consumer).identify", Package: consumer, Run: "TestHandle_CallFuncPanicsForInvalidMessage",
		Old: "cmp.Or(t.m.Invalid, fmt.Errorf(\"the CallFunc panicked: %v\", v))", New: "fmt.Errorf(\"the CallFunc panicked: %v\", v)",
	},
	{
		Name: "an empty field is a key, so that all messages without a key are duplicates", Rule: "scope",
		Dir: consumer, Func: "JSONField", Package: consumer, Run: "TestKeySources_Messages_HaveTheirKeys",
		Old: "case isEmpty(raw):", New: "case raw == nil:",
	},
	{
		Name: "an empty key keeps the next source from being asked", Rule: "scope",
		Dir: consumer, Func: "First", Package: consumer, Run: "TestKeySources_Messages_HaveTheirKeys",
		Old: `err == nil && key != ""`, New: `err == nil`,
	},
	{
		Name: "a header takes the key of another source", Rule: "scope",
		Dir: consumer, Func: "FromHeader", Package: consumer, Run: "TestFromHeader_KeyOfAnotherSource_IsRefused",
		Old: "case strings.HasPrefix(key, reserved):", New: "case false:",
	},
	{
		Name: "a broker that prolongs no delivery is mentioned for debugging only", Rule: "rule 7",
		Dir: consumer, Func: "(*Event).level", Package: consumer, Run: "TestLogEvents_LostMessagesAndOutages_AreWarnings",
		Old: "case EventExtendFailed, EventGivenUp,", New: "case EventGivenUp,",
	},
	{
		Name: "a redriven letter is too old to run", Rule: "rule 13",
		Dir: consumer, Func: "(*Consumer).overdue", Package: consumer, Run: "TestHandle_RedrivenMessageOlderThanRetention_Runs",
		Old: `why != "" && c.opt.Reopen != nil`, New: `why == "" && c.opt.Reopen != nil`,
	},
	{
		Name: "a copy that is sent back has the broker's new ID as its key", Rule: "ack",
		Dir: consumer, Func: "BrokerID", Package: consumer, Run: "TestHandle_RedrivenMessage_BrokerIDIsTheOriginal",
		Old: "id := driver.OriginID(m)", New: "id := m.Origin.ID",
	},
	{
		Name: "the copy of a copy names the copy as its origin", Rule: "ack",
		Dir: "consume/driver", Func: "Letter", Package: consumer, Run: "TestHandle_RedrivenMessage_BrokerIDIsTheOriginal",
		Old: "quote(OriginID(m))", New: "quote(m.Origin.ID)",
	},
	{
		Name: "a redriven letter of an odd address has another fingerprint", Rule: "rule 13",
		Dir: "consume/driver", Func: "Letter", Package: consumer, Run: "TestHandle_RedrivenLetterOfOddAddress_RunsAgain",
		Old: "set(LetterAddress, quote(Address(m)))", New: "add(LetterAddress, Address(m))",
	},
	{
		Name: "a redelivered redrive reopens again", Rule: "rule 13",
		Dir: "consume/driver", Func: "Reopen", Package: consumer, Run: "TestHandle_RedrivenMessage_RunsAgainOnce",
		Old: "r.State != store.Failed || r.Fence != fence", New: "r.State != store.Failed || fence == 0",
	},
	{
		Name: "a redriven message whose record cannot be read waits for ever", Rule: "rule 11",
		Dir: "consume/driver", Func: "Reopen", Package: consumer, Run: "TestHandle_RedrivenRecordIsUnreadable_IsQuarantined",
		Old: ", errors.Is(err, store.ErrCorrupt)", New: "",
	},
	{
		Name: "Kafka to PostgreSQL: a redriven message does not reopen its key", Rule: "rule 13",
		Dir: kafkapg, Func: "(*keyedLedger).identifyReopened", Package: kafkapg, Run: "TestKeyed_RedrivenMessage_RunsAgainOnce",
		Old: "err == nil", New: "err != nil",
	},
	{
		Name: "Kafka to PostgreSQL: the next batch finds a failure that is reopened", Rule: "rule 13",
		Dir: kafkapg, Func: "(*keyedLedger).Prepare", Package: kafkapg, Run: "TestKeyed_NextBatchPrepared_SeesTheRedrivenMessage",
		Old: "b.prefetched = l.prefetcher.Prefetch(ctx, calls)", New: "b.prefetched = l.atomic.Prefetcher().Prefetch(ctx, calls)",
	},
	{
		Name: "a poll that ends later than Drain is an error of the consumer", Rule: "rule 14",
		Dir: consumer, Func: "(*session).loop", Package: consumer, Run: "TestServe_ContextEndsDuringLongPoll_ReturnsNil",
		Old: "s.fetching && !late", New: "s.fetching && late",
	},
	{
		Name: "a campaign goes on without a consumer whose Serve has ended", Rule: "evidence",
		Dir: "consume/consumetest", Func: "(*world).supervise", Package: "consume/consumetest", Run: "TestReportLoad_ServeEnds_ShowsItsErrorAtOnce",
		Old: "if !isDisturbed {", New: "if !isDisturbed {\nreturn p\n}\nif false {",
	},
}
