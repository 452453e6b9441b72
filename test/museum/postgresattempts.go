package museum

// PostgreSQL, crash markers: a message that kills its process becomes a dead letter,
// and no other message does.
var postgresAttempts = []Mutant{
	{
		Name: "PostgreSQL, batches: the steps that a leased attempt has recorded run again", Rule: "steps",
		Dir: postgres, Func: "(*batchCall).Steps", Package: postgres, Run: "TestRunBatch_StepOfLeasedAttempt_IsReplayed",
		Old: "steps, err = c.batch.tx.Steps(ctx, l)", New: "_, err = c.batch.tx.Steps(ctx, l)",
	},
	{
		Name: "PostgreSQL, watermarks: a frozen member keeps the watermark that it looks up", Rule: "rule 14",
		Dir: pgkafka, Func: "statementsOf", Package: pgkafka, Run: "TestWatermark_LookupFreezes_LockReleased",
		Old: "SELECT set_config('idle_in_transaction_session_timeout', $4::text, true) FROM", New: "SELECT $4::text FROM",
	},
	{
		Name: "PostgreSQL, watermarks: a server that ends the connection at COMMIT has refused it", Rule: "rule 9",
		Dir: "store/pgstore/internal/pgwire", Func: "EndsConnection", Package: pgkafka, Run: "TestWatermark_CommitUnanswered_OutcomeFound",
		Old: `severity == "FATAL"`, New: `severity == "ERROR"`,
	},
	{
		Name: "PostgreSQL, watermarks: a handler that ends its transaction is an outage", Rule: "rule 13",
		Dir: kafkapg, Func: "mayBeOneMessage", Package: kafkapg, Run: "TestHandle_HandlerHidesRefusedCommit_BlamesOneMessage",
		Old: "errors.Is(err, pgkafka.ErrEnded) ||", New: "",
	},
	{
		Name: "PostgreSQL, attempts: a try that failed counts as one without an end, too", Rule: "rule 13",
		Dir: pgkafka, Func: "(*CrashMarker).Ended", Package: kafkapg, Run: "TestIsolated_HandlerFails_CountsOneAttempt",
		Old: `
			error {
			n.takeBack(offset)
			err := n.write`,
		New: `
			error {
			err := n.write`,
	},
	{
		Name: "PostgreSQL, attempts: a try whose end was not noted is taken for one without", Rule: "rule 11",
		Dir: pgkafka, Func: "(*CrashMarker).Begin", Package: pgkafka, Run: "TestCrashMarker_EndNotWritten_WrittenLater",
		Old: "if len(n.excess) > 0 {", New: "if len(n.excess) > 1 {",
	},
	{
		Name: "PostgreSQL, attempts: a zombie records a try", Rule: "rule 4", Parent: "M1: complete without gen (Powertools, River)",
		Dir: pgkafka, Func: "statementsOf", Package: pgkafka, Run: "TestCrashMarker_FencedMember_CannotWrite",
		Old: `
			SET open_tries = $6::bigint[], updated = c.now FROM c
			WHERE {partition} AND topic_id = $4::text AND member = $5::uuid`,
		New: `
			SET open_tries = $6::bigint[], updated = c.now FROM c
			WHERE {partition} AND topic_id = $4::text AND $5::uuid IS NOT NULL`,
	},
	{
		Name: "PostgreSQL, attempts: a member that is given its partition again has died", Rule: "rule 13",
		Dir: pgkafka, Func: "statementsOf", Package: pgkafka, Run: "TestCrashMarker_SameOffset_CountsStarts",
		Old: "n.starts + (n.member <> excluded.member)::int", New: "n.starts + 1",
	},
	{
		Name: "PostgreSQL, attempts: tries of another life count", Rule: "rule 13",
		Dir: pgkafka, Func: "statementsOf", Package: pgkafka, Run: "TestCrashMarker_OtherTopicOrOffset_Ignored",
		Old: "n.topic_id = excluded.topic_id AND n.start_offset <= excluded.start_offset THEN n.open_tries",
		New: "n.topic_id = excluded.topic_id THEN n.open_tries",
	},
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
		Name: "PostgreSQL, crash markers: a message is tried although its marker was not written", Rule: "rule 11",
		Dir: kafkapg, Func: "(*offsetsBatch).tryMarked", Package: kafkapg, Run: "TestCrashMarker_CannotBeWritten",
		Old: "if err := b.marker.beginTry(ctx, m, b.maxAttempts); err != nil {",
		New: "if err := b.marker.beginTry(ctx, m, b.maxAttempts); err == nil && ctx.Err() != nil {",
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
		Name: "PostgreSQL, crash markers: a later message overtakes one that is handled alone", Rule: "ack",
		Dir: kafkapg, Func: "(*partedBatch).apply", Package: kafkapg, Run: "TestCrash_MessageKillsItsProcess/keys",
		Old: "if again || result.Err != nil && result.Attempt > 0 {", New: "if again {",
	},
}
