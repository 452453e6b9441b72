package museum

// The outbox: messages that are lost, sent out of order or sent by a publisher that has
// lost its lease. Each fault passes a test that writes and sends one message.
var outboxes = []Mutant{
	{
		Name: "outbox, PostgreSQL: a message is published that the standby does not have", Rule: "outbox",
		Dir: "store/pgstore/pgoutbox", Func: "(*Outbox).Take", Package: "store/pgstore/pgoutbox", Run: "TestTake_StandbyAway_MessageIsNotPublished",
		Old: "err == nil && hasStandby && len(taken) > 0", New: "hasStandby && len(taken) < 0",
	},
	{
		Name: "outbox: a pause without limit hides that the topic works", Rule: "outbox",
		Dir: outboxDir, Func: "(*Options).withDefaults", Package: outboxDir, Run: "TestPublisher_BackoffForEver_QuarantinesBadMessage",
		Old: "min(pause(n), LongestDelay)", New: "pause(n)",
	},
	{
		Name: "outbox: messages wait for the oldest transaction of the server", Rule: "outbox", Parent: "a horizon by pg_snapshot_xmin, as several outboxes have it",
		Dir: pgoutbox, Func: "statementsOf", Package: pgoutbox, Run: "TestPublisher_LongTransactionElsewhere_DelaysNothing",
		Old: "WHERE o.lane = m.lane AND o.order_hash NOT IN (SELECT unnest($3::bigint[]))",
		New: "WHERE o.lane = m.lane AND o.xmin::text::bigint < pg_snapshot_xmin(pg_current_snapshot())::text::bigint AND o.order_hash NOT IN (SELECT unnest($3::bigint[]))",
	},
	{
		Name: "outbox: positions of a key are taken without its lock", Rule: "outbox", Parent: "Watermill's SQL subscriber: rows that commit late are skipped",
		Dir: pgoutbox, Func: "(*Outbox).put", Package: pgoutbox, Run: "TestConformance$/pgx/Put_KeyInOtherTransaction_Waits",
		Old: `m.OrderKey != "" && !slices.Contains(locks, order)`, New: `m.OrderKey == "" && !slices.Contains(locks, order)`,
	},
	{
		Name: "outbox: a publisher that lost its lane takes messages", Rule: "rule 5",
		Dir: pgoutbox, Func: "statementsOf", Package: pgoutbox, Run: "TestConformance$/pgx/Lease_IsOver",
		Old: "l.lane = a.lane AND l.fence = a.fence ORDER BY a.n", New: "l.lane = a.lane ORDER BY a.n",
	},
	{
		Name: "outbox: a publisher that lost its lane stops a key", Rule: "rule 4",
		Dir: pgoutbox, Func: "(*Outbox).settleHeld", Package: pgoutbox, Run: "TestConformance$/pgx/Settle_LaneLost",
		Old: "case owned[r.Lane]:", New: "case owned != nil:",
	},
	{
		Name: "outbox: a message that is settled again lets a stopped key go on", Rule: "rule 4",
		Dir: pgoutbox, Func: "(*Outbox).endHeld", Package: pgoutbox, Run: "TestConformance$/pgx/Settle_LateDelivery",
		Old: "b.resumeKeys(ctx, tx, ended.orders, ended.positions)", New: "b.resumeKeys(ctx, tx, append(ended.orders, deleted.orders...), append(ended.positions, deleted.positions...))",
	},
	{
		Name: "outbox: a delivered message lets a key go on that an earlier one has stopped", Rule: "outbox",
		Dir: pgoutbox, Func: "statementsOf", Package: pgoutbox, Run: "TestConformance$/pgx/Settle_LateDelivery",
		Old: "h.position < ended.position", New: "h.position < 0",
	},
	{
		Name: "outbox in SQLite: a message that is settled again lets a stopped key go on", Rule: "rule 4",
		Dir: sqliteoutbox, Func: "deliver", Package: sqliteoutbox, Run: "TestConformance$/Settle_LateDelivery",
		Old: "n == 0", New: "n < 0",
	},
	{
		Name: "outbox: a failure counts twice if the reply to its settlement is lost", Rule: "outbox",
		Dir: pgoutbox, Func: "statementsOf", Package: pgoutbox, Run: "TestConformance$/pgx/Settle_FailedAgain",
		Old: "h.attempts = d.attempts", New: "d.attempts >= 0",
	},
	{
		Name: "outbox in SQLite: a failure counts twice if the reply to its settlement is lost", Rule: "outbox",
		Dir: sqliteoutbox, Func: "fail", Package: sqliteoutbox, Run: "TestConformance$/Settle_FailedAgain",
		Old: "AND attempts = ?", New: "AND ? >= 0",
	},
	{
		Name: "outbox: a result has the attempts after it", Rule: "outbox",
		Dir: outboxDir, Func: "(*session).failure", Package: outboxDir, Run: "TestPublisher_SettlementReplyIsLost",
		Old: "failed := t.Entry", New: "t.Attempts++\nfailed := t.Entry",
	},
	{
		Name: "outbox in SQLite: a publisher reads a file that was replaced", Rule: "outbox",
		Dir: lite, Func: "(*Store).CheckFile", Package: sqliteoutbox, Run: "TestFile_RemovedOrReplaced_IsAnError",
		Old: "s.identity.check()", New: "nil",
	},
	{
		Name: "outbox: a lease of a restored database holds until its clock has caught up", Rule: "outbox",
		Dir: pgoutbox, Func: "choose", Package: pgoutbox, Run: "TestChoose_EachLease",
		Old: "l.until-now > l.duration", New: "l.until-now > 1<<62",
	},
	{
		Name: "outbox: a publisher that is paused inside a transaction keeps the lanes locked", Rule: "outbox",
		Dir: pgoutbox, Func: "var begin", Package: pgoutbox, Run: "TestLease_PublisherIsPausedInside",
		Old: "set local idle_in_transaction_session_timeout", New: "set local idle_session_timeout",
	},
	{
		Name: "outbox: the connection that listens has the password of the start", Rule: "outbox",
		Dir: pgoutbox, Func: "(*listener).connect", Package: pgoutbox, Run: "TestWoken_PoolHasHooks",
		Old: "before != nil", New: "before != nil && ctx == nil",
	},
	{
		Name: "outbox: a topic waits for another one that hangs", Rule: "outbox",
		Dir: outboxDir, Func: "(*session).onAnswer", Package: outboxDir, Run: "TestPublisher_TopicHangsAfterOutage",
		Old: "n.answered == n.taken {",
		New: "!slices.Contains(b.answered, false) {\nfor topic := range b.topics {\nif topic != t.Topic {\ns.outages.observe(topic, b, time.Now())\n}\n}",
	},
	{
		Name: "outbox: a partition waits after an outage for another one that hangs", Rule: "outbox",
		Dir: outboxDir, Func: "(*session).onAnswer", Package: outboxDir, Run: "TestPublisher_HalfOfTopicHangsAfterOutage",
		Old: "delete(s.outages, t.Topic)", New: "if n.answered+1 == n.taken {\ndelete(s.outages, t.Topic)\n}",
	},
	{
		Name: "outbox: topics that hang take all places", Rule: "outbox",
		Dir: outboxDir, Func: "(*session).capacity", Package: outboxDir, Run: "TestPublisher_ManyMessagesOfHangingTopics",
		Old: "limit = min(limit, most-n)", New: "_ = n",
	},
	{
		Name: "outbox: a topic that is only busy is left out, and its messages are read past", Rule: "outbox",
		Dir: outboxDir, Func: "(*session).capacity", Package: outboxDir, Run: "TestPublisher_TopicIsBusy",
		Old: ">= hangsAfter", New: ">= 0",
	},
	{
		Name: "outbox: messages of a topic that hangs are read before those of other topics", Rule: "outbox",
		Dir: outboxDir, Func: "(*session).capacity", Package: outboxDir, Run: "TestPublisher_ManyMessagesOfHangingTopics",
		Old: "full = append(full, topic)", New: "_ = topic",
	},
	{
		Name: "outbox: a publisher with one slow topic looks for others all the time", Rule: "outbox",
		Dir: outboxDir, Func: "(*session).onTake", Package: outboxDir, Run: "TestPublisher_TopicIsSlow",
		Old: "len(r.taken) == 0 && r.partial", New: "len(r.taken) < 0 && r.partial",
	},
	{
		Name: "outbox: after a Take that failed other topics wait ten times as long", Rule: "outbox",
		Dir: outboxDir, Func: "(*session).onTake", Package: outboxDir, Run: "TestPublisher_TakeFailsWhileTopicHangs",
		Old: "min(pause, longestLook)", New: "max(pause, longestLook)",
	},
	{
		Name: "outbox: after an outage of the store other topics still wait", Rule: "outbox",
		Dir: outboxDir, Func: "(*session).onLease", Package: outboxDir, Run: "TestPublisher_StoreIsAwayWhileTopicHangs",
		Old: "s.wanted, s.nextLook = true, time.Time{}", New: "s.wanted = true",
	},
	{
		Name: "outbox: one topic that hangs takes the places of all", Rule: "outbox",
		Dir: outboxDir, Func: "(*session).capacity", Package: outboxDir, Run: "TestPublisher_ManyMessagesOfHangingTopics",
		Old: "topicsAtOnce * most", New: "most",
	},
	{
		Name: "outbox: large messages fill the memory", Rule: "outbox",
		Dir: outboxDir, Func: "placesOf", Package: outboxDir, Run: "TestPublisher_LargeMessagesHang",
		Old: "1 + len(m.Body)/placeSize", New: "1",
	},
	{
		Name: "outbox: a Take reads large messages for the places of all topics", Rule: "outbox",
		Dir: outboxDir, Func: "(*session).capacity", Package: outboxDir, Run: "TestPublisher_LargeMessagesAreSentSoon",
		Old: "min(s.most*s.largest, most)", New: "min(s.most*s.largest, topicsAtOnce*most)",
	},
	{
		Name: "outbox: a large message that hangs has the places of all topics", Rule: "outbox",
		Dir: outboxDir, Func: "(*session).capacity", Package: outboxDir, Run: "TestPublisher_LargeMessagesAfterSmallOnesHang",
		Old: "free -= min(n, most)", New: "free -= n",
	},
	{
		Name: "outbox: large messages that follow small ones are sent without places", Rule: "outbox",
		Dir: outboxDir, Func: "(*session).onTake", Package: outboxDir, Run: "TestPublisher_LargeMessagesAfterSmallOnesHang",
		Old: "s.byTopic[t.Topic] >= s.p.opt.InFlight", New: "s.byTopic[t.Topic] < 0",
	},
	{
		Name: "outbox: messages of one key are sent in small batches", Rule: "outbox",
		Dir: outboxDir, Func: "(*session).adapt", Package: outboxDir, Run: "TestPublisher_BacklogOfOneKey",
		Old: "case r.idle && !r.partial:", New: "default:",
	},
	{
		Name: "outbox: after a pause a Take reads as much as in a burst", Rule: "outbox",
		Dir: outboxDir, Func: "(*session).adapt", Package: outboxDir, Run: "TestPublisher_AfterPause",
		Old: "min(s.most, firstTake)", New: "max(s.most, firstTake)",
	},
	{
		Name: "outbox: after a pause the publisher forgets that the network is slow", Rule: "outbox",
		Dir: outboxDir, Func: "(*session).adapt", Package: outboxDir, Run: "TestPublisher_PauseInSlowNetwork",
		Old: "min(s.most, firstTake)", New: "min(firstTake, s.p.opt.Batch)",
	},
	{
		Name: "outbox: other topics wait for the places of one in an outage", Rule: "outbox",
		Dir: outboxDir, Func: "(*session).capacity", Package: outboxDir, Run: "TestPublisher_TopicIsTriedAgain",
		Old: "case s.outages.isPaused(topic, now):", New: "case s.outages.isPaused(topic, now) && most == 0:",
	},
	{
		Name: "outbox: a topic is tried again while an older try still runs", Rule: "outbox",
		Dir: outboxDir, Func: "outages.observe", Package: outboxDir, Run: "TestPublisher_OlderCallFailsDuringOutage",
		Old: "case out == nil || out.probing != b:", New: "case out == nil:",
	},
	{
		Name: "outbox: messages of a topic that is away are quarantined while another works", Rule: "outbox",
		Dir: outboxDir, Func: "(*session).failure", Package: outboxDir, Run: "TestPublisher_MaxAttemptsWhileOneTopicIsAway",
		Old: "s.lastSent[t.Topic].After", New: "slices.MaxFunc(append(slices.Collect(maps.Values(s.lastSent)), time.Time{}), time.Time.Compare).After",
	},
	{
		Name: "outbox: later messages of a key are sent after one that failed", Rule: "outbox",
		Dir: outboxDir, Func: "inTurn", Package: outboxDir, Run: "TestEachInTurn_MessageFails",
		Old: "failed = errBehind", New: "failed = nil",
	},
	{
		Name: "outbox: a frozen publisher sends on until its timer has run", Rule: "rule 6",
		Dir: outboxDir, Func: "(*leaseContext).Err", Package: outboxDir, Run: "TestLease_TimeOverAndNoTimerHasRun",
		Old: "!c.lease.holds()", New: "c.lease == nil",
	},
	{
		Name: "outbox: a batch that takes too long to read is tried again for ever", Rule: "outbox",
		Dir: outboxDir, Func: "(*session).adapt", Package: outboxDir, Run: "TestPublisher_BatchTakesTooLong",
		Old: "r.limit/2", New: "r.limit",
	},
	{
		Name: "outbox: a lane is given back while its messages are being sent", Rule: "outbox",
		Dir: outboxDir, Func: "(*session).leave", Package: outboxDir, Run: "TestPublishers_JoinDuringSlowSends",
		Old: "delete(leaving, l.Number)", New: "_ = l.Number",
	},
	{
		Name: "outbox: a lane of which a message never ends is never given back", Rule: "outbox",
		Dir: outboxDir, Func: "(*session).leave", Package: outboxDir, Run: "TestPublishers_OneDestinationHangs",
		Old: "time.Since(l.leaving) >= s.p.opt.Lease", New: "time.Since(l.leaving) < 0",
	},
	{
		Name: "outbox: a publisher begins to send messages of a lane that it has given back", Rule: "rule 6",
		Dir: outboxDir, Func: "(*session).leave", Package: outboxDir, Run: "TestPublishers_LaneIsGivenBackWhileSending",
		Old: "c.batch.cancel()", New: "_ = c",
	},
	{
		Name: "outbox: messages that outlast a lease count as being sent for ever", Rule: "outbox",
		Dir: outboxDir, Func: "(*session).free", Package: outboxDir, Run: "TestPublisher_LeaseLapsesWithResultsUnsettled",
		Old: "c.open == 0 && c.unsettled == 0", New: "c.open == 0 && c.unsettled == 0 && c.batch.ctx.lease == s.lease",
	},
	{
		Name: "outbox to RabbitMQ: a message that waited for a channel is transmitted after the lease", Rule: "rule 6",
		Dir: rabbit, Func: "(*publisher).deliver", Package: rabbit, Run: "TestSink_LeaseIsOverBeforeTransmission",
		Old: "err := ctx.Err(); err != nil", New: "err := ctx.Err(); err != nil && ctx.Done() == nil",
	},
	{
		Name: "outbox to RabbitMQ: a panic of the function that connects ends the process", Rule: "outbox",
		Dir: rabbit, Func: "(*dialer).connect", Package: rabbit, Run: "TestSink_DialPanics",
		Old: "p != nil {", New: "p != nil {\npanic(p)",
	},
	{
		Name: "outbox: an outage of the broker quarantines messages", Rule: "outbox",
		Dir: outboxDir, Func: "(*session).failure", Package: outboxDir, Run: "TestPublisher_MaxAttempts",
		Old: "exhausted && reachable", New: "exhausted && (reachable || exhausted)",
	},
	{
		Name: "outbox: a count reads the messages that were sent", Rule: "outbox",
		Dir: pgoutbox, Func: "statementsOf", Package: pgoutbox, Run: "TestStats_ManyMessages",
		Old: "(SELECT count(*) FROM {s}.semel_outbox_key WHERE stopped),", New: "(SELECT count(*) FROM {s}.semel_outbox_key WHERE stopped) + 0 * (SELECT count(*) FROM {s}.semel_outbox_sent),",
	},
	{
		Name: "outbox publish: an answer is for another message of the call", Rule: "outbox",
		Dir: outboxDir, Func: "byTopic.Publish", Package: publishDir, Run: "TestRoutes_TopicsRenamed",
		Old: "answer(mine[n], err)", New: "answer(n, err)",
	},
	{
		Name: "outbox publish: topics with one new name wait for each other", Rule: "outbox",
		Dir: outboxDir, Func: "byTopic.Publish", Package: publishDir, Run: "TestRoutes_TopicsRenamed",
		Old: "indexes[topic] = append(indexes[topic], i)", New: "for other, sink := range t {\nif sink == t[topic] {\ntopic = min(topic, other)\n}\n}\nindexes[topic] = append(indexes[topic], i)",
	},
	{
		Name: "outbox publish: two topics with one new name share the broker's key for repeats", Rule: "outbox",
		Dir: publishDir, Func: "renamed.Publish", Package: publishDir, Run: "TestRoutes_TwoTopicsWithOneNewName",
		Old: "named[i] = messages[i].Renamed(r.topic)", New: "named[i] = messages[i]\nnamed[i].Topic = r.topic",
	},
	{
		Name: "outbox: messages of a paused topic hold up those of other topics", Rule: "outbox",
		Dir: pgoutbox, Func: "statementsOf", Package: pgoutbox, Run: "TestConformance$/pgx/Take_TopicPaused",
		Old: "AND o.topic <> ALL ($6::text[]) ORDER BY", New: "ORDER BY",
	},
	{
		Name: "outbox: the time limit of a message hides the end of the lease", Rule: "rule 6",
		Dir: outboxDir, Func: "limitedContext.Err", Package: outboxDir, Run: "TestEachInTurn_LeaseEndsDuringLookUp",
		Old: "cmp.Or(c.parent.Err(), c.Context.Err())", New: "cmp.Or(c.Context.Err(), c.Context.Err())",
	},
	{
		Name: "outbox: a message may take for ever", Rule: "outbox",
		Dir: outboxDir, Func: "Limits.Within", Package: outboxDir, Run: "TestEachInTurn_NoAnswerInTime",
		Old: "context.WithTimeout(ctx, l.Time)", New: "context.WithTimeout(ctx, 1000*l.Time)",
	},
	{
		Name: "outbox to webhooks: a message is sent after a look-up that outlasted the lease", Rule: "rule 6",
		Dir: outboxDir + "/webhook", Func: "(*sink).send", Package: outboxDir + "/webhook", Run: "TestPublish_LeaseEndsDuringLookUp",
		Old: "err = cmp.Or(err, ctx.Err()); err != nil", New: "err != nil",
	},
	{
		Name: "outbox to SQS: a message is sent after a look-up that outlasted the lease", Rule: "rule 6",
		Dir: simple, Func: "(*sink).send", Package: simple, Run: "TestSink_LeaseEndsDuringLookUp",
		Old: "err = cmp.Or(err, ctx.Err()); err != nil", New: "err != nil",
	},
	{
		Name: "outbox: a panic for one message ends the process", Rule: "outbox",
		Dir: outboxDir, Func: "inTurn", Package: outboxDir, Run: "TestPublisher_SinkPanicsForOneMessage",
		Old: "callback.Do(ctx, sinkName, func() error { return send(ctx, &messages[i]) })", New: "send(ctx, &messages[i])",
	},
	{
		Name: "outbox: a panic of a sink ends the process", Rule: "outbox",
		Dir: outboxDir, Func: "(*session).publish", Package: outboxDir, Run: "TestPublisher_SinkPanicsForOneMessage",
		Old: "callback.Do(b.ctx, sinkName, func() error {", New: "func(_ context.Context, _ string, fn func() error) error { return fn() }(b.ctx, sinkName, func() error {",
	},
	{
		Name: "outbox: a panic when an answer is given ends the process", Rule: "outbox",
		Dir: outboxDir, Func: "EachInTurn", Package: outboxDir, Run: "TestPublisher_SinkPanicsForOneMessage",
		Old: "recovering(ctx, answer)", New: "answer",
	},
	{
		Name: "outbox: messages of a sink that panicked wait for the sinks of other topics", Rule: "outbox",
		Dir: outboxDir, Func: "publishPart", Package: outboxDir, Run: "TestByTopic_SinkPanics",
		Old: "err != nil", New: "err != nil && ctx == nil",
	},
}
