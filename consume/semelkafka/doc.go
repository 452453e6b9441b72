// Package semelkafka is the adapter of Apache Kafka for package consume: a
// [Source] is a member of a consumer group. Pass it to consume.Consumer.Serve.
//
// Messages with equal record keys are handled one at a time, all others of a
// partition at the same time. An offset is committed when it and all lower
// offsets are done. Before a message is acked, its dead letter or quarantined
// copy is stored by all in-sync replicas, with the headers that package driver
// lists.
//
// Kafka cannot redeliver one message: only another member, or the next start,
// reads an uncommitted message again. So a retry, and a message whose key is in
// progress elsewhere, wait here. Such a message delays its own key and, after
// Outstanding more records, its partition; the other partitions go on.
// [Source.Stats] reports how long.
//
// If a member has several partitions, one of them gets at most half of the places of
// consume.Options.InFlight, so that the others find places at once. With InFlight equal to
// Concurrency, one busy partition therefore gets half of the handlers: set InFlight to at least
// twice Concurrency, or leave it at the default, four times.
//
// When a partition is taken away, the Source starts no more of its messages,
// gives the running handlers [Options].HandOver to end, and commits before the
// next member gets the partition. If a handler runs longer, the next member
// finds its key in progress, and waits for its end or for its lease.
//
// Before a member reads a partition, it asks the brokers and the ledger, if there is one,
// where to begin. A partition that gives no answer for 3 s, because it has no leader, stays
// paused until there is an answer, and the member reads its other partitions.
//
// # Many messages in one transaction
//
// [Source.ServeBatches] gives whole polls to a [Ledger], which is a database:
// the effects of the messages and the record that they are done commit together,
// so that each message takes effect exactly once. The ledger decides where to
// read from when a partition is assigned, and prevents earlier members from
// committing. Package kafkapg has ledgers for PostgreSQL, by the keys of
// messages or by their offsets.
//
// # What the settings of Kafka mean here
//
// A Source sets these, whatever [Options].Client says:
//
//	group.id, topics               the arguments of New
//	enable.auto.commit             false, because it would commit unfinished messages. See CommitEvery
//	auto.offset.reset              Start for a group without an offset in the topic, and earliest for a partition
//	                               that is added later; OutOfRange (by default an error) if the offset is not in
//	                               the log any more. Never silently latest
//	acks, of the copies            all. With min.insync.replicas of 2 or more they survive a broker
//	enable.idempotence             false: a copy that is sent twice has the same driver.LetterID
//	max.request.size, of copies    the max.message.bytes of their topic. A copy that is larger before its compression
//	                               is sent alone, compressed with zstd (brokers before 2.1: gzip)
//
// [Options].Client can change these defaults:
//
//	partition.assignment.strategy  cooperative-sticky: a rebalance stops only partitions that move (kgo.Balancers)
//	isolation.level                read_committed: aborted messages are not handled (kgo.FetchIsolationLevel)
//	fetch.max.wait.ms              500 (kgo.FetchMaxWait)
//	session.timeout.ms             45 s: a dead member's messages wait that long (kgo.SessionTimeout)
//	rebalance.timeout.ms           60 s: must be longer than HandOver (kgo.RebalanceTimeout)
//	group.instance.id              none; with one, Close does not leave the group (kgo.InstanceID)
//
// These settings of brokers and topics matter:
//
//	max.poll.interval.ms           does not exist here: heartbeats go on while a handler runs.
//	                               Watch PartitionStats.Held instead
//	retention.ms                   Info.Horizon, which Retention of package consume must reach. Kafka deletes
//	                               whole segments, so that some messages live longer: they go to the quarantine
//	message.timestamp.type         gives a message's Published. With CreateTime, the default, the producer's
//	                               clock decides how old a message is
//	max.message.bytes              topics of copies need at least as much as consumed topics, better 64 KiB
//	                               more for the headers. The limit is on the compressed size. A copy that is
//	                               too large is sent without the error text; if it is still too large, its
//	                               message stays here unacked, and the error names the limit
//	cleanup.policy                 topics of copies: delete. It is read at the start of Serve and, if the last
//	                               answer is older than 5 s, before each copy: while it is compact, copies fail,
//	                               and their messages stay. A tombstone arrives as a nil Body
//	offsets.retention.minutes      a group that is away for longer begins at Start again
//
// # Identity
//
// consume.BrokerID is topic id, partition, offset and timestamp. It recognizes
// redeliveries, but a message that a producer sent twice has two offsets. Let
// producers set consume.KeyHeader: [Keyed], [Stamp] and [Stamper] do.
//
// A topic that was deleted and created again has other messages at the same
// offsets. A Source that reads such a topic ends with an error, and so does one
// that finds committed offsets of the earlier topic; neither skips messages.
//
// After an unclean leader election, or in a broker that was restored from an older
// copy, a partition may have new messages at offsets that are done. So a commit also
// has the leader epoch and the timestamp of the message before its offset. A Source
// reads that message again when it gets the partition, and ends with an error if it
// is another. It cannot tell if the message was deleted or compacted away.
//
// # Large messages of an outbox
//
// The batches of a [NewSink]'s client have up to 1 MB (kgo.ProducerBatchMaxBytes). A larger
// message, and each one of a batch that the broker refuses, is sent alone, one at a time for
// each partition, by a second client with the same options, which is closed with the first.
// If a hook accepts one client only, as kprom.Metrics does, such a message fails.
package semelkafka
