package museum

// semel deliver stands between a broker and a service in another language. It must not
// lose a message, must not take for a result what is none, and must not ask a service
// that is away for each message.
var deliveries = []Mutant{
	{
		Name: "deliver: a message of Kafka that waits stops its partition, however many may wait", Rule: "isolation",
		Dir: "cmd/semel/semel-deliver/internal/address", Func: "(*address).kafkaOptions", Package: "cmd/semel/semel-deliver/internal/address", Run: "TestKafkaOptions_InFlight_SetsOutstanding",
		Old: "max(leastOutstanding, waitingShare*o.InFlight)", New: "leastOutstanding",
	},
	{
		Name: "deliver: RabbitMQ sends more messages ahead than the address allows", Rule: "deliver",
		Dir: "cmd/semel/semel-deliver/internal/address", Func: "(*address).prefetch", Package: "cmd/semel/semel-deliver/internal/address", Run: "TestPrefetch_Option_BoundsMessages",
		Old: "n == 0 && err == nil", New: "err == nil",
	},
	{
		Name: "deliver: a request in progress counts as done, because its status is listed", Rule: "doubt",
		Dir: delivery, Func: "(*Statuses).effect", Package: delivery, Run: "TestJudge_RefusalOfSemel",
		Old: "whole && !refusal && slices.Contains(s.Done, a.Status)", New: "whole && slices.Contains(s.Done, a.Status)",
	},
	{
		Name: "deliver: silence counts as done", Rule: "doubt",
		Dir: delivery, Func: "(*Statuses).effect", Package: delivery, Run: "TestJudge_EachAnswer",
		Old: "return doubt, v.Reason", New: "return done, v.Reason",
	},
	{
		Name: "deliver: a request that was not sent is in doubt", Rule: "http",
		Dir: delivery, Func: "(*sender).send", Package: delivery, Run: "TestServe_ServiceIsAway",
		Old: "NotBegun: upstream.NotSent(err),", New: "",
	},
	{
		Name: "deliver: a request that cannot be made stops all messages for ever", Rule: "deliver",
		Dir: delivery, Func: "(*sender).handle", Package: delivery, Run: "TestServe_RequestCannotBeMade",
		Old: "if upstream.Refused(err) {", New: "if false {",
	},
	{
		Name: "deliver: the content type of an event is not checked", Rule: "deliver",
		Dir: cloudEvent, Func: "(*Event).check", Package: cloudEvent, Run: "TestRead_Malformed",
		Old: "if !IsHeaderValue(e.ContentType) {", New: "if false {",
	},
	{
		Name: "deliver: a service that is away ends its messages", Rule: "deliver",
		Dir: upstream, Func: "(*transmission).getConn", Package: upstream, Run: "TestRefused",
		Old: "s.accepted = true", New: "",
	},
	{
		Name: "deliver: half an answer counts", Rule: "doubt",
		Dir: delivery, Func: "(*Statuses).effect", Package: delivery, Run: "TestJudge_EachAnswer|TestJudge_StatusFlags",
		Old: "whole := a.Status != 0 && !a.Broken", New: "whole := a.Status != 0",
	},
	{
		Name: "deliver: an answer that asks for a later request counts as an attempt", Rule: "rule 13",
		Dir: delivery, Func: "(*sender).settle", Package: delivery, Run: "TestServe_EachAnswer",
		Old: "n = s.laters.add(x) } return semel.NoEffect(again{why, s.pauseOf(v, n)})", New: "n = s.laters.add(x) }; return again{why, s.pauseOf(v, n)}",
	},
	{
		Name: "deliver: a message that is refused comes again for ever", Rule: "deliver",
		Dir: delivery, Func: "(*streaks).add", Package: delivery, Run: "TestServe_EachAnswer",
		Old: "s.counts[key]++", New: "s.counts[key] = 1",
	},
	{
		Name: "deliver: a message that is later again and again comes each second", Rule: "deliver",
		Dir: delivery, Func: "(*sender).settle", Package: delivery, Run: "TestServe_LaterAgain_PausesGrow",
		Old: "n = s.laters.add(x)", New: "n = 1",
	},
	{
		Name: "deliver: a question to the reconcile hook holds the place of a request", Rule: "deliver",
		Dir: delivery, Func: "(*sending).ask", Package: delivery, Run: "TestServe_HookHangs_OtherMessagesAreSent",
		Old: "s.leave()", New: "",
	},
	{
		Name: "deliver: a message that could not be asked about goes to the quarantine", Rule: "deliver",
		Dir: delivery, Func: "(*runner).hold", Package: delivery, Run: "TestServe_OthersDoubtsWithoutWait_EachIsAskedAbout",
		Old: "unasked && errors.Is(err, semel.ErrParked)", New: "false",
	},
	{
		Name: "deliver: questions to the reconcile hook take all handlers", Rule: "deliver",
		Dir: delivery, Func: "newRunner", Package: delivery, Run: "TestServe_HookHangs_OtherMessagesAreSent",
		Old: "make(chan struct{}, questions)", New: "make(chan struct{}, 1000*questions)",
	},
	{
		Name: "deliver: a message that the hook lets go is sent beside the places", Rule: "deliver",
		Dir: delivery, Func: "(*sending).handler", Package: delivery, Run: "TestServe_HookSaysNothingHappened",
		Old: "if s.freePlace == nil {", New: "if false {",
	},
	{
		Name: "deliver: each message asks a service that is away", Rule: "deliver",
		Dir: delivery, Func: "(*pauses).admit", Package: delivery, Run: "TestGate_Paused",
		Old: "p.probing || rest > 0", New: "rest > 0",
	},
	{
		Name: "deliver: the answer to a request of before the pause ends it", Rule: "deliver",
		Dir: delivery, Func: "(*pauses).answered", Package: delivery, Run: "TestGate_AnswerToOlderRequest_DoesNotOpen",
		Old: "if entered.Before(p.began) {", New: "if false {",
	},
	{
		Name: "deliver: a try that sent nothing stops all messages for ever", Rule: "deliver",
		Dir: delivery, Func: "(*gate).leave", Package: delivery, Run: "TestGate_TryWithoutAnswer",
		Old: "g.pauses.probing = false", New: "",
	},
	{
		Name: "deliver: the service has more requests at once than it may have", Rule: "deliver",
		Dir: delivery, Func: "newRunner", Package: delivery, Run: "TestServe_SlowService_HasAtMost",
		Old: "make(chan struct{}, requests)", New: "make(chan struct{}, 2*requests)",
	},
	{
		Name: "deliver: messages of two tenants with one key are one", Rule: "scope",
		Dir: delivery, Func: "(*Calls).Call", Package: delivery, Run: "TestServe_ScopeHeader",
		Old: "call.Tenant = tenant", New: "_ = tenant",
	},
	{
		Name: "deliver: another body with the key counts as a duplicate", Rule: "rule 12",
		Dir: delivery, Func: "(*Calls).Call", Package: delivery, Run: "TestServe_Duplicates",
		Old: "if !c.AnyBody {", New: "if c.AnyBody {",
	},
	{
		Name: "deliver: a message that failed by the reconciler's answer is done", Rule: "rule 17",
		Dir: delivery, Func: "(*runner).Run", Package: delivery, Run: "TestServe_Reconcile_DecidesWhatIsInDoubt",
		Old: "res.Code >= http.StatusBadRequest", New: "res.Code >= 1000",
	},
	{
		Name: "deliver: the attributes of a CloudEvent are replaced", Rule: "http",
		Dir: cloudEvent, Func: "isEvent", Package: cloudEvent, Run: "TestWrite_Binary",
		Old: "return true", New: "return false",
	},
	{
		Name: "deliver: large messages are taken without a limit", Rule: "deliver",
		Dir: delivery, Func: "(*bounded).Next", Package: delivery, Run: "TestServe_MaxBytes",
		Old: "b.held.Add(n)", New: "b.held.Add(0)",
	},
	{
		Name: "deliver: more messages are taken than --in-flight", Rule: "deliver",
		Dir: delivery, Func: "(*Service).consumer", Package: delivery, Run: "TestServe_SlowService_MessagesHereHaveLimit",
		Old: "InFlight: o.InFlight,", New: "InFlight: 2*o.InFlight,",
	},
	{
		Name: "deliver: failures of requests from before a pause make it longer", Rule: "deliver",
		Dir: delivery, Func: "(*pauses).pause", Package: delivery, Run: "TestGate_OlderRequestsFailLater_AnswerOpens",
		Old: "entered.Before(p.began)", New: "false",
	},
	{
		Name: "a handler's own pause is ignored", Rule: "deliver",
		Dir: consumer + "/driver", Func: "Policy.retry", Package: consumer + "/driver", Run: "TestDecide_HandlersErrorHasRetryAfter",
		Old: "ok && r.FromHandler", New: "ok && !r.FromHandler",
	},
}
