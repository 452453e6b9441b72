package museum

// Consumers: the outcome is stored before the ack, and every way to end a
// message is one the broker hears of.
var consumers = []Mutant{
	{
		Name: "a message is acked before it has run", Rule: "ack", Parent: "M21: ack before complete",
		Dir: consumer, Func: "(*session).work", Package: consumer, Run: "TestServe|TestShutdown|TestAnAck|TestARetry",
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
		Dir: consumer, Func: "(*Options).decideReason", Package: consumer, Run: "TestDecide|TestAKeyInFlight",
		Old: "return Disposition{Action: Hold, Reason: ReasonInProgress,",
		New: "return Disposition{Action: Ack, Reason: ReasonInProgress,",
	},
	{
		Name: "a duplicate is never acked", Rule: "ack", Parent: "M23: wolverine#2639",
		Dir: consumer, Func: "(*Options).decide", Package: consumer, Run: "TestDecide|TestHandleRunsOnce",
		Old: `
			if r.Err == nil && r.Replayed {
				return Disposition{Action: Ack,`,
		New: `
			if r.Err == nil && r.Replayed {
				return Disposition{Action: Hold,`,
	},
	{
		Name: "an ack is trusted to have arrived", Rule: "ack", Parent: "M24: nats-server#4786",
		Dir: consumer, Func: "(*session).carry", Package: consumer, Run: "TestAnAck",
		Old: "case s.tell(ctx, t, t.d.Ack):", New: "case s.tell(ctx, t, t.d.Ack) || true:",
	},
	{
		Name: "a message is acked without its copy", Rule: "ack",
		Dir: consumer, Func: "(*session).carry", Package: consumer, Run: "TestACopy",
		Old: `
				s.unsent(ctx, t)
				return
			}
			t.forwarded`,
		New: `
				s.overtaken(ctx, t)
			}
			t.forwarded`,
	},
	{
		Name: "letters that cannot be sent stop the consumer", Rule: "ack",
		Dir: consumer, Func: "(*session).unsent", Package: consumer, Run: "TestLetters",
		Old: "if t.gone || t.failed < mostAcks || s.info.HoldsOnly {", New: "if true {",
	},
	{
		Name: "what another has taken over is acked", Rule: "ack",
		Dir: consumer, Func: "(*Options).decideReason", Package: consumer, Run: "TestDecide",
		Old: "return Disposition{Action: Hold, Reason: ReasonLeaseLost,",
		New: "return Disposition{Action: Ack, Reason: ReasonLeaseLost,",
	},
	{
		Name: "an outage sends messages to the dead letters", Rule: "ack",
		Dir: consumer, Func: "(*Options).decideReason", Package: consumer, Run: "TestDecide|TestAnOutage",
		Old: "return Disposition{Action: Hold, Reason: ReasonUnavailable,",
		New: "return Disposition{Action: DeadLetter, Reason: ReasonUnavailable,",
	},
	{
		Name: "what still ends after the drain is given to others", Rule: "rule 7",
		Dir: consumer, Func: "(*session).loop", Package: consumer, Run: "TestWhatEndsAfterTheDrain",
		Old: "context.WithCancel(context.WithoutCancel(ctx))", New: "context.WithCancel(hctx)",
	},
	{
		Name: "a message without a key is tried for ever", Rule: "rule 13",
		Dir: consumer, Func: "(*session).retry", Package: consumer, Run: "TestAnUnprotectedMessage",
		Old: "strings.HasPrefix(t.m.Key, unprotected) {", New: "strings.HasPrefix(t.m.Key, unprotected) && s.info.HoldsOnly {",
	},
	{
		Name: "a group that is no name sends a stream to the dead letters", Rule: "scope",
		Dir: consumer, Func: "New", Package: consumer, Run: "TestNewRefusesAGroup",
		Old: "if err := call.Check(); err != nil {", New: "if err := call.Check(); false {",
	},
	{
		Name: "an outage at COMMIT is an attempt", Rule: "rule 13",
		Dir: consumer, Func: "(*Consumer).try", Package: consumer, Run: "TestAnOutageUsesUp",
		Old: "t.undone && t.forgiven < mostForgiven {", New: "false {",
	},
	{
		Name: "a message that drives the store away has no end", Rule: "rule 13",
		Dir: consumer, Func: "(*Consumer).try", Package: consumer, Run: "TestAnOutageUsesUp",
		Old: "t.undone && t.forgiven < mostForgiven {", New: "t.undone {",
	},
}
