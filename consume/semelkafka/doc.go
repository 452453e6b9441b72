// Package semelkafka brings messages of Apache Kafka to package consume, from a
// consumer group. [Source] is what consume.Consumer.Serve takes.
//
// Messages with equal record keys are handled in turn, all others of a
// partition at the same time. An offset is committed when it and all below it
// are done: never the highest that is done. Dead letters and parked messages
// are with all in-sync replicas before their message is acked, and carry where
// it came from (topic, partition, offset, time, reason) in the headers that
// package consume lists.
//
// Kafka cannot redeliver one message, and does not bring one back because it
// was not committed: only another member, or the next start, reads it again. So
// a retry, and a message whose key is in flight elsewhere, wait here. What
// waits holds up its own key and, Outstanding records later, its partition; the
// other partitions go on. [Source.Stats] tells for how long.
//
// When a partition is taken away, nothing more of it is begun, what runs has
// [Options].HandOver to end, and what is done is committed before the next
// member has it. A handler that runs on is found in progress by that member,
// which waits for it or for its lease.
//
// # Many messages in one transaction
//
// [Source.ServeBatches] hands whole polls to a [Ledger], which is a database:
// what messages do there, and that they are done, commits together, so that it
// happens exactly once. Where to read from is the ledger's to say when a
// partition is assigned, and a member that had it before cannot commit any
// more. Package kafkapg has the ledgers of PostgreSQL, by the keys of messages
// or by their offsets.
//
// # What the settings of Kafka mean here
//
// Set by a Source, whatever [Options].Client says:
//
//	group.id, topics               of New
//	enable.auto.commit             false: it would commit what is not done. See CommitEvery
//	auto.offset.reset              Start for a group without an offset; OutOfRange, which refuses, for one
//	                               whose offset is not in the log any more. Never silently latest
//	acks, of the copies            all. With min.insync.replicas of 2 or more they survive a broker
//	enable.idempotence             false: a copy that is sent twice has the same driver.LetterID
//	max.request.size, of copies    the max.message.bytes of their topic
//
// By default, and to be changed by [Options].Client:
//
//	partition.assignment.strategy  cooperative-sticky: a rebalance stops only what moves (kgo.Balancers)
//	isolation.level                read_committed: what a producer took back is not handled (kgo.FetchIsolationLevel)
//	fetch.max.wait.ms              500 (kgo.FetchMaxWait)
//	session.timeout.ms             45 s: a dead member's messages wait so long (kgo.SessionTimeout)
//	rebalance.timeout.ms           60 s: must be longer than HandOver (kgo.RebalanceTimeout)
//	group.instance.id              none; with one, Close does not leave the group (kgo.InstanceID)
//
// That count with the brokers and the topics:
//
//	max.poll.interval.ms           does not exist here: heartbeats go on while a handler runs, however long.
//	                               Watch PartitionStats.Held instead
//	retention.ms                   Info.Horizon, which Retention of package consume must reach. Kafka drops
//	                               whole segments, so that some messages outlive it: they go to Options.Late
//	message.timestamp.type         is a message's Published. With CreateTime, the default, it is the
//	                               producer's clock that says how old a message is
//	max.message.bytes              of the topics of copies at least that of the topics consumed; give them 64 KiB
//	                               more, for the headers. A copy that is too large goes without its text, and
//	                               one that still is stays here, and its message is not acked
//	cleanup.policy                 of the topics of copies: delete. A tombstone comes as a nil Body
//	offsets.retention.minutes      a group that is away for longer begins at Start again
//
// # Identity
//
// consume.BrokerID is topic id, partition and offset: it tells deliveries
// apart, not what a producer sent twice, which has two offsets. Let producers
// set consume.KeyHeader: [Keyed], [Stamp] and [Stamper] do.
//
// A topic that is deleted and made anew has other messages at the same offsets.
// A Source that reads it ends with an error, and one that finds the offsets of
// the earlier topic does not begin: neither skips what is new.
package semelkafka
