package museum

// Kafka knows one offset for each partition, and what is below it is gone.
var kafkas = []Mutant{
	{
		Name: "Kafka: the highest offset that is done is committed", Rule: "ack", Parent: "M22: highest offset committed",
		File: "consume/semelkafka/watermark.go", Package: "consume/semelkafka", Run: "TestTheWatermark",
		Old: "for n < len(w.entries) && w.entries[n].done {", New: "for n < len(w.entries) && (w.entries[n].done || w.entries[n].offset < offset) {",
	},
	{
		Name: "Kafka: a record that is handed out again counts twice", Rule: "ack",
		File: "consume/semelkafka/watermark.go", Package: "consume/semelkafka", Run: "TestARecordHandedOutAgain",
		Old: "n == 0 || w.entries[n-1].offset < offset {", New: "n >= 0 {",
	},
}
