package museum

// Kafka knows one offset for each partition, and what is below it is gone.
var kafkas = []Mutant{
	{
		Name: "Kafka: the highest offset that is done is committed", Rule: "ack", Parent: "M22: highest offset committed",
		Dir: kafka, Func: "(*watermark).done", Package: "consume/semelkafka", Run: "TestWatermark_StaysBelowTheLowestUnfinishedRecord",
		Old: "for n < len(w.entries) && w.entries[n].done {",
		New: "for n < len(w.entries) && (w.entries[n].done || w.entries[n].offset < offset) {",
	},
	{
		Name: "Kafka: a record that is handed out again counts twice", Rule: "ack",
		Dir: kafka, Func: "(*watermark).out", Package: "consume/semelkafka", Run: "TestWatermark_RecordReturnedAgain_CountsOnce",
		Old: "n == 0 || w.entries[n-1].offset < offset {", New: "n >= 0 {",
	},
	{
		Name: "Kafka: what was prepared ahead is handled in place of another batch", Rule: "ack",
		Dir: kafka, Func: "(*batches).prepared", Package: "consume/semelkafka", Run: "TestPrepared_OtherBatch_IsDropped",
		Old: "return it.Message == w.m }", New: "return true }",
	},
	{
		Name: "Kafka: a batch is prepared beyond the end of the one before it", Rule: "lanes",
		Dir: kafka, Func: "(*batches).handlePrepared", Package: "consume/semelkafka/kafkatest", Run: "TestServeBatches_HandlerCallsGoexit_EndsThePreparation",
		Old: "defer looks.Wait()", New: "",
	},
	{
		Name: "Kafka: what was taken ahead is lost in an outage", Rule: "ack",
		Dir: kafka, Func: "(*batches).taken", Package: "consume/semelkafka", Run: "TestLookAhead_Outage_GivesMessagesBack",
		Old: "_ = d.Nak(ctx, 0)", New: "_ = d",
	},
	{
		Name: "Kafka: a message has the attempts of a message of an earlier batch", Rule: "lanes",
		Dir: kafkapg, Func: "(*keyedBatch).returnBuffers", Package: kafkapg, Run: "TestNewBatch_ReusedBuffers",
		Old: "clear(b.attempts)", New: "",
	},
	{
		Name: "Kafka: a lane is due when its last message is", Rule: "rule 14",
		Dir: kafka, Func: "(*batches).hold", Package: "consume/semelkafka", Run: "TestHold_Lane_IsDueWithItsFirstMessage",
		Old: "due.After(h.due) && !slices.ContainsFunc(h.works, w.waitsFor) {", New: "due.After(h.due) {",
	},
}
