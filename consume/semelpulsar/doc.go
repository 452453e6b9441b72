// Package semelpulsar is the adapter of Apache Pulsar for package consume: a [Source] takes
// messages from a subscription of a topic, with or without partitions. Pass it to
// consume.Consumer.Serve. The keys of messages are in their properties.
//
// An ack counts after the broker has answered; acks that wait share a request. This process
// waits for the pause before a retry, and then sends a negative ack. If the process dies
// during the pause, the broker delivers the message at once. After a reconnect the broker sends again what
// is not acked; a message that is here is not handed out twice. Dead letters and
// quarantined messages are stored in topics of their own before the message is acked. The
// source subscribes without a schema: the handler gets the bytes, copies have the same
// bytes, and no topic's schema changes.
//
// # Subscription types
//
//   - Exclusive: one member. Serve does not start while another one is connected.
//   - Failover: one active member for each partition.
//   - Shared: any number of members, and no order.
//   - Key-shared: any number of members, and order per key. Producers must not mix keys in
//     a batch: use the key-based batcher, or no batches.
//
// In an exclusive and a failover subscription the messages of a partition run one at a
// time, in their order. With [ByKey] those of different keys run at the same time; the
// broker still gets the acks in any order. There a message waits for its retry in this
// process, because Pulsar cannot send it again alone. In a key-shared subscription the
// messages of one key run one at a time, in their order: Pulsar gives a key to another
// member after the earlier one has acked its messages or is gone. It needs Pulsar 4.0.3 or
// later; earlier versions let messages overtake others. In a failover and a key-shared
// subscription the order is the broker's: after the death of a member Pulsar 4.0.8 may send
// later messages of a key to the next member before those that the dead one had.
//
// # Limits of Pulsar and its client
//
//   - A stop gives messages back at once in a shared subscription. In the other ones the
//     broker sends them to other members after the last handler has ended.
//   - Pulsar sends a batch again as a whole. A failed message of a batch goes back after
//     the others of it are settled. Without the broker's setting
//     acknowledgmentAtBatchIndexLevelEnabled the others come again, too, and are found to
//     be duplicates.
//   - The broker counts deliveries in its memory, and only in shared and key-shared
//     subscriptions: Message.Deliveries begins again at 1 after it restarts.
//   - A broker stops sending to a member with maxUnackedMessagesPerConsumer messages
//     (50,000). Keep InFlight and Waiting of package consume together below it.
//   - A campaign that kills members of a key-shared subscription has stood still with Pulsar 4.0.8,
//     and the cause is not known. Pulsar has an open bug in which messages of a member that is gone
//     are not sent to the others (apache/pulsar#23845). If the backlog of such a subscription does not
//     shrink, unload the topic (pulsar-admin topics unload).
//   - Message.Published is the producer's clock, unless the broker adds its own
//     (brokerEntryMetadataInterceptors).
//   - A process that freezes, or loses its network silently, keeps its messages for about
//     a minute, until the broker misses its answers.
//   - A client cannot see a message TTL, a backlog quota with consumer_backlog_eviction or an
//     expiry of subscriptions, of a namespace or a topic. Set none for the topics of copies:
//     the broker would drop copies that nobody has read.
//   - Compression is supported. Encrypted topics are not: the client sends such a message
//     back forever.
//   - The client acks and drops a message whose checksum or compression is broken, and an
//     empty message without properties that is not in a batch. No adapter sees it.
package semelpulsar
