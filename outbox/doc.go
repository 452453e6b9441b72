// Package outbox publishes messages that a transaction has written together with its
// effects. A message is written if and only if the transaction commits, and a
// [Publisher] sends it afterwards, at least once, and in order for each order key.
//
// Write messages with package store/pgstore/pgoutbox (PostgreSQL) or
// store/sqlitestore/sqliteoutbox (SQLite), in a transaction of your own or in a handler
// of their Atomic. Run a publisher in one or more processes:
//
//	publisher, err := outbox.New(box, sink, nil)
//	...
//	err = publisher.Run(ctx) // until ctx ends
//
// A [Sink] sends to a destination. There are sinks for HTTP (package outbox/webhook)
// and, beside the adapters of package consume, for Kafka, NATS JetStream, RabbitMQ, Amazon
// SQS and Apache Pulsar. [ByTopic] joins several.
//
// # Promises
//
//   - A message whose transaction has committed is published, whichever process is
//     killed, unless an operator drops it. A message whose transaction was rolled back is
//     not published.
//   - Messages with the same topic and order key are published in the order of the
//     commits of their transactions. Messages without an order key have no order.
//   - A message may be published more than once. Its ID stays the same, and a consumer of
//     package consume that takes it as the idempotency key drops the repeats. A repeat of
//     an order key never comes before the first publication of an earlier message.
//   - If a message fails, or its sink panics, the later messages of its order key wait for
//     it, and the other keys go on. A message that its sink cannot ever send (see [Poison])
//     goes to the quarantine. Its key stops until an operator sends it again or drops it.
//
// The guide docs/outbox.md in the repository compares the brokers, and has the commands
// of an operator.
package outbox
