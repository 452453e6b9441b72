// Package semelamqp brings messages of RabbitMQ, by AMQP 0-9-1, to package
// consume, from a classic or quorum queue. [Source] is what
// consume.Consumer.Serve takes.
//
// A message is acked by itself, after its outcome is stored; never in advance,
// and never several with one ack. A copy (a retry, a dead letter, a parked
// message) is published as persistent and mandatory, and confirmed by the
// broker, before the message is acked. Whatever the channel of a delivery has
// been through, an ack goes to that channel or nowhere: when it is closed, the
// delivery is over (driver.ErrGone), and the message comes again.
//
// # What AMQP's settings mean here
//
//	setting                  here
//	no-ack                   never: it would lose what is in work
//	prefetch                 the Consumer's InFlight, or Options.Prefetch
//	ack, multiple            one by one; the broker does not answer it, and one that is lost comes again
//	nack, requeue            what is given back at the end; never for a retry, which it would repeat at once
//	redelivered              consume.Message.Deliveries is 2 or more
//	x-delivery-count         quorum: counted exactly, and on over retries; classic: at least so many
//	x-delivery-limit         the broker's own, and blind to reasons: let consume's MaxAttempts be less
//	publisher confirms       for every copy, with mandatory: a copy that no queue takes is no copy
//	message TTL, max-length  drop messages, to the dead letters if the queue was made here
//	priority                 kept by copies; messages then overtake
//	expiration, user-id, CC  not repeated by copies: they would drop, refuse or multiply them
//	message-id               of the producer: see FromMessageID; AMQP has no id of the broker's
//	timestamp                the time of publication, which the producer says; timestamp_in_ms is the broker's.
//	                         Without either a message never counts as older than outcomes are kept
//	connection.blocked       copies fail, and are tried again; taking and acking go on, on their own connection
//	consumer_timeout         30 minutes: a message that is in work for longer comes again, and waits for its first run
//	x-single-active-consumer order per key for several members: see Options.SingleActive
//
// # What it makes
//
// For a queue "orders", unless Options.Declare says otherwise: "orders.retry.1s"
// and so on, each when it is first needed; "orders.dead-letters";
// "orders.quarantine". With DeclareAll "orders" itself. They are durable, and made
// again when a connection finds that they are gone.
//
// A retry waits in a queue whose TTL is about its delay, from 250 ms in steps of
// two, and comes back by dead-lettering: it holds up nobody, and no process has
// to live for it. It is a new message to the broker, at the end of the queue.
// Quorum queues pass it on at least once, classic ones at most once. Messages
// with an OrderKey wait in the consumer instead.
//
// # What it needs
//
//   - RabbitMQ 3.10 or later for quorum queues. A stream is no queue.
//   - The permission to configure, write and read "orders" and "orders.*", and
//     to write to the default exchange, "amq.default".
//   - No policy that drops messages of "orders.*": no TTL, no max-length.
//   - For a quorum queue that the Source does not make: a dead-letter exchange.
//     RabbitMQ 4 drops a message without it after 20 deliveries.
//   - Options.Horizon, if the queue has a TTL; else consume.Options.ShortRetention,
//     for a queue keeps its messages without end.
//   - The time of publication in each message, unless the queue has a TTL that is
//     shorter than outcomes are kept: the producers' timestamp, or the broker's own
//     (message_interceptors.incoming.set_header_timestamp.overwrite = true). What is
//     without it, and comes again when its outcome is forgotten, runs again: see
//     consume.Options.Late.
//   - Somebody who reads the dead letters and the parked messages.
//
// Order per key holds within one Serve, as long as its connection does: a broker
// that notices a loss later than the consumer sends what is behind first. For
// that, and for several members, give the queue a single active consumer.
package semelamqp
