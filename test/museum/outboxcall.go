package museum

// The messages of a call: an operator who looks at a payment does not find them, or finds
// messages of another call.
var outboxCalls = []Mutant{
	{
		Name: "a message of a rerun belongs to the rerun's own record", Rule: "messages",
		Dir: core, Func: "init", Package: core, Run: "TestRerun_RunningCall",
		Old: "strings.TrimSuffix(k.Operation, protocol.RerunSuffix)", New: "strings.TrimSuffix(k.Operation, protocol.SagaSuffix)",
	},
	{
		Name: "outbox: a message of a step belongs to no record", Rule: "messages",
		Dir: core, Func: "init", Package: outboxDir + "/outboxtest", Run: "TestConformance$/ListCall",
		Old: "k := x.lease.Key", New: "k := x.key",
	},
	{
		Name: "outbox, PostgreSQL: a message that was sent belongs to no call", Rule: "messages",
		Dir: pgoutbox, Func: "statementsOf", Package: pgoutbox, Run: "TestConformance$/pgx/ListCall",
		Old: "RETURNING o.*) INSERT INTO {s}.semel_outbox_sent (sent, {kept}) SELECT {now}, {kept} FROM gone",
		New: "RETURNING o.*) INSERT INTO {s}.semel_outbox_sent (sent, {kept}) SELECT {now}, position, written, topic, order_key, id, NULL, headers, body FROM gone",
	},
	{
		Name: "outbox, SQLite: a message that is held belongs to no call", Rule: "messages",
		Dir: sqliteoutbox, Func: "move", Package: sqliteoutbox, Run: "TestConformance$/ListCall",
		Old: "_, err := tx.ExecContext(ctx, `DELETE FROM semel_outbox WHERE `+same, sameAs(t)...)", New: "_, _ = tx.ExecContext(ctx, `UPDATE semel_outbox_held SET call_hash = NULL WHERE position = ?`, t.Position)\n_, err := tx.ExecContext(ctx, `DELETE FROM semel_outbox WHERE `+same, sameAs(t)...)",
	},
	{
		Name: "outbox, PostgreSQL: a list of a call's messages reads those of all calls", Rule: "limits",
		Dir: pgoutbox, Func: "statementsOf", Package: pgoutbox, Run: "TestListCall_ManyMessages",
		Old: "semel_outbox_sent o WHERE o.call_hash BETWEEN $1::text AND $2::text", New: "semel_outbox_sent o WHERE lower(o.call_hash) BETWEEN $1::text AND $2::text",
	},
	{
		Name: "console: the page of a record shows messages of another call", Rule: "messages",
		Dir: consoleDir, Func: "(*Console).messagesOf", Package: consoleDir, Run: "TestRecord_OtherCallHasTheSameShortHash",
		Old: "outbox.CallHash(k)", New: "k.Short()",
	},
	{
		Name: "console: the page of a record does not say that the outbox is down", Rule: "console",
		Dir: consoleDir, Func: "(*Console).messagesOf", Package: consoleDir, Run: "TestRecord_OutboxDown",
		Old: "m.IsDown, m.Down = true, err.Error()", New: "m.Down = err.Error()",
	},
	{
		Name: "console: an outbox that hangs keeps the page of a record from a decision", Rule: "console",
		Dir: consoleDir, Func: "(*Console).messagesOf", Package: consoleDir, Run: "TestRecord_OutboxHangs",
		Old: "context.WithTimeout(ctx, searchTime)", New: "context.WithTimeout(ctx, 100*searchTime)",
	},
}
