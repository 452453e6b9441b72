package museum

// PostgreSQL, crash markers: a message that kills its process becomes a dead letter,
// and no other message does.
var postgresNotes = []Mutant{
	{
		Name: "PostgreSQL, crash markers: a try does not write its marker", Rule: "rule 13",
		Dir: kafkapg, Func: "(*partitionMarker).beginTry", Package: kafkapg, Run: "TestCrash_MessageKillsItsProcess",
		Old: `
			if p == nil || maxAttempts < 0 {
				return nil`,
		New: `
			if p == nil || maxAttempts != 0 {
				return nil`,
	},
	{
		Name: "PostgreSQL, crash markers: a message with open tries is handled together with others", Rule: "rule 13",
		Dir: kafkapg, Func: "(*crashMarkers).begin", Package: kafkapg, Run: "TestCrash_MessageKillsItsProcess",
		Old: "starts >= crashThreshold || p.marker.HasTries()", New: "starts >= crashThreshold",
	},
	{
		Name: "PostgreSQL, crash markers: a try that failed counts as an open try too", Rule: "rule 13",
		Dir: pgkafka, Func: "(*CrashMarker).Ended", Package: kafkapg, Run: "TestIsolated_HandlerFails",
		Old: `
			error {
			n.takeBack(offset)
			err := n.write`,
		New: `
			error {
			err := n.write`,
	},
	{
		Name: "PostgreSQL, crash markers: a try whose end was not written counts as an open try", Rule: "rule 11",
		Dir: pgkafka, Func: "(*CrashMarker).Begin", Package: pgkafka, Run: "TestAnEndThatCouldNotBeNoted",
		Old: "if len(n.excess) > 0 {", New: "if len(n.excess) > 1 {",
	},
	{
		Name: "PostgreSQL, crash markers: a message is tried although its marker was not written", Rule: "rule 11",
		Dir: kafkapg, Func: "(*offsetsBatch).tryMarked", Package: kafkapg, Run: "TestCrashMarker_CannotBeWritten",
		Old: "if err := b.marker.beginTry(ctx, m, b.maxAttempts); err != nil {",
		New: "if err := b.marker.beginTry(ctx, m, b.maxAttempts); err == nil && ctx.Err() != nil {",
	},
	{
		Name: "PostgreSQL, crash markers: an earlier member writes a try", Rule: "rule 4", Parent: "M1: complete without gen (Powertools, River)",
		Dir: pgkafka, Func: "statementsOf", Package: pgkafka, Run: "TestAZombieNotesNothing",
		Old: `
			SET open_tries = $6::bigint[], updated = c.now FROM c
			WHERE {partition} AND topic_id = $4::text AND member = $5::uuid`,
		New: `
			SET open_tries = $6::bigint[], updated = c.now FROM c
			WHERE {partition} AND topic_id = $4::text AND $5::uuid IS NOT NULL`,
	},
	{
		Name: "PostgreSQL, crash markers: a member that ends in order counts as dead", Rule: "rule 13",
		Dir: kafkapg, Func: "(*crashMarkers).end", Package: kafkapg, Run: "TestCrash_MembersEndInOrder",
		Old: `
			if !p.begun {
				continue`,
		New: `
			if p.begun {
				continue`,
	},
	{
		Name: "PostgreSQL, crash markers: a member that gets its partition again counts as dead", Rule: "rule 13",
		Dir: pgkafka, Func: "statementsOf", Package: pgkafka, Run: "TestANoteCounts",
		Old: "n.starts + (n.member <> excluded.member)::int", New: "n.starts + 1",
	},
	{
		Name: "PostgreSQL, crash markers: open tries count after the watermark was set back", Rule: "rule 13",
		Dir: pgkafka, Func: "statementsOf", Package: pgkafka, Run: "TestANoteOfAnotherLife",
		Old: "n.topic_id = excluded.topic_id AND n.start_offset <= excluded.start_offset THEN n.open_tries",
		New: "n.topic_id = excluded.topic_id THEN n.open_tries",
	},
	{
		Name: "PostgreSQL, crash markers: a later message overtakes one that is handled alone", Rule: "ack",
		Dir: kafkapg, Func: "(*partedBatch).apply", Package: kafkapg, Run: "TestCrash_MessageKillsItsProcess/keys",
		Old: "if again || result.Err != nil && result.Attempt > 0 {", New: "if again {",
	},
}
