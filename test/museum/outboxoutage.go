package museum

// The outbox during an outage of a topic: messages that are tried too often, or never; and of a
// database that has lost commits: messages that a result of another one ends.
var outboxOutages = []Mutant{
	{
		Name: "outbox: a message that an operator retries in an outage goes back to the quarantine", Rule: "outbox",
		Dir: outboxDir, Func: "(*session).failure", Package: outboxDir, Run: "TestPublisher_MaxAttemptsAndRetryDuringOutage",
		Old: "delete(s.lastFailed, t.Position)", New: "",
	},
	{
		Name: "outbox: a long pause hides that other messages of the topic are sent", Rule: "outbox",
		Dir: outboxDir, Func: "(*session).attemptBefore", Package: outboxDir, Run: "TestPublisher_MaxAttemptsAndSinkAsksForPauses",
		Old: "if !ok || last.number < t.Attempts {", New: "if true {\n_ = ok",
	},
	{
		Name: "outbox: the attempts of another publisher are forgotten when the lane comes back", Rule: "outbox",
		Dir: outboxDir, Func: "(*session).attemptBefore", Package: outboxDir, Run: "TestPublishers_MaxAttemptsAndLaneComesBack",
		Old: "if !ok || last.number < t.Attempts {", New: "if !ok {",
	},
	{
		Name: "outbox: a pause that the receiver asks for now counts as that after the attempt before", Rule: "outbox",
		Dir: outboxDir, Func: "(*session).failure", Package: outboxDir, Run: "TestPublisher_MaxAttemptsAndOutageAsksForPause",
		Old: "s.lastSent[t.Topic].After(s.attemptBefore(b, t))", New: "s.lastSent[t.Topic].After(s.attemptBefore(b, t).Add(-r.Delay))",
	},
	{
		Name: "outbox: a message is sent before the time that its receiver has asked for", Rule: "outbox",
		Dir: outboxDir, Func: "delayOf", Package: outboxDir, Run: "TestPublisher_SinkAsksForPause_OrderWaits",
		Old: "max(backoff, min(r.after, LongestDelay))", New: "max(backoff, min(r.after, LongestDelay)-r.after)",
	},
	{
		Name: "webhook: a Retry-After of 429 is not read", Rule: "outbox",
		Dir: "outbox/webhook", Func: "(*sink).send", Package: "outbox/webhook", Run: "TestPublish_RetryAfter_IsKept",
		Old: "case res.StatusCode == http.StatusTooManyRequests ||", New: "case res.StatusCode == http.StatusContinue ||",
	},
	{
		Name: "outbox: a result ends the message that has got the position of a lost one", Rule: "outbox",
		Dir: pgoutbox, Func: "statementsOf", Package: pgoutbox, Run: "TestSettle_FailoverLostCommits",
		Old: " AND o.order_hash = d.order_hash AND o.written = d.written", New: "",
	},
	{
		Name: "outbox: a result ends the held message that has got the position of a lost one of its key", Rule: "outbox",
		Dir: pgoutbox, Func: "statementsOf", Package: pgoutbox, Run: "TestSettle_HeldAtPositionOfOther",
		Old: " AND h.written = d.written", New: "",
	},
	{
		Name: "outbox in SQLite: a result ends the message that has got the position of a lost one", Rule: "outbox",
		Dir: sqliteoutbox, Func: "const same", Package: sqliteoutbox, Run: "TestSettle_RestoredIntoTheFile",
		Old: "AND order_hash = ? AND written = ?", New: "AND ? IS NOT NULL AND ? > 0",
	},
	{
		Name: "outbox: an unreadable message stops its key before the message before it is sent", Rule: "outbox",
		Dir: outboxDir, Func: "(*session).onTake", Package: outboxDir, Run: "TestPublisher_UnreadableBehindFailed_FirstIsSent",
		Old: "t.Unreadable != nil && s.busy[t.Order] != nil", New: "false",
	},
	{
		Name: "outbox: during an outage only messages that have failed before are tried", Rule: "outbox",
		Dir: outboxDir, Func: "outages.admit", Package: outboxDir, Run: "TestPublisher_ManyReceiversAreDown",
		Old: "max(probe/2, probe-fresh[t.Topic])", New: "probe",
	},
	{
		Name: "outbox in SQLite: messages that have failed take the places of others", Rule: "outbox",
		Dir: sqliteoutbox, Func: "(*Outbox).look", Package: sqliteoutbox, Run: "TestConformance$/Take_ManyFailedAreDue",
		Old: "max(1, limit/4)", New: "limit",
	},
	{
		Name: "outbox: a topic that fails counts an attempt for all its messages", Rule: "outbox",
		Dir: outboxDir, Func: "outages.admit", Package: outboxDir, Run: "TestPublisher_ManyMessagesOfFailingTopic",
		Old: "all[t.Topic] == probe", New: "all[t.Topic] < 0",
	},
}
