package museum

// PostgreSQL, batches: many messages in a transaction, each with an end of its own.
var postgresBatches = []Mutant{
	{
		Name: "PostgreSQL, batches: to undo one call undoes its neighbours", Rule: "atomic",
		Dir: postgres, Func: "(*batchTry).runAdmitted", Package: postgres, Run: "TestWhatIsUndoneOfOne",
		Old: "if (v.saved || v.swapped) && v.undone() && len(admitted) > 1 {", New: "if false {",
	},
	{
		Name: "PostgreSQL, batches: what undoes a failed statement is prepared first", Rule: "rule 13",
		Dir: postgres, Func: "(*batchTry).leave", Package: postgres, Run: "TestAStatementThatFailsFirst",
		Old: `
			if err := y.t.line.Flush(ctx); err != nil {
				return err
			}`,
		New: `
			y.t.line.Push("ROLLBACK TO "+name, nil, nil)
			y.t.line.Push("RELEASE "+name, nil, nil)
			if name != "" {
				return y.t.line.Flush(ctx)
			}`,
	},
	{
		Name: "PostgreSQL, batches: what a handler copies is not undone", Rule: "atomic",
		Dir: postgres, Func: "(*touchedTx).CopyFrom", Package: postgres, Run: "TestWhatAFailedHandlerWrote",
		Old: `
			if err := t.y.touch(ctx); err != nil {
				return 0, err
			}`,
		New: "",
	},
	{
		Name: "PostgreSQL, batches: a commit without an answer counts as done", Rule: "rule 9", Parent: "M7: CAMEL-24046",
		Dir: postgres, Func: "(*batchTry).commit", Package: postgres, Run: "TestABatchWhoseConnectionIsCut",
		Old: `
			if is {
				return nil
			}
			undone = known`,
		New: `
			if is || !is && known {
				return nil
			}`,
	},
	{
		Name: "PostgreSQL, batches: what is behind an outage overtakes", Rule: "ack",
		Dir: postgres, Func: "(*batchRun).part", Package: postgres, Run: "TestWhatIsBehindAnOutage",
		Old: "b.outage = err", New: "b.outage = nil",
	},
	{
		Name: "PostgreSQL, batches: a row is lost where a statement is full", Rule: "durable",
		Dir: postgres, Func: "(*storeTx).held", Package: postgres, Run: "TestRowsOfManyStatements",
		Old: "append(parts, rows[from:i]), i, n", New: "append(parts, rows[from:i]), i+1, n",
	},
	{
		Name: "PostgreSQL, batches: the second with a key is compared with itself", Rule: "rule 12", Parent: "M6: fingerprint skipped on conflict path",
		Dir: postgres, Func: "(*prefetched).claim", Package: postgres, Run: "TestOfAKeyThatIsTwiceAhead",
		Old: "w.as.Apply(v.ahead.first.p.Insert(", New: "w.as.Apply(v.p.Insert(",
	},
	{
		Name: "PostgreSQL, batches: all are recorded as the first one's tenant", Rule: "scope", Parent: "M13: scope dropped (devlink#773)",
		Dir: postgres, Func: "alikeBut", Package: postgres, Run: "TestCallsThatAreNotAlike",
		Old: "&& p.Key.Tenant == q.Key.Tenant", New: "",
	},
	{
		Name: "PostgreSQL, batches: a token runs where its reservation is gone", Rule: "rule 16",
		Dir: postgres, Func: "(*Atomic).prepare", Package: postgres, Run: "TestATokenOfAReservation",
		Old: "can = can && is && alikeBut(", New: "can = can && (is || w.rows != nil) && alikeBut(",
	},
	{
		Name: "PostgreSQL, batches: a fence recorded ahead forgets what was swept", Rule: "rule 5",
		Dir: postgres, Func: "newStatements", Package: postgres, Run: "TestAFenceRecordedAhead",
		Old: "(SELECT greatest(m.swept_fence + 1, c.now) FROM c CROSS JOIN", New: "(SELECT c.now FROM c CROSS JOIN",
	},
	{
		Name: "PostgreSQL, batches: of two keys with one id the second has the first's answer", Rule: "rule 2",
		Dir: postgres, Func: "(*keptRow).found", Package: postgres, Run: "TestAKeyWithTheIDOfAnother|TestALookAheadDoesNotTakeARow",
		Old: "key.Value = string(k.key)", New: "",
	},
	{
		Name: "PostgreSQL, batches: what has expired is a duplicate's answer", Rule: "rule 7",
		Dir: postgres, Func: "const keptAs", Package: postgres, Run: "TestALookAheadFindsWhatIsThere",
		Old: "AND r.expires > (SELECT now FROM c)", New: "",
	},
	{
		Name: "PostgreSQL, batches: what else is there is taken for nothing", Rule: "rule 2",
		Dir: postgres, Func: "(*batchTry).take", Package: postgres, Run: "TestALookAhead",
		Old: `
			if more {
				g = anything
			}`,
		New: "_ = more",
	},
	{
		Name: "PostgreSQL, batches: a look ahead takes keys of the batch before", Rule: "ack",
		Dir: postgres, Func: "(*Prefetcher).Prefetch", Package: postgres, Run: "TestABatchThatIsRunAgainComesFirst",
		Old: "y.prefetched.leaveOut(b.keys)", New: "",
	},
	{
		Name: "PostgreSQL, batches: a drop does not wait for its look", Rule: "lanes",
		Dir: postgres, Func: "(*PrefetchedBatch).dropPrefetch", Package: postgres, Run: "TestADropWaitsForALook",
		Old: `
			n.dropped = true
			for n.looking {`,
		New: `
			n.dropped = true
			for n.looking && n.t != nil {`,
	},
	{
		Name: "PostgreSQL, batches: a zombie moves the watermark", Rule: "rule 4", Parent: "M1: complete without gen (Powertools, River)",
		Dir: pgkafka, Func: "statementsOf", Package: pgkafka, Run: "TestAZombiesPollFails",
		Old: "AND epoch = $5::bigint AND next_offset <=", New: "AND epoch <= $5::bigint + 1 AND next_offset <=",
	},
	{
		Name: "PostgreSQL, batches: a watermark that begins anew has an old owner", Rule: "rule 5",
		Dir: pgkafka, Func: "statementsOf", Package: pgkafka, Run: "TestAForgottenOwner",
		Old: "$5::bigint, c.now, c.now FROM c", New: "$5::bigint, 1, c.now FROM c",
	},
	{
		Name: "PostgreSQL, batches: whether a watermark moved is not waited for", Rule: "rule 9",
		Dir: pgkafka, Func: "statementsOf", Package: pgkafka, Run: "TestAWatermarkThatMayStillMove",
		Old: "WHERE {partition} FOR UPDATE`", New: "WHERE {partition}`",
	},
	{
		Name: "PostgreSQL, batches: a frozen owner holds the watermark", Rule: "rule 14",
		Dir: pgkafka, Func: "statementsOf", Package: pgkafka, Run: "TestAFrozenOwnerGives",
		Old: "RETURNING set_config('idle_in_transaction_session_timeout', $8::text, true)",
		New: "RETURNING set_config('semel.idle', $8::text, true)",
	},
	{
		Name: "PostgreSQL, batches: the watermark passes over a hole", Rule: "ack", Parent: "M22: highest offset committed",
		Dir: joined, Func: "(*offsetsRun).spans", Package: joined, Run: "TestTheWatermarkNeverPasses",
		Old: "if it.From > s.next {", New: "if it.From > it.Origin.Offset {",
	},
	{
		Name: "PostgreSQL, batches: to settle a message passes over a hole", Rule: "ack",
		Dir: joined, Func: "(*offsets).Pass", Package: joined, Run: "TestAMessageIsNotPassedOver",
		Old: `
			if it.From > m.w.Next() {
				return hole(&it, m.w.Next())
			}`,
		New: "",
	},
	{
		Name: "PostgreSQL, batches: a statement too late takes the place of the savepoint", Rule: "atomic",
		Dir: postgres, Func: "(*batchTry).touch", Package: postgres, Run: "TestWhatFollowsAStatement",
		Old: `
			if err := y.save(ctx, saveHandler); err != nil {
				return err
			}
			y.saved = true`,
		New: `
			y.saved = true
			if err := y.save(ctx, saveHandler); err != nil {
				return err
			}`,
	},
	{
		Name: "PostgreSQL, batches: one partition's watermark moves for all", Rule: "atomic",
		Dir: joined, Func: "(*offsetsRun).try", Package: joined, Run: "TestTheWatermarkOfEachPartition",
		Old: "for _, s := range spans[:len(spans)-1] {", New: "for _, s := range spans[len(spans):] {",
	},
	{
		Name: "PostgreSQL, batches: an outage is the message's fault", Rule: "rule 11",
		Dir: joined, Func: "refuses", Package: joined, Run: "TestAnOutageIsNoMessagesFault",
		Old: `p.Code[:2] == "53" ||`, New: "",
	},
	{
		Name: "PostgreSQL, batches: a message gets another's end", Rule: "ack", Parent: "M21: ack before complete",
		Dir: joined, Func: "(*keyedRun).ends", Package: joined, Run: "TestEndsAreThose",
		Old: "r.batch[r.of[n]] = r.end(n, e)", New: "r.batch[n] = r.end(n, e)",
	},
	{
		Name: "PostgreSQL, batches: what cannot commit is tried for ever", Rule: "rule 13",
		Dir: joined, Func: "(*keyedRun).alone", Package: joined, Run: "TestACommitThatIsRefusedIsNotOvertaken",
		Old: "n := max(f.Execution.Attempt(), r.undone[m.Origin.ID]+1)", New: "n := f.Execution.Attempt()",
	},
	{
		Name: "PostgreSQL, batches: what is in flight elsewhere is overtaken", Rule: "ack",
		Dir: joined, Func: "(*keyedRun).blockBehind", Package: joined, Run: "TestWhatComesAgainIsNotOvertaken",
		Old: "case driver.Hold, driver.Retry:", New: "case driver.Retry:",
	},
	{
		Name: "PostgreSQL, batches: a commit that is refused is overtaken", Rule: "ack",
		Dir: joined, Func: "(*keyedRun).alone", Package: joined, Run: "TestACommitThatIsRefusedIsNotOvertaken",
		Old: `if m.OrderKey != "" {`, New: `if err != nil && m.OrderKey != "" {`,
	},
	{
		Name: "PostgreSQL, batches: who breaks a connection sinks the batch", Rule: "lanes",
		Dir: postgres, Func: "(*batchRun).try", Package: postgres, Run: "TestACallThatBreaksItsConnection/the_server",
		Old: "if errors.Is(err, errBroke) {", New: "if errors.Is(err, errBroke) && careful {",
	},
	{
		Name: "PostgreSQL, batches: a broken connection that the handler hides is an outage", Rule: "lanes",
		Dir: postgres, Func: "(*batchTry).after", Package: postgres, Run: "TestACallThatBreaksItsConnection/hidden",
		Old: "case y.status() == brokenTx:", New: "case said != nil && y.status() == brokenTx:",
	},
	{
		Name: "PostgreSQL, batches: who broke a connection alone has made no attempt", Rule: "rule 13",
		Dir: postgres, Func: "(*batchRun).broke", Package: postgres, Run: "TestACallThatBreaksItsConnection/the_server",
		Old: `
			attempted(err) {
			if b.a.noteAttempt`,
		New: `
			!attempted(err) {
			if b.a.noteAttempt`,
	},
	{
		Name: "PostgreSQL, batches: the keys of a broken connection are asked for before they are free", Rule: "rule 14",
		Dir: postgres, Func: "(*batchTry).waitFree", Package: postgres, Run: "TestACallThatBreaksItsConnection/the_server_notices",
		Old: "v.won != nil || l != nil && l.locked {", New: "v.won != nil && l != nil && l.locked {",
	},
	{
		Name: "PostgreSQL, batches: who breaks a connection at COMMIT sinks the batch", Rule: "lanes",
		Dir: postgres, Func: "(*batchTry).commit", Package: postgres, Run: "TestACallThatBreaksItsConnection/at_COMMIT",
		Old: "if broke && undone {", New: "if broke && !undone {",
	},
	{
		Name: "PostgreSQL, batches: a message that breaks its connection stops its partition", Rule: "rule 13",
		Dir: joined, Func: "divides", Package: joined, Run: "TestAMessageThatBreaksItsConnection/the_server",
		Old: "return !h.down", New: "return !h.down && !h.broken",
	},
	{
		Name: "PostgreSQL, batches: a message that hides what it broke stops its partition", Rule: "rule 13",
		Dir: joined, Func: "Handler.safely", Package: joined, Run: "TestAMessageThatBreaksItsConnection/its_handler",
		Old: "(tx.Conn().IsClosed() || tx.Conn().PgConn().TxStatus() == failedTx)",
		New: "tx.Conn().PgConn().TxStatus() == failedTx",
	},
	{
		Name: "PostgreSQL, batches: a message is at fault where the database does not answer", Rule: "rule 11",
		Dir: joined, Func: "(*offsetsRun).poison", Package: joined, Run: "TestAnOutageIsNoMessagesFault/no_connection",
		Old: "&& !r.answers(ctx, s) {", New: "&& ctx.Err() != nil {",
	},
	{
		Name: "PostgreSQL, batches: a message that breaks its connection at COMMIT stops its partition", Rule: "rule 13",
		Dir: joined, Func: "divides", Package: joined, Run: "TestAMessageThatBreaksItsConnection/at_COMMIT",
		Old: "errors.Is(err, pgstore.ErrBusy) || errors.Is(err, pgkafka.ErrBroken) ||", New: "errors.Is(err, pgstore.ErrBusy) ||",
	},
	{
		Name: "PostgreSQL, batches: a watermark does not say that its COMMIT broke", Rule: "rule 13",
		Dir: pgkafka, Func: "(*Watermark).outcome", Package: joined, Run: "TestAMessageThatBreaksItsConnection/at_COMMIT",
		Old: "if broke && ctx.Err() == nil {", New: "if broke && ctx.Err() != nil {",
	},
}
