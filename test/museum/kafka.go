package museum

// Kafka knows one offset for each partition, and what is below it is gone.
var kafkas = []Mutant{
	{
		Name: "kafka: a partition without a leader stops the outbox of its topic", Rule: "outbox",
		Dir: kafka, Func: "NewSink", Package: kafka + "/kafkatest", Run: "TestNewSink_ClientIsUnfit",
		Old: "client.OptValue(kgo.AllowIdempotentProduceCancellation) == false", New: "client == nil",
	},
	{
		Name: "kafka: a hook that accepts one client stops a source", Rule: "ack",
		Dir: "consume/semelkafka", Func: "(*Source).newMember", Package: "consume/semelkafka/kafkatest", Run: "TestSource_HookAcceptsOneClient",
		Old: "plain.Close()", New: "defer plain.Close()",
	},
	{
		Name: "Kafka: a broker that died slows a quiet topic", Rule: "ack",
		Dir: kafka, Func: "(*dialWatch).OnBrokerRead", Package: kafka, Run: "TestNext_FetchAfterFailedConnection_IsNoError",
		Old: "w.s.dialed = nil", New: "",
	},
	{
		Name: "Kafka to PostgreSQL: counts of messages whose partitions have gone stay for ever", Rule: "rule 14",
		Dir: kafkapg, Func: "(*keyedBatch).result", Package: kafkapg, Run: "TestKeyed_PartitionsGoWhileCommitsFail_CountsAreBounded",
		Old: "len(b.uncommitted) >= maxUncommitted", New: "false",
	},
	{
		Name: "Kafka: a message that its producer compresses is never dead-lettered", Rule: "ack",
		Dir: kafka, Func: "largeCopies", Package: "consume/semelkafka/kafkatest", Run: "TestForward_CompressedBeyondTheLimit_IsStored/kfake",
		Old: "kgo.ProducerBatchMaxBytes(most), ", New: "",
	},
	{
		Name: "Kafka: the highest offset that is done is committed", Rule: "ack", Parent: "M22: highest offset committed",
		Dir: kafka, Func: "(*watermark).done", Package: "consume/semelkafka", Run: "TestWatermark_StaysBelowTheLowestUnfinishedRecord",
		Old: "for n < len(w.entries) && w.entries[n].done {",
		New: "for n < len(w.entries) && (w.entries[n].done || w.entries[n].offset < offset) {",
	},
	{
		Name: "Kafka: the start at the end is known after the first success only", Rule: "ack",
		Dir: kafka, Func: "(*Source).begin", Package: "consume/semelkafka/kafkatest", Run: "TestStart_LatestAndNoSuccessBeforeRestart_LosesNothing/kfake",
		Old: "case which == endOffset:", New: "case which == endOffset:\nreturn start, nil\ncase which == 0:",
	},
	{
		Name: "Kafka: a skip to the end ends the source", Rule: "ack",
		Dir: kafka, Func: "(*Source).lostUnread", Package: "consume/semelkafka/kafkatest", Run: "TestOutOfRange_LatestAndNoSuccessBeforeRestart_LosesNothing/kfake",
		Old: "s.opt.OutOfRange == Latest &&", New: "s.opt.OutOfRange > Refuse &&",
	},
	{
		Name: "Kafka: a late error about the position skips what came meanwhile", Rule: "ack",
		Dir: kafka, Func: "(*Source).afterLost", Package: "consume/semelkafka/kafkatest", Run: "TestOutOfRange_PositionIsInTheLog_LosesNothing",
		Old: "first <= position &&", New: "first < 0 &&",
	},
	{
		Name: "Kafka: a group without a commit begins at no offset", Rule: "ack",
		Dir: kafka, Func: "(*Source).begin", Package: "consume/semelkafka/kafkatest", Run: "TestOutOfRange_NothingIsReadYet_GoesOnAtTheEnd",
		Old: "s.opt.OutOfRange == Latest:", New: "s.opt.OutOfRange == Refuse:",
	},
	{
		Name: "Kafka: the marker of a transaction is an unread message", Rule: "ack",
		Dir: kafka, Func: "(*partition).pass", Package: "consume/semelkafka/kafkatest", Run: "TestTransaction_OnlyMarkerUnread_IsNoLoss/kfake",
		Old: "end := r.Offset + 1", New: "end := r.Offset",
	},
	{
		Name: "Kafka: a record that is handed out again counts twice", Rule: "ack",
		Dir: kafka, Func: "(*watermark).out", Package: "consume/semelkafka", Run: "TestWatermark_RecordReturnedAgain_CountsOnce",
		Old: "n == 0 || w.entries[n-1].offset < e.offset {", New: "n >= 0 {",
	},
	{
		Name: "Kafka: a position does not know its log", Rule: "ack", Parent: "an offset without a leader epoch: messages skipped after an unclean leader election (KIP-320)",
		Dir: kafka, Func: "(*Source).verified", Package: "consume/semelkafka/kafkatest", Run: "TestServeBatches_OtherMessageBeforePosition_Returns/last_time/kfake",
		Old: "if !check.last.isKnown() ||", New: "if check.last.isKnown() ||",
	},
	{
		Name: "Kafka: the leader epoch of the message before the position is not compared", Rule: "ack",
		Dir: kafka, Func: "(*partition).compareLast", Package: "consume/semelkafka/kafkatest", Run: "TestServeBatches_OtherMessageBeforePosition_Returns/last_epoch/kfake",
		Old: "case r.LeaderEpoch != c.last.LeaderEpoch ||", New: "case",
	},
	{
		Name: "Kafka: a message that the retention has deleted is a loss", Rule: "rule 14",
		Dir: kafka, Func: "(*Source).verified", Package: "consume/semelkafka/kafkatest", Run: "TestServeBatches_SameLog_GoesOn/kfake",
		Old: "err != nil || first > check.offset {", New: "err != nil || first < 0 {",
	},
	{
		Name: "Kafka: a partition that had no leader at the start begins above a log that was cut", Rule: "ack",
		Dir: kafka, Func: "(*Source).validated", Package: "consume/semelkafka/kafkatest", Run: "TestStart_LogWasCutBelowPosition_ServeReturns/later",
		Old: "p.EndOffset >= from.Offset {", New: "p.EndOffset >= 0 {",
	},
	{
		Name: "Kafka: the timestamp of the last message is not committed", Rule: "ack",
		Dir: kafka, Func: "metadata", Package: "consume/semelkafka", Run: "TestMetadata_Written_IsReadBack",
		Old: "if n.last.isKnown() {", New: "if !n.last.isKnown() {",
	},
	{
		Name: "Kafka: the dead letters of an order key overtake each other", Rule: "isolation",
		Dir: kafka, Func: "(*batches).settleAll", Package: "consume/semelkafka", Run: "TestSettle_LettersOfAKey_KeepTheirOrder",
		Old: "open[w.orderKey] = true", New: "open[w.orderKey] = false",
	},
	{
		Name: "Kafka: after a skip to the end a ledger waits for the deleted messages", Rule: "rule 14",
		Dir: kafka, Func: "(*Source).rewound", Package: "consume/semelkafka/kafkatest", Run: "TestServeBatches_OutOfRangeLatest_GoesOnAtTheEnd/kfake",
		Old: "p.from = old.from", New: "p.from = old.from + 1",
	},
	{
		Name: "Kafka: a ledger reads the deleted markers of transactions", Rule: "rule 14",
		Dir: kafka, Func: "(*Source).ownOnce", Package: "consume/semelkafka/kafkatest", Run: "TestServeBatches_SameLog_GoesOn/kfake",
		Old: "check.start = committed", New: "check.start = next",
	},
	{
		Name: "Kafka: what was prepared ahead is handled in place of another batch", Rule: "ack",
		Dir: kafka, Func: "(*batches).prepared", Package: "consume/semelkafka", Run: "TestPrepared_OtherBatch_IsDropped",
		Old: "return it.Message == w.m }", New: "return true }",
	},
	{
		Name: "Kafka: a batch is prepared beyond the end of the one before it", Rule: "isolation",
		Dir: kafka, Func: "(*batches).handlePrepared", Package: "consume/semelkafka/kafkatest", Run: "TestServeBatches_HandlerCallsGoexit_EndsThePreparation",
		Old: "defer looks.Wait()", New: "",
	},
	{
		Name: "Kafka: what was taken ahead is lost in an outage", Rule: "ack",
		Dir: kafka, Func: "(*batches).taken", Package: "consume/semelkafka", Run: "TestLookAhead_Outage_GivesMessagesBack",
		Old: "_ = d.Nak(ctx, 0)", New: "_ = d",
	},
	{
		Name: "Kafka: a partition without a leader stops all that came with it", Rule: "isolation",
		Dir: kafka, Func: "(*Source).adjust", Package: "consume/semelkafka/kafkatest", Run: "TestStart_OnePartitionHasNoLeader_OthersAreServed",
		Old: "case <-wait.C:", New: "case <-(chan time.Time)(nil):",
	},
	{
		Name: "Kafka: a partition that has a leader again stays paused", Rule: "rule 14",
		Dir: kafka, Func: "(*Source).beginLate", Package: "consume/semelkafka/kafkatest", Run: "TestStart_OnePartitionHasNoLeader_OthersAreServed",
		Old: "if s.parts[p.partitionID] == p {", New: "if s.parts[p.partitionID] != p {",
	},
	{
		Name: "Kafka: a partition without a committed offset is never read if its start is found late", Rule: "rule 14",
		Dir: kafka, Func: "(*Source).beginLate", Package: "consume/semelkafka/kafkatest", Run: "TestStart_NewGroupAndNoLeader_PartitionIsReadLater",
		Old: "if s.parts[p.partitionID] == p {", New: "if _, ok := cl.CommittedOffsets()[p.topic][p.partition]; ok && s.parts[p.partitionID] == p {",
	},
	{
		Name: "Kafka: a member takes a partition over that it has handed over", Rule: "rule 4",
		Dir: kafka, Func: "(*Source).revoked", Package: "consume/semelkafka", Run: "TestRevoked_LedgerIsAsked_WaitsForTheAnswer",
		Old: "s.awaitBeginnings(wait, left)", New: "",
	},
	{
		Name: "Kafka: an order key is due when its last message is", Rule: "rule 14",
		Dir: kafka, Func: "(*batches).hold", Package: "consume/semelkafka", Run: "TestHold_OrderKey_IsDueWithItsFirstMessage",
		Old: "due.After(h.due) && !slices.ContainsFunc(h.works, w.waitsFor) {", New: "due.After(h.due) {",
	},
	{
		Name: "Kafka: large messages of a topic are sent in one batch", Rule: "outbox",
		Dir: kafka, Func: "(*producer).produce", Package: "consume/semelkafka/kafkatest", Run: "TestSink_BatchTooLarge",
		Old: "make(chan struct{}, 1)", New: "make(chan struct{}, 1000)",
	},
	{
		Name: "Kafka: a message waits for one of a partition that is away", Rule: "outbox",
		Dir: kafka, Func: "(*producer).produce", Package: "consume/semelkafka/kafkatest", Run: "TestSink_MessageTooLargeWhileOnePartitionIsAway",
		Old: "err := p.client.ProduceSync(ctx, r).FirstErr()",
		New: "all, _ := p.turns.LoadOrStore(\"\", make(chan struct{}, 1))\nall.(chan struct{}) <- struct{}{}\nerr := p.client.ProduceSync(ctx, r).FirstErr()\n<-all.(chan struct{})",
	},
	{
		Name: "Kafka: large messages of a topic that is away fail one after the other", Rule: "outbox",
		Dir: kafka, Func: "(*producer).produce", Package: "consume/semelkafka/kafkatest", Run: "TestSink_LargeMessagesOfTopicThatIsAway",
		Old: "large.ProduceSync(ctx, r)", New: "large.ProduceSync(ctx, &kgo.Record{Topic: r.Topic, Partition: r.Partition, Key: r.Key, Headers: r.Headers, Value: r.Value})",
	},
	{
		Name: "Kafka: large messages wait for those of a partition that is away", Rule: "outbox",
		Dir: kafka, Func: "(*producer).produce", Package: "consume/semelkafka/kafkatest", Run: "TestSink_LargeMessagesWhileOnePartitionIsAway",
		Old: "partitionID{r.Topic, r.Partition}", New: "partitionID{topic: r.Topic}",
	},
	{
		Name: "Kafka: a sink consumes in the group of its client", Rule: "outbox",
		Dir: kafka, Func: "NewSink", Package: "consume/semelkafka/kafkatest", Run: "TestNewSink_ClientIsUnfit",
		Old: "if consumes(client) {", New: "if consumes(client) && false {",
	},
	{
		Name: "Kafka: a client that consumes without a group is not known by its topics", Rule: "outbox",
		Dir: kafka, Func: "consumes", Package: "consume/semelkafka/kafkatest", Run: "TestNewSink_ClientIsUnfit",
		Old: "kgo.ConsumeTopics", New: "kgo.ConsumePartitions",
	},
	{
		Name: "Kafka: a large message is sent alone after the lease", Rule: "rule 6",
		Dir: kafka, Func: "(*producer).produce", Package: "consume/semelkafka/kafkatest", Run: "TestSink_LeaseIsOverBeforeMessageIsSentAlone",
		Old: "err := ctx.Err(); err != nil", New: "err := ctx.Err(); err != nil && ctx.Done() == nil",
	},
	{
		Name: "Kafka: a client of a source consumes the topics of the user's options", Rule: "ack",
		Dir: kafka, Func: "(*Source).outside", Package: "consume/semelkafka/kafkatest", Run: "TestSource_ClientHasTopics_OneMemberJoins",
		Old: ", kgo.ConsumeTopics()", New: "",
	},
	{
		Name: "Kafka: an Observe that panics ends the process of a consumer of batches", Rule: "isolation",
		Dir: kafka, Func: "(*batches).observe", Package: kafka, Run: "TestServeBatches_ObservePanics_GoesOn",
		Old: `"stack", string(debug.Stack()))`, New: `"stack", string(debug.Stack()))
			panic(p)`,
	},
	{
		Name: "Kafka: a handover waits for handlers first and then for the ledger", Rule: "rule 14",
		Dir: kafka, Func: "(*Source).revoked", Package: kafka, Run: "TestRevoked_HandlerAndLedgerAreSlow_TakesHandOver",
		Old: "s.awaitBeginnings(wait, left)",
		New: `
			more, stop := context.WithTimeout(ctx, s.opt.HandOver)
			defer stop()
			s.awaitBeginnings(more, left)`,
	},
	{
		Name: "Kafka: an old message that an operator sends back to a ledger is quarantined", Rule: "ack",
		Dir: kafka, Func: "(*batches).late", Package: kafka, Run: "TestHandle_RedrivenAndOld_Runs",
		Old: "return false", New: "",
	},
}
