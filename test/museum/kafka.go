package museum

// Kafka knows one offset for each partition, and what is below it is gone.
var kafkas = []Mutant{
	{
		Name: "Kafka: the highest offset that is done is committed", Rule: "ack", Parent: "M22: highest offset committed",
		Dir: kafka, Func: "(*watermark).done", Package: "consume/semelkafka", Run: "TestTheWatermark",
		Old: "for n < len(w.entries) && w.entries[n].done {",
		New: "for n < len(w.entries) && (w.entries[n].done || w.entries[n].offset < offset) {",
	},
	{
		Name: "Kafka: a record that is handed out again counts twice", Rule: "ack",
		Dir: kafka, Func: "(*watermark).out", Package: "consume/semelkafka", Run: "TestARecordHandedOutAgain",
		Old: "n == 0 || w.entries[n-1].offset < offset {", New: "n >= 0 {",
	},
	{
		Name: "Kafka: what was prepared ahead is handled in place of another batch", Rule: "ack",
		Dir: kafka, Func: "(*batches).prepared", Package: "consume/semelkafka", Run: "TestWhatIsPreparedIsForThatBatchAlone",
		Old: "return it.Message == w.m }", New: "return true }",
	},
	{
		Name: "Kafka: a batch is prepared beyond the end of the one before it", Rule: "lanes",
		Dir: kafka, Func: "(*batches).besides", Package: "consume/semelkafka/kafkatest", Run: "TestAHandlerThatLeavesForGood",
		Old: "defer looks.Wait()", New: "",
	},
	{
		Name: "Kafka: what was taken ahead is lost in an outage", Rule: "ack",
		Dir: kafka, Func: "(*batches).taken", Package: "consume/semelkafka", Run: "TestWhatIsTakenAheadIsGivenBack",
		Old: "_ = d.Nak(ctx, 0)", New: "_ = d",
	},
	{
		Name: "Kafka: what waits makes room for another message", Rule: "ack",
		Dir: kafka, Func: "(*batches).over", Package: "consume/semelkafka", Run: "TestWorksAreUsedAgain",
		Old: "if !w.waits {", New: "{",
	},
	{
		Name: "Kafka: one message keeps the memory of thirty that are large", Rule: "rule 7",
		Dir: kafka, Func: "(*some).next", Package: "consume/semelkafka", Run: "TestSomeAreFewAndShort",
		Old: "|| s.size+size > someBytes {", New: "{",
	},
	{
		Name: "Kafka: a message's attempts are another's of a batch before", Rule: "lanes",
		Dir: joined, Func: "(*keyedRun).giveBack", Package: joined, Run: "TestABatchBeginsWithNothing",
		Old: "clear(r.ran)", New: "",
	},
	{
		Name: "Kafka: a lane is due when its last message is", Rule: "rule 14",
		Dir: kafka, Func: "(*batches).hold", Package: "consume/semelkafka", Run: "TestALaneIsDue",
		Old: "due.After(h.due) && !slices.ContainsFunc(h.works, w.waitsFor) {", New: "due.After(h.due) {",
	},
}
