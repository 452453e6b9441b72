// Package semelamqp is the adapter of RabbitMQ (AMQP 0-9-1) for package
// consume: a [Source] takes messages from a classic or quorum queue. Pass it to
// consume.Consumer.Serve.
//
// Each message is acked by itself, after its outcome is stored. A copy (a
// retry, a dead letter, a quarantined message) is published as persistent and
// mandatory, and confirmed by the broker, before the message is acked. An ack
// goes to the channel of its delivery or nowhere: when that channel is closed,
// the delivery is over (driver.ErrGone), and the broker redelivers the message.
//
// # What AMQP's settings mean here
//
//	setting                  here
//	no-ack                   never, because a crash would lose messages
//	prefetch                 the Consumer's InFlight, or Options.Prefetch
//	ack, multiple            one by one; the broker does not answer, and after a lost ack it redelivers
//	nack, requeue            for messages given back at the end; never for a retry, which would repeat at once
//	redelivered              consume.Message.Deliveries is 2 or more
//	x-delivery-count         quorum: exact, retries included; classic: a lower bound
//	x-delivery-limit         the broker's own limit, without a reason. It counts messages that only waited,
//	                         so queues that the Source makes have none; see Options.DeliveryLimit
//	publisher confirms       for every copy, with mandatory: a copy that no queue takes has failed
//	message TTL, max-length  drop messages, to the dead letters if the Source made the queue
//	priority                 kept by copies; messages then overtake
//	expiration, user-id, CC  not repeated by copies, which they would drop, refuse or multiply
//	message-id               the producer's: see FromMessageID; AMQP has no ID of the broker
//	timestamp                the time of publication, set by the producer; timestamp_in_ms is the broker's.
//	                         Without either a message never counts as older than Retention
//	headers                  one value for each name, so that of two headers with one name a sink sends the last
//	connection.blocked       copies fail, and are tried again; taking and acking go on, on another connection
//	consumer_timeout         30 minutes: a message whose handler runs longer is redelivered, and waits for its end
//	x-single-active-consumer order per key for several members: see Options.SingleActive
//
// # The queues that it makes
//
// For a queue "orders", unless Options.Declare says otherwise: "orders.retry.1s"
// and so on, each at its first use; "orders.dead-letters"; "orders.quarantine".
// With DeclareAll also "orders" itself. They are durable, and each new
// connection makes the missing ones again.
//
// A retry waits in a queue whose TTL is its delay, rounded up to the next of 250 ms, 500 ms,
// 1 s and so on in steps of two up to 36 h, and comes back by dead-lettering. It delays no
// other message, and no process must stay alive for it. To the broker it is a new message, at
// the end of the queue. Quorum queues pass it on at least once, classic ones at most once.
// Messages with an OrderKey wait in the consumer instead.
//
// # What it needs
//
//   - RabbitMQ 3.10 or later for quorum queues. Streams are not supported.
//   - The permission to configure, write and read "orders" and "orders.*", and
//     to write to the default exchange, "amq.default".
//   - No policy that drops messages of "orders.*", also none that is set later: no TTL, no
//     expires, and for queues that the Source has not made no max-length without the overflow
//     reject-publish. A Source cannot see that, because AMQP shows neither policies nor the
//     arguments of a queue. The queues that it makes have the argument x-overflow:
//     reject-publish, which counts more than a policy: while such a queue is full, copies
//     fail, and their messages stay. A queue that an earlier version has made for copies does
//     not have it: empty it and delete it, and the Source makes it again with the next copy.
//   - For a quorum queue of RabbitMQ 4 that the Source does not make: the argument
//     x-delivery-limit of -1. RabbitMQ 4 otherwise drops a message after 20 deliveries, or
//     dead-letters it if the queue has a dead-letter exchange. It counts the restarts of
//     consumers that had only prefetched the message, and each consumer_timeout of a message
//     that waits here, as all do while the store is down. RabbitMQ 3 has no such limit: leave
//     the argument out there.
//   - Options.Horizon, if the queue has a TTL; without a TTL
//     consume.Options.AllowShortRetention, because a queue keeps messages for ever.
//   - The time of publication in each message, unless the queue has a TTL that
//     is shorter than Retention: the producers' timestamp, or the broker's own
//     (message_interceptors.incoming.set_header_timestamp.overwrite = true). A
//     message without it runs again if it is redelivered after its outcome was
//     deleted.
//   - An operator who reads the dead letters and the quarantine.
//   - No message whose headers are nested more than 32 deep. The client closes its
//     connection when one comes, and the broker puts it back to its place in the queue.
//     The Source then takes messages one at a time: the messages before it are handled,
//     and the messages after it are not. The error of Next has the command that removes
//     it. With Options.DeliveryLimit the broker itself moves it to the dead letters.
//
// Order per key holds within one Serve, as long as its connection lasts: a
// broker that notices a lost connection later than the consumer delivers later
// messages first. For that case, and for several members, give the queue a
// single active consumer.
package semelamqp
