package museum

// The directories of the exhibits below.
const (
	rabbit = "consume/semelamqp"
	stream = "consume/semelnats"
	kafka  = "consume/semelkafka"
)

// Adapters of brokers: each has its own ways to lose a message, or to hand it out twice.
var adapters = []Mutant{
	{
		Name: "NATS: an ack is not answered", Rule: "ack", Parent: "M24: nats-server#4786",
		File: "consume/semelnats/delivery.go", Package: stream, Run: "TestDelivery_EachMethod_SendsItsCommand",
		Old: "d.m.DoubleAck(ctx)", New: "d.m.Ack()",
	},
	{
		Name: "NATS: a retry does not wait", Rule: "ack",
		File: "consume/semelnats/delivery.go", Package: stream, Run: "TestDelivery_EachMethod_SendsItsCommand",
		Old: "d.m.NakWithDelay(delay)", New: "d.m.Nak()",
	},
	{
		Name: "NATS: a message that is given back never comes again", Rule: "ack",
		File: "consume/semelnats/delivery.go", Package: stream, Run: "TestDelivery_EachMethod_SendsItsCommand",
		Old: "d.m.Nak()", New: "d.m.Term()",
	},
	{
		Name: "NATS: a message in work is given to others", Rule: "rule 7",
		File: "consume/semelnats/source.go", Package: stream + "/natstest", Run: "TestInfo_ReturnsTheServersSettings",
		Old: ", AckWait: ackWait(&c.Config)}", New: "}",
	},
	{
		Name: "NATS: a letter counts before its stream has it", Rule: "ack",
		File: "consume/semelnats/delivery.go", Package: stream + "/natstest", Run: "TestForward_StreamLimit_OmitsTheErrorText|TestForward_StreamRefuses_IsSentAgain",
		Old: "_, err := s.js.PublishMsg(ctx, m)", New: "err := s.js.Conn().PublishMsg(m)",
	},
	{
		Name: "NATS: a letter lives as long as its message had to", Rule: "durable",
		File: "consume/semelnats/message.go", Package: stream, Run: "TestLetter_ControlHeaders_AreDropped",
		Old: `const control = "nats-"`, New: `const control = "nats-expected-"`,
	},
	{
		Name: "NATS: what could not be rescued is forgotten", Rule: "ack",
		File: "consume/semelnats/advisory.go", Package: stream + "/natstest", Run: "TestWatchMaxDeliver_CopyRefused_TriesAgain",
		Old: "if waiting = append(waiting, a); again.IsZero() {", New: "if again.IsZero() {",
	},
	{
		Name: "RabbitMQ: a copy that came back passes for published", Rule: "ack",
		File: "consume/semelamqp/outlet.go", Package: rabbit, Run: "TestForward_BrokerDoesNotKeepTheCopy_Fails",
		Old: "\t\tdelete(o.made, name)\n\t\treturn errUnroutable\n", New: "\t\tdelete(o.made, name)\n",
	},
	{
		Name: "RabbitMQ: a copy that a full queue refuses passes for kept", Rule: "ack",
		File: "consume/semelamqp/publisher.go", Package: rabbit, Run: "TestForward_BrokerDoesNotKeepTheCopy_Fails",
		Old: "\t<-confirm.Done()\n\treturn o.judge(l, confirm.Acked(), q.name)\n", New: "\t<-confirm.Done()\n\treturn o.judge(l, true, q.name)\n",
	},
	{
		Name: "RabbitMQ: a message is acked before its copy is confirmed", Rule: "ack",
		File: "consume/semelamqp/publisher.go", Package: rabbit, Run: "TestForward_LateConfirm_IsWaitedFor",
		Old: `return fmt.Errorf("the broker has not confirmed it yet: %w", ctx.Err())`, New: "return nil",
	},
	{
		Name: "RabbitMQ: an ack is of all before it, too", Rule: "ack",
		File: "consume/semelamqp/delivery.go", Package: rabbit, Run: "TestAck_AcksOneMessage",
		Old: "d.raw.Ack(false)", New: "d.raw.Ack(true)",
	},
	{
		Name: "RabbitMQ: a delivery of an old channel is acked on the new one", Rule: "ack",
		File: "consume/semelamqp/delivery.go", Package: rabbit, Run: "TestAck_OldChannel_IsErrGone",
		Old: "\tif err := d.gone(); err != nil {\n\t\treturn err\n\t}\n\tif err := d.raw.Ack(false); err != nil {",
		New: "\tif d.back {\n\t\treturn d.gone()\n\t}\n\tif err := d.s.link.Load().ch.Ack(d.raw.DeliveryTag, false); err != nil {",
	},
	{
		Name: "RabbitMQ: what was sent ahead is dropped at the end", Rule: "ack",
		File: "consume/semelamqp/link.go", Package: rabbit, Run: "TestInfo_GivenBack_IsNotOvertaken|TestStop_SentAhead_GoesBack",
		Old: "d.Nack(false, true)", New: "d.Nack(false, false)",
	},
	{
		Name: "RabbitMQ: a retry counts from one again", Rule: "rule 13",
		File: "consume/semelamqp/message.go", Package: rabbit, Run: "TestRetry_KeepsMessageAndCount",
		Old: "int64(deliveries(d))", New: "int64(1)",
	},
	{
		Name: "RabbitMQ: a second retry loses where the message was published to", Rule: "rule 15",
		File: "consume/semelamqp/message.go", Package: rabbit, Run: "TestRetry_KeepsMessageAndCount",
		Old: "\t\tif _, has := p.Headers[h.Name]; !has {\n", New: "\t\tif h.Value != \"\" {\n",
	},
	{
		Name: "Kafka: a partition is handed over before what is done is committed", Rule: "ack",
		File: "consume/semelkafka/rebalance.go", Package: kafka + "/kafkatest", Run: "TestHandOver_CommitsFirst/kfake",
		Old: "\ts.commit(ctx, left)\n\ts.forget(left)\n", New: "\ts.forget(left)\n\ts.commit(ctx, left)\n",
	},
	{
		Name: "Kafka: a group that waits for a dead member is not left", Rule: "ack",
		File: "consume/semelkafka/leave.go", Package: kafka + "/kafkatest", Run: "TestClose_GroupWaitsForADeadMember_Leaves/kfake/static:_false",
		Old: "err != nil && ctx.Err() != nil", New: "err != nil && ctx == nil",
	},
	{
		Name: "Kafka: a commit does not say in which topic", Rule: "scope",
		File: "consume/semelkafka/commit.go", Package: kafka + "/kafkatest", Run: "TestHandOver_CommitsFirst/kfake",
		Old: "t.Partitions[j].Metadata = metadata(t.TopicID)", New: "t.Partitions[j].Metadata = metadata([16]byte{})",
	},
	{
		Name: "Kafka: a partition comes back with the pause of an earlier time", Rule: "lanes",
		File: "consume/semelkafka/rebalance.go", Package: kafka, Run: "TestAssigned_PausedBefore_IsResumed",
		Old: "\t\tcl.ResumeFetchPartitions(came) // the client remembers pauses of an earlier time\n", New: "\t\t_ = cl\n",
	},
	{
		Name: "Kafka: what is behind a refused letter overtakes it", Rule: "ack",
		File: "consume/semelkafka/settle.go", Package: kafka, Run: "TestSettle_LetterRefused_LaterMessagesOfTheLaneWait",
		Old: "\t\t\topen[w.lane] = true\n", New: "",
	},
	{
		Name: "Kafka: a record given back goes behind the others", Rule: "ack",
		File: "consume/semelkafka/partition.go", Package: kafka, Run: "TestNak_DuringHandOver_IsNotReturnedAgain|TestNak_Record_IsReturnedAgainByOffset",
		Old: "p.queue = slices.Insert(p.queue, i, it)", New: "p.queue = slices.Insert(p.queue, max(i, len(p.queue)), it)",
	},
	{
		Name: "Kafka: a ledger passes over a message without its copy", Rule: "ack",
		File: "consume/semelkafka/settle.go", Package: kafka, Run: "TestPass_CopyFails_IsNotCalled",
		Old: "\tif err := b.send(ctx, w); err != nil || w.passed {\n\t\treturn err\n\t}\n\terr := b.l.Pass(ctx, w.it)\n\tw.passed = err == nil\n\tb.closes(err)\n\treturn err\n",
		New: "\tif !w.passed {\n\t\terr := b.l.Pass(ctx, w.it)\n\t\tb.closes(err)\n\t\tif err != nil {\n\t\t\treturn err\n\t\t}\n\t\tw.passed = true\n\t}\n\treturn b.send(ctx, w)\n",
	},
	{
		Name: "NATS: what a member was told before its end is forgotten", Rule: "ack",
		File: "consume/semelnats/advisory.go", Package: stream + "/natstest", Run: "TestWatchMaxDeliver_ContextEnds_CopiesTheRest",
		Old: "\treturn errors.Join(err, s.finish(ctx, sub, waiting))", New: "\t_ = waiting\n\treturn err",
	},
	{
		Name: "NATS: an advisory that has come and is not read is lost at the end", Rule: "ack",
		File: "consume/semelnats/advisory.go", Package: stream + "/natstest", Run: "TestWatchMaxDeliver_ContextEnds_CopiesTheRest",
		Old: "_ = sub.Drain() //", New: "_ = sub.Unsubscribe() //",
	},
	{
		Name: "NATS: what could not be copied in the end is not named", Rule: "ack",
		File: "consume/semelnats/advisory.go", Package: stream + "/natstest", Run: "TestWatchMaxDeliver_CopyFails_OthersGoOn|TestWatchMaxDeliver_ContextEnds_CopiesTheRest",
		Old: "len(waiting) == 0 {\n\t\treturn errors.Join", New: "len(waiting) >= 0 {\n\t\treturn errors.Join",
	},
	{
		Name: "NATS: a pull asks for more than its consumer allows", Rule: "rule 14",
		File: "consume/semelnats/source.go", Package: stream + "/natstest", Run: "TestNext_ConsumerLimits_AreKept",
		Old: "FetchNoWait(min(limit, allowed.batch))", New: "FetchNoWait(limit)",
	},
	{
		Name: "NATS: a pull waits for longer than its consumer allows", Rule: "rule 14",
		File: "consume/semelnats/source.go", Package: stream + "/natstest", Run: "TestNext_ConsumerLimits_AreKept",
		Old: "FetchMaxWait(allowed.wait)", New: "FetchMaxWait(s.opt.PollWait)",
	},
	{
		Name: "NATS: a limit that was changed is not seen", Rule: "rule 14",
		File: "consume/semelnats/source.go", Package: stream + "/natstest", Run: "TestNext_ConsumerLimits_AreKept",
		Old: "\ts.setLimits(&c.Config)\n", New: "",
	},
	{
		Name: "NATS: a consumer that refuses every pull is served", Rule: "rule 14",
		File: "consume/semelnats/options.go", Package: stream, Run: "TestNew_InvalidOptionsOrConsumer_IsRefused",
		Old: "if c.PriorityPolicy != jetstream.PriorityPolicyNone {", New: "if c.PriorityPolicy < jetstream.PriorityPolicyNone {",
	},
	{
		Name: "NATS: a letter beyond the limit of its stream is refused for ever", Rule: "ack",
		File: "consume/semelnats/delivery.go", Package: stream + "/natstest", Run: "TestForward_StreamLimit_OmitsTheErrorText/of_a_message",
		Old: "e.ErrorCode == jetstream.JSErrCodeStreamMessageExceedsMaximum || ", New: "",
	},
	{
		Name: "NATS: a letter with too much of headers is refused for ever", Rule: "ack",
		File: "consume/semelnats/delivery.go", Package: stream + "/natstest", Run: "TestForward_StreamLimit_OmitsTheErrorText/of_the_header",
		Old: " || e.ErrorCode == headerExceedsMaximum)", New: ")",
	},
	{
		Name: "RabbitMQ: what was sent ahead overtakes what was given back", Rule: "ack",
		File: "consume/semelamqp/source.go", Package: rabbit, Run: "TestInfo_GivenBack_IsNotOvertaken",
		Old: "l != nil && l.holdsBack() && l.mark(errLost) {", New: "l != nil && l.holdsBack() && s.opt.OrderKey == nil {",
	},
	{
		Name: "RabbitMQ: a copy's late failure is the next one's", Rule: "ack",
		File: "consume/semelamqp/delivery.go", Package: rabbit, Run: "TestForward_LateFailure_SendsAgain",
		Old: "if c == nil || c.failed() {", New: "if c == nil {",
	},
}
