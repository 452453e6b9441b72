package museum

// NATS answers no command of a delivery unless it is asked to.
var jetStreams = []Mutant{
	{
		Name: "NATS: an ack is not answered", Rule: "ack", Parent: "M24: nats-server#4786",
		Dir: stream, Func: "(*delivery).Ack", Package: stream, Run: "TestDelivery_EachMethod_SendsItsCommand",
		Old: "d.m.DoubleAck(ctx)", New: "d.m.Ack()",
	},
	{
		Name: "NATS: a retry does not wait", Rule: "ack",
		Dir: stream, Func: "(*delivery).Nak", Package: stream, Run: "TestDelivery_EachMethod_SendsItsCommand",
		Old: "if delay > 0", New: "if delay > 0 && false",
	},
	{
		Name: "NATS: a message that is given back never comes again", Rule: "ack",
		Dir: stream, Func: "(*delivery).Nak", Package: stream, Run: "TestDelivery_EachMethod_SendsItsCommand",
		Old: `text := "-NAK"`, New: `text := "+TERM"`,
	},
	{
		Name: "NATS: a letter with a header that the client refuses is never stored", Rule: "ack",
		Dir: stream, Func: "newMsg", Package: stream, Run: "TestLetter_HeadersThatClientRefuses_ComeBack",
		Old: "case !sendable(h):", New: "case false:",
	},
	{
		Name: "NATS: a copy that is sent back has the Nats-Msg-Id of the copy as its key", Rule: "ack",
		Dir: stream, Func: "headers", Package: stream, Run: "TestLetter_KeyIsNatsMsgID_CopyHasTheSameKey|TestLetter_NoNatsMsgID_CopyHasNone",
		Old: "if name == jetstream.MsgIDHeader &&", New: "if false &&",
	},
	{
		Name: "NATS: a copy does not keep the Nats-Msg-Id of its message", Rule: "ack",
		Dir: stream, Func: "letter", Package: stream, Run: "TestLetter_KeyIsNatsMsgID_CopyHasTheSameKey",
		Old: "newMsg(subject, hs, body, ids...)", New: "newMsg(subject, hs, body, ids[:0]...)",
	},
	{
		Name: "NATS: a message counts as given back before the server has it, and the next member's pull overtakes it", Rule: "ack",
		Dir: stream, Func: "(*delivery).Nak", Package: stream + "/natstest", Run: "TestNak_SlowConnection_ReturnsAfterServerHasMessage",
		Old: "d.s.request(ctx, d.m.Reply(), text)", New: "d.s.js.Conn().Publish(d.m.Reply(), []byte(text))",
	},
	{
		Name: "NATS: a message in work is given to others", Rule: "rule 7",
		Dir: stream, Func: "(*Source).Info", Package: stream + "/natstest", Run: "TestInfo_ReturnsTheServersSettings",
		Old: ", AckWait: ackWait(&c.Config)", New: "",
	},
	{
		Name: "NATS: a letter counts before its stream has it", Rule: "ack",
		Dir: stream, Func: "(*Source).copy", Package: stream + "/natstest", Run: "TestForward_StreamLimit_OmitsTheErrorText|TestForward_StreamRefuses_IsSentAgain",
		Old: "_, err := s.js.PublishMsg(ctx, m)", New: "err := s.js.Conn().PublishMsg(m)",
	},
	{
		Name: "NATS: a letter lives as long as its message had to", Rule: "durable",
		Dir: stream, Func: "isControl", Package: stream, Run: "TestLetter_ControlHeaders_AreDropped",
		Old: `"nats-"`, New: `"nats-expected-"`,
	},
	{
		Name: "NATS: what could not be rescued is forgotten", Rule: "ack",
		Dir: stream, Func: "(*Source).watch", Package: stream + "/natstest", Run: "TestWatchMaxDeliver_CopyRefused_TriesAgain",
		Old: "if waiting = append(waiting, a); again.IsZero() {", New: "if again.IsZero() {",
	},
	{
		Name: "NATS: what a member was told before its end is forgotten", Rule: "ack",
		Dir: stream, Func: "(*Source).WatchMaxDeliver", Package: stream + "/natstest", Run: "TestWatchMaxDeliver_ContextEnds_CopiesTheRest",
		Old: "return errors.Join(err, s.finish(ctx, sub, waiting))",
		New: `
			_ = waiting
			return err`,
	},
	{
		Name: "NATS: an advisory that has come and is not read is lost at the end", Rule: "ack",
		Dir: stream, Func: "(*Source).finish", Package: stream + "/natstest", Run: "TestWatchMaxDeliver_ContextEnds_CopiesTheRest",
		Old: "_ = sub.Drain()", New: "_ = sub.Unsubscribe()",
	},
	{
		Name: "NATS: what could not be copied in the end is not named", Rule: "ack",
		Dir: stream, Func: "(*Source).finish", Package: stream + "/natstest", Run: "TestWatchMaxDeliver_CopyFails_OthersGoOn|TestWatchMaxDeliver_ContextEnds_CopiesTheRest",
		Old: `
			len(waiting) == 0 {
			return errors.Join`,
		New: `
			len(waiting) >= 0 {
			return errors.Join`,
	},
	{
		Name: "NATS: a pull asks for more than its consumer allows", Rule: "rule 14",
		Dir: stream, Func: "(*Source).Next", Package: stream + "/natstest", Run: "TestNext_ConsumerLimits_AreKept",
		Old: "min(limit, allowed.batch)", New: "limit",
	},
	{
		Name: "NATS: a pull waits for longer than its consumer allows", Rule: "rule 14",
		Dir: stream, Func: "(*Source).Next", Package: stream + "/natstest", Run: "TestNext_ConsumerLimits_AreKept",
		Old: "FetchMaxWait(allowed.wait)", New: "FetchMaxWait(s.opt.PollWait)",
	},
	{
		Name: "NATS: a producer's message ends every member", Rule: "rule 14",
		Dir: stream, Func: "(*Source).explain", Package: stream + "/natstest", Run: "TestNext_MessageLooksLikeANotice_ServeGoesOn",
		Old: "case isDeleted(infoErr):", New: "case isDeleted(infoErr) || isDeleted(err):",
	},
	{
		Name: "NATS: copies go to a stream that drops them", Rule: "durable",
		Dir: stream, Func: "keeps", Package: stream + "/natstest", Run: "TestServe_StreamOfCopiesKeepsNothing_IsRefused",
		Old: "case c.Retention == jetstream.InterestPolicy:", New: "case false:",
	},
	{
		Name: "NATS: a MaxDeliver that is set later is not seen", Rule: "ack",
		Dir: stream, Func: "(*Source).Next", Package: stream + "/natstest", Run: "TestServe_MaxDeliverSetMeanwhile",
		Old: "err := s.readAgain(ctx); err != nil", New: "err := ctx.Err(); err != nil",
	},
	{
		Name: "NATS: a pull beyond MaxAckPending holds its messages back until it is full", Rule: "rule 7",
		Dir: stream, Func: "(*Source).Next", Package: stream + "/natstest", Run: "TestNext_OthersReachMaxAckPending_ReturnsTheRestAtOnce",
		Old: "s.consumer.Fetch(batch, jetstream.FetchMaxWait(min(takeWait, allowed.wait)))", New: "s.consumer.FetchNoWait(batch)",
	},
	{
		Name: "NATS: the first pull of a Serve holds its messages back while others have a part of MaxAckPending", Rule: "rule 7",
		Dir: stream, Func: "(*Source).beginRedelivery", Package: stream + "/natstest", Run: "TestNext_OthersReachMaxAckPending_ReturnsTheRestAtOnce",
		Old: "max(1, most-unsettled)", New: "most",
	},
	{
		Name: "NATS: a pull of messages that come again has a limit of time, and the server changes their order if it comes too late", Rule: "order",
		Dir: stream, Func: "(*Source).redelivered", Package: stream + "/natstest", Run: "TestOrder_PullsAreOverBeforeServerComes_IsKept",
		Old: "s.consumer.FetchNoWait(min(batch, room))", New: "s.consumer.Fetch(min(batch, room), jetstream.FetchMaxWait(takeWait))",
	},
	{
		Name: "NATS: only the first pull of a Serve keeps the order of messages that come again", Rule: "order",
		Dir: stream, Func: "(*Source).redelivered", Package: stream + "/natstest", Run: "TestOrder_PullsAreOverBeforeServerComes_IsKept",
		Old: "(len(ds) == 0 || slices.ContainsFunc(ds, isNew))", New: "(len(ds) >= 0 || slices.ContainsFunc(ds, isNew))",
	},
	{
		Name: "NATS: a pull asks for more than MaxAckPending", Rule: "rule 7",
		Dir: stream, Func: "(*Source).setLimits", Package: stream + "/natstest", Run: "TestNext_LimitIsAboveMaxAckPending_AsksForMaxAckPending",
		Old: "c.MaxRequestBatch, c.MaxAckPending", New: "c.MaxRequestBatch",
	},
	{
		Name: "NATS: an AckWait that is lowered later is not seen", Rule: "rule 7",
		Dir: stream, Func: "(*Source).readAgain", Package: stream + "/natstest", Run: "TestServe_AckWaitLoweredMeanwhile",
		Old: "d < known.ackWait/2", New: "d < 0",
	},
	{
		Name: "NATS: a limit that was changed is not seen", Rule: "rule 14",
		Dir: stream, Func: "(*Source).Info", Package: stream + "/natstest", Run: "TestNext_ConsumerLimits_AreKept",
		Old: "s.setLimits(&c.Config, ackWait(&c.Config))", New: "",
	},
	{
		Name: "NATS: a consumer that refuses every pull is served", Rule: "rule 14",
		Dir: stream, Func: "(*Options).check", Package: stream, Run: "TestNew_InvalidOptionsOrConsumer_IsRefused",
		Old: "if c.PriorityPolicy != jetstream.PriorityPolicyNone {", New: "if c.PriorityPolicy < jetstream.PriorityPolicyNone {",
	},
	{
		Name: "NATS: a letter beyond the limit of its stream is refused for ever", Rule: "ack",
		Dir: stream, Func: "tooLarge", Package: stream + "/natstest", Run: "TestForward_StreamLimit_OmitsTheErrorText/of_a_message",
		Old: "e.ErrorCode == jetstream.JSErrCodeStreamMessageExceedsMaximum ||", New: "",
	},
	{
		Name: "NATS: a letter with too much of headers is refused for ever", Rule: "ack",
		Dir: stream, Func: "tooLarge", Package: stream + "/natstest", Run: "TestForward_StreamLimit_OmitsTheErrorText/of_the_header",
		Old: "|| e.ErrorCode == headerExceedsMaximum)", New: ")",
	},
	{
		Name: "NATS: the copy of a message without a body looks like a notice of the server", Rule: "durable",
		Dir: stream, Func: "isControl", Package: stream, Run: "TestLetter_StatusWithoutBody_IsDropped",
		Old: `|| len(body) == 0 && name == "Status"`, New: "",
	},
	{
		Name: "NATS: an outbox's message with a header that the client changes arrives changed", Rule: "outbox",
		Dir: stream, Func: "(*sink).send", Package: stream + "/natstest", Run: "TestSink_HeadersThatClientRefuses",
		Old: "out := newMsg(m.Topic, hs, m.Body)",
		New: "out := newMsg(m.Topic, nil, m.Body)\nfor _, h := range hs {\nout.Header.Add(h.Name, h.Value)\n}",
	},
}
