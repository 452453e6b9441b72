package museum

// The places of copies are the operator's, who can change them while a consumer runs.
var copyPlaces = []Mutant{
	{
		Name: "copies: a place that kept copies once counts for ever", Rule: "durable",
		Dir: "consume/driver", Func: "(*CopyChecks).Check", Package: "consume/driver", Run: "TestCopyChecks_PlaceChangesLater",
		Old: "began.Add(CopyCheckEach)", New: "began.Add(1000 * CopyCheckEach)",
	},
	{
		Name: "copies: a caller whose time is over answers for the others", Rule: "rule 14",
		Dir: "consume/driver", Func: "(*CopyChecks).Check", Package: "consume/driver", Run: "TestCopyChecks_NoAnswer",
		Old: "case ctx.Err() == nil:", New: "default:",
	},
	{
		Name: "NATS: a stream that drops copies is seen at the start only", Rule: "durable",
		Dir: stream, Func: "(*Source).copy", Package: stream + "/natstest", Run: "TestServe_StreamOfCopiesKeepsNothingMeanwhile",
		Old: "return checkPlaces(ctx, s.js, s.stream, s.durable, subject)", New: "return ctx.Err()",
	},
	{
		Name: "Kafka: a topic that compacts copies is seen at the start only", Rule: "durable",
		Dir: kafka, Func: "checkCopies", Package: kafka + "/kafkatest", Run: "TestServe_TopicOfCopiesCompactedMeanwhile/kfake",
		Old: "configs[topic].keepsCopies(topic)", New: "topicConfig{keeps: configs[topic].keeps}.keepsCopies(topic)",
	},
	{
		Name: "RabbitMQ: a queue of copies drops confirmed ones when an operator limits its length", Rule: "durable",
		Dir: rabbit, Func: "(*topology).letters", Package: rabbit, Run: "TestForward_PolicyLimitsQueueOfCopies/classic",
		Old: "amqp.QueueOverflowArg: amqp.QueueOverflowRejectPublish", New: "",
	},
	{
		Name: "Pulsar: the subscription of the copies is made at the start only", Rule: "durable",
		Dir: pulsar, Func: "(*delivery).Forward", Package: pulsar, Run: "TestForward_SubscriptionDeleted_IsMadeAgain",
		Old: "return d.l.s.keepCopiesSoon(ctx, topic)", New: "return ctx.Err()",
	},
	{
		Name: "Kafka: a partition that is added begins at its end", Rule: "ack",
		Dir: kafka, Func: "(*Source).firstBegin", Package: kafka + "/kafkatest", Run: "TestStart_LatestAndPartitionAdded_LosesNothing/kfake",
		Old: "at.partition >= n", New: "at.partition < 0",
	},
	{
		Name: "Kafka: a partition that is late in a new group begins at its first message", Rule: "ack",
		Dir: kafka, Func: "partitionsAtStart", Package: kafka + "/kafkatest", Run: "TestStart_LatestAndOnePartitionIsLate",
		Old: "p.Offset >= 0 && n > 0", New: "p.Offset >= 0 && n < 0",
	},
	{
		Name: "Kafka: the number of partitions at the group's start is lost at the next commit", Rule: "ack",
		Dir: kafka, Func: "metadata", Package: kafka, Run: "TestMetadata_Written_IsReadBack",
		Old: "n.partitions > 0", New: "n.partitions < 0",
	},
	{
		Name: "Pulsar: a partition that is added begins after its newest message", Rule: "ack",
		Dir: pulsar, Func: "(*Source).position", Package: pulsar, Run: "TestNext_LatestAndPartitionAdded_BeginsAtItsFirstMessage",
		Old: "!s.begun.Load()", New: "true",
	},
}
