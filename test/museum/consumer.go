package museum

// Consumers: the outcome is stored before the ack, and every way to end a
// message is one the broker hears of.
var consumers = []Mutant{
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
		Old: "return Disposition{Action: Hold, Reason: ReasonInProgress,",
		New: "return Disposition{Action: Ack, Reason: ReasonInProgress,",
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
		Old: "case s.call(ctx, t, t.d.Ack):", New: "case s.call(ctx, t, t.d.Ack) || true:",
	},
	{
		Name: "a message is acked without its copy", Rule: "ack",
		Dir: consumer, Func: "(*session).settle", Package: consumer, Run: "TestSettle_AckOfALetterFails_DoesNotRepeatTheCopy|TestSettle_CopyFails_RepeatsThenAcksOnce",
		Old: `
				s.letterFailed(ctx, t)
				return
			}
			t.forwarded`,
		New: `
				s.dropIfGone(ctx, t)
			}
			t.forwarded`,
	},
	{
		Name: "letters that cannot be sent stop the consumer", Rule: "ack",
		Dir: consumer, Func: "(*session).letterFailed", Package: consumer, Run: "TestLetter_TwoGroups_HaveTwoIDs|TestSettle_LettersFail_OtherMessagesGoOn",
		Old: "if t.gone || t.failed < maxSettlements || s.info.HoldsOnly {", New: "if true {",
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
		Name: "a message is given back while the source still takes", Rule: "lanes",
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
		Dir: consumer, Func: "(*Consumer).try", Package: consumer, Run: "TestOutage_CutsOffTries_CountsNoAttempt",
		Old: "t.uncommitted && t.forgiven < maxForgiven {", New: "false {",
	},
	{
		Name: "a message that drives the store away has no end", Rule: "rule 13",
		Dir: consumer, Func: "(*Consumer).try", Package: consumer, Run: "TestOutage_CutsOffTries_CountsNoAttempt",
		Old: "t.uncommitted && t.forgiven < maxForgiven {", New: "t.uncommitted {",
	},
}
