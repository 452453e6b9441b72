package museum

// PostgreSQL, notes: a message that kills its process has an end, and no other has
// it for that.
var postgresNotes = []Mutant{
	{
		Name: "PostgreSQL, notes: a try is made without a note", Rule: "rule 13",
		File: "consume/semelkafka/kafkapg/care.go", Package: joined, Run: "TestAMessageThatKillsItsProcess",
		Old: "\tif c == nil || most < 0 {\n\t\treturn nil\n", New: "\tif c == nil || most != 0 {\n\t\treturn nil\n",
	},
	{
		Name: "PostgreSQL, notes: what was tried and has no end is handled with others", Rule: "rule 13",
		File: "consume/semelkafka/kafkapg/care.go", Package: joined, Run: "TestAMessageThatKillsItsProcess",
		Old: "times >= crashThreshold || c.marker.HasTries()", New: "times >= crashThreshold",
	},
	{
		Name: "PostgreSQL, notes: a try that failed counts as one without an end, too", Rule: "rule 13",
		File: "store/pgstore/pgkafka/crashmarker.go", Package: joined, Run: "TestAFailureIsOneAttempt",
		Old: "error {\n\tn.takeBack(offset)\n\terr := n.write", New: "error {\n\terr := n.write",
	},
	{
		Name: "PostgreSQL, notes: a try whose end was not noted is taken for one without", Rule: "rule 11",
		File: "store/pgstore/pgkafka/crashmarker.go", Package: pgkafka, Run: "TestCrashMarker_EndNotWritten_WrittenLater",
		Old: "\tif len(n.excess) > 0 {\n", New: "\tif len(n.excess) > 1 {\n",
	},
	{
		Name: "PostgreSQL, notes: a try that was not noted is made", Rule: "rule 11",
		File: "consume/semelkafka/kafkapg/offsetscare.go", Package: joined, Run: "TestWithoutANote",
		Old: "if err := r.care.try(ctx, m, r.most); err != nil {", New: "if err := r.care.try(ctx, m, r.most); err == nil && ctx.Err() != nil {",
	},
	{
		Name: "PostgreSQL, notes: a zombie notes a try", Rule: "rule 4", Parent: "M1: complete without gen (Powertools, River)",
		File: "store/pgstore/pgkafka/sql.go", Package: pgkafka, Run: "TestCrashMarker_FencedMember_CannotWrite",
		Old: "SET open_tries = $6::bigint[], updated = c.now FROM c\n\t\t\tWHERE {partition} AND topic_id = $4::text AND member = $5::uuid",
		New: "SET open_tries = $6::bigint[], updated = c.now FROM c\n\t\t\tWHERE {partition} AND topic_id = $4::text AND $5::uuid IS NOT NULL",
	},
	{
		Name: "PostgreSQL, notes: who ends in order has died", Rule: "rule 13",
		File: "consume/semelkafka/kafkapg/care.go", Package: joined, Run: "TestThoseWhoEndInOrder",
		Old: "\t\tif !c.begun {\n\t\t\tcontinue\n", New: "\t\tif c.begun {\n\t\t\tcontinue\n",
	},
	{
		Name: "PostgreSQL, notes: a member that is given its partition again has died", Rule: "rule 13",
		File: "store/pgstore/pgkafka/sql.go", Package: pgkafka, Run: "TestCrashMarker_SameOffset_CountsStarts",
		Old: "n.starts + (n.member <> excluded.member)::int", New: "n.starts + 1",
	},
	{
		Name: "PostgreSQL, notes: tries of another life count", Rule: "rule 13",
		File: "store/pgstore/pgkafka/sql.go", Package: pgkafka, Run: "TestCrashMarker_OtherTopicOrOffset_Ignored",
		Old: "n.topic_id = excluded.topic_id AND n.start_offset <= excluded.start_offset THEN n.open_tries", New: "n.topic_id = excluded.topic_id THEN n.open_tries",
	},
	{
		Name: "PostgreSQL, notes: who waits behind a message that is alone overtakes it", Rule: "ack",
		File: "consume/semelkafka/kafkapg/keyedcare.go", Package: joined, Run: "TestAMessageThatKillsItsProcess/keys",
		Old: "if again || end.Err != nil && end.Attempt > 0 {", New: "if again {",
	},
}
