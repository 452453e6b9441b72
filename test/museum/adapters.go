package museum

// The directories of the exhibits below.
const (
	stream = "consume/semelnats"
	kafka  = "consume/semelkafka"
	simple = "consume/semelsqs"
)

// Adapters of brokers: each has its own ways to lose a message, or to hand it out twice.
var adapters = []Mutant{
	{
		Name: "SQS: a refused part of a batch counts as deleted", Rule: "ack",
		Dir: simple, Func: "fail", Package: simple, Run: "TestAck_PartOfBatchFails_OnlyThatIsAnError",
		Old: `e.err = entryError(f)`, New: `e.err = nil`,
	},
	{
		Name: "SQS: a receive is broken off, and its messages stay hidden", Rule: "ack",
		Dir: simple, Func: "(*Source).receive", Package: simple, Run: "TestNext_ContextEnds_ReturnsTheMessagesOfTheReceive",
		Old: `context.WithoutCancel(ctx), wait+receiveGrace`, New: `ctx, wait+receiveGrace`,
	},
	{
		Name: "SQS: a receive that must not wait waits as long as the queue says", Rule: "rule 7",
		Dir: simple, Func: "(*Source).receive", Package: simple, Run: "TestNext_QueueWaits20Seconds_BurstIsNotDelayed",
		Old: `, sendWait)`, New: `)`,
	},
	{
		Name: "SQS: a consumer without messages asks for them all the time", Rule: "rule 7",
		Dir: simple, Func: "(*Source).Next", Package: simple, Run: "TestServe_NoMessages_UsesLittleCPU",
		Old: `wait := 1, s.opt.PollWait`, New: `wait := 1, time.Duration(0)`,
	},
	{
		Name: "SQS: an extension and the pause after it are in one request, and the extension counts", Rule: "ack",
		Dir: simple, Func: "(*delivery).setVisibility", Package: simple, Run: "TestNak_ExtendHasNoAnswer_IsSentAfterIt",
		Old: `case <-d.change.done:`, New: `case <-d.change.done:
			default:`,
	},
	{
		Name: "SQS: a pause beyond the 12 hours is refused, so that a retry comes too soon", Rule: "ack",
		Dir: simple, Func: "(*delivery).Nak", Package: simple, Run: "TestNak_PauseBeyondTheLimit_EndsAtTheLimit",
		Old: `min(delay, time.Until(d.limit))`, New: `min(delay, maxVisibility)`,
	},
	{
		Name: "SQS: an extension beyond the 12 hours is refused, and a message in work is given to others", Rule: "rule 7",
		Dir: simple, Func: "(*delivery).Extend", Package: simple, Run: "TestExtend_LongVisibility_HidesUntilTheLimit",
		Old: `min(d.s.visibility(), left)`, New: `d.s.visibility()`,
	},
	{
		Name: "SQS: a pause is rounded down, so that a retry comes too soon", Rule: "ack",
		Dir: simple, Func: "(*delivery).setVisibility", Package: simple, Run: "TestNak_AfterExtend_IsTheLastChange",
		Old: `(max(0, after) + time.Second - 1) / time.Second`, New: `max(0, after) / time.Second`,
	},
	{
		Name: "SQS: message groups are no order", Rule: "order",
		Dir: simple, Func: "(*Source).delivery", Package: simple, Run: "TestNext_FIFO_GroupAndIdentity",
		Old: `d.own.OrderKey = d.group()`, New: `d.own.OrderKey = ""`,
	},
	{
		Name: "SQS: the address of a body in S3 is run as the body", Rule: "ack",
		Dir: simple, Func: "unreadable", Package: simple, Run: "TestNext_BodyInS3_IsDeadLetter",
		Old: `err = errExtended`, New: `err = nil`,
	},
	{
		Name: "SQS: a message whose packed headers are damaged runs without them", Rule: "ack",
		Dir: simple, Func: "unreadable", Package: simple, Run: "TestNext_EncodedPartDamaged_IsDeadLetter",
		Old: `_, err = unpackHeaders(valueOf(a))`, New: `_, err = unpackHeaders("[]")`,
	},
	{
		Name: "SQS: the redrive policy's limit is not respected", Rule: "ack",
		Dir: simple, Func: "(*Source).Info", Package: simple, Run: "TestInfo_RedrivePolicy_LimitsDeliveries",
		Old: `if text := own["RedrivePolicy"]; text != "" {`, New: `if text := own["RedrivePolicy"]; text != "" && false {`,
	},
	{
		Name: "SQS: an order key uses up the receives of messages that wait", Rule: "ack",
		Dir: simple, Func: "(*Source).Info", Package: simple, Run: "TestInfo_RedrivePolicyAndOrderKey_IsRefused",
		Old: "if s.opt.OrderKey != nil {", New: "if false {",
	},
	{
		Name: "SQS: a receive uses up the receives of the messages of one group", Rule: "ack",
		Dir: simple, Func: "(*Source).batch", Package: simple, Run: "TestNext_RedrivePolicy_ReceivesOneMessageOfFIFO",
		Old: "if s.single.Load() {", New: "if false {",
	},
	{
		Name: "SQS: a message in work is given to others", Rule: "rule 7",
		Dir: simple, Func: "(*Source).Info", Package: simple, Run: "TestInfo_RedrivePolicy_LimitsDeliveries",
		Old: `, AckWait: s.visibility()`, New: ``,
	},
	{
		Name: "Kafka: a partition is handed over before what is done is committed", Rule: "ack",
		Dir: kafka, Func: "(*Source).revoked", Package: kafka + "/kafkatest", Run: "TestHandOver_CommitsFirst/kfake",
		Old: `
			s.commit(ctx, left)
			s.forget(left)`,
		New: `
			s.forget(left)
			s.commit(ctx, left)`,
	},
	{
		Name: "Kafka: a group that waits for a dead member is not left", Rule: "ack",
		Dir: kafka, Func: "(*Source).Close", Package: kafka + "/kafkatest", Run: "TestClose_GroupWaitsForADeadMember_Leaves/kfake/static:_false",
		Old: "err != nil && ctx.Err() != nil", New: "err != nil && ctx == nil",
	},
	{
		Name: "Kafka: a commit does not say in which topic", Rule: "scope",
		Dir: kafka, Func: "(*Source).commit", Package: kafka + "/kafkatest", Run: "TestHandOver_CommitsFirst/kfake",
		Old: "metadata(t.TopicID, c.Offset, n)", New: "metadata([16]byte{}, c.Offset, n)",
	},
	{
		Name: "Kafka: a partition comes back with the pause of an earlier time", Rule: "isolation",
		Dir: kafka, Func: "(*Source).assigned", Package: kafka, Run: "TestAssigned_PausedBefore_IsResumed",
		Old: "cl.ResumeFetchPartitions(came)", New: "_ = cl",
	},
	{
		Name: "Kafka: what is behind a refused letter overtakes it", Rule: "ack",
		Dir: kafka, Func: "(*batches).handle", Package: kafka, Run: "TestSettle_LetterRefused_LaterMessagesOfTheKeyWait",
		Old: "open[w.orderKey] = true", New: "",
	},
	{
		Name: "Kafka: a record given back goes behind the others", Rule: "ack",
		Dir: kafka, Func: "(*partition).back", Package: kafka, Run: "TestNak_DuringHandOver_IsNotReturnedAgain|TestNak_Record_IsReturnedAgainByOffset",
		Old: "p.queue = slices.Insert(p.queue, i, it)", New: "p.queue = slices.Insert(p.queue, max(i, len(p.queue)), it)",
	},
	{
		Name: "Kafka: a ledger passes over a message without its copy", Rule: "ack",
		Dir: kafka, Func: "(*batches).pass", Package: kafka, Run: "TestPass_CopyFails_IsNotCalled",
		Old: `
			if err := b.send(ctx, w); err != nil || w.passed {
				return err
			}
			err = b.l.Pass(ctx, w.it)
			w.passed = err == nil
			b.closes(err)
			return err`,
		New: `
			if !w.passed {
				err = b.l.Pass(ctx, w.it)
				b.closes(err)
				if err != nil {
					return err
				}
				w.passed = true
			}
			return b.send(ctx, w)`,
	},
	{
		Name: "SQS: a request without an answer delays the extensions of other messages", Rule: "isolation",
		Dir: simple, Func: "(*batcher).request", Package: simple, Run: "TestBatcher_RequestIsSlow_LaterEntryIsSent",
		Old: "b.launch()", New: "",
	},
}
