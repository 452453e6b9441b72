// Package kafkapg handles messages of Apache Kafka in PostgreSQL, so that each
// message takes effect exactly once. It handles many messages in one transaction:
// the writes of the handler commit together with the record that these messages
// are done.
//
//	err = kafkapg.ServeKeyed(ctx, source, atomic, keys, func(ctx context.Context, tx pgx.Tx, ms []*consume.Message) error {
//		_, err := tx.Exec(ctx, "INSERT INTO bill SELECT unnest($1::text[])", keysOf(ms))
//		return err
//	}, nil)
//
// Exactly once holds for the writes in tx. The handler itself may run again, so a
// mail that it sends, or a message that it produces, may be sent twice.
//
// # Two forms
//
// [ServeKeyed] keeps a record for each message's idempotency key. It recognizes
// redeliveries, and messages that a producer sent twice, for as long as outcomes
// are kept. A message waits only for earlier messages with its order key.
//
// [ServeOffsets] keeps one row for each partition, with the first offset that is
// not done. It costs nothing for each message and has no retention. It recognizes
// redeliveries only: a message that a producer sent twice has two offsets, and two
// effects. A message waits for all earlier ones of its partition.
//
// # Promises
//
//   - If a member dies before COMMIT, nothing has happened, and the next member
//     handles the messages. If it dies after COMMIT, the next member does not run
//     them again.
//   - If the connection breaks at COMMIT, the member first asks the database
//     whether the transaction committed.
//   - If a partition has another owner, the earlier owner cannot commit a message's
//     effect a second time, even if it was frozen or cut off.
//   - If a message makes the handler fail, the others of its batch still take
//     effect. The message becomes a dead letter: at once after semel.Final, and
//     otherwise after MaxAttempts attempts.
//   - If the database is down, messages and partitions are kept until it answers,
//     and no attempt is counted. One exception: by keys, a message that was alone
//     in its transaction when the outage began has made an attempt.
//   - If the database gives no answer, each request of this package ends after
//     StoreTimeout (of the Atomic, or of pgstore.Options), 5 s by default, and is tried
//     again. The statements of the handler end with their context only, and the handler's
//     context has no deadline: give it one.
//   - A handler may leave its transaction idle for at most pgstore.Options.MaxIdleTx, 30 s
//     by default. After that the server ends the transaction, and an attempt is counted.
//   - If a message kills its process, later members find it, and it becomes a dead
//     letter too.
//   - If the topic was created again, or if its log has another message before the
//     position (an unclean leader election, a restored broker), Serve ends with an
//     error, and skips no message. If messages are missing from its log,
//     semelkafka.Options.OutOfRange decides; by default, Serve ends with an error too.
//
// Two limits:
//
//   - By offsets, failed attempts are counted by the process only, so a restart
//     forgets them.
//   - A busy ServeKeyed prepares its next batch on a second connection. It holds up
//     to 2,000 advisory locks (pgstore.Atomic.In names the limit of the server), and
//     now() in the handler may be a second old.
//
// The guide docs/kafka-postgres.md explains each case, the tables, and the settings.
package kafkapg
