// Package kafkapg handles messages of Apache Kafka exactly once in PostgreSQL,
// many in one transaction: what their handler writes commits together with what
// tells that they are done. It joins packages semelkafka and pgstore.
//
// Once is what is written in that transaction. The handler itself may run
// again, so a mail that it sends, or a message that it produces, may come twice.
//
// # Two ways
//
// [ServeKeyed] keeps a record for each message's idempotency key, by
// pgstore.Atomic: what a producer has sent twice is found, however far apart,
// for as long as outcomes are kept.
//
// While a batch runs, the next full one is begun on a second connection, if the
// pool has three to spare: its keys are locked, and found or recorded. Where
// that is in vain, because the first has to be run again, or is slow, or a
// partition went, it is rolled back and done at its time. So a busy member holds
// up to 2,000 advisory locks (pgstore.Atomic.In says how many there are: beyond
// that batches are divided), and now() in a handler may be a second old.
//
// [ServeOffsets] keeps one row for each partition, which holds the first offset
// that is not done, by pgkafka.Watermark. It costs nothing for each message,
// has no retention, and finds what Kafka delivers again; what a producer has
// sent twice has two offsets, and two effects.
//
// # What becomes of it when
//
//   - a member dies before its COMMIT: nothing has happened; the next one does it.
//   - it dies after COMMIT: the next one finds the records, or reads behind them.
//   - the connection breaks at COMMIT: whether it came is found out before
//     anything is done again.
//   - a partition goes to another member: it waits for Options.HandOver for the
//     running transaction. A member that was frozen, or cut off, and goes on:
//     by offsets, its transaction is refused, for the new owner has taken the
//     fence. By keys, what the other has done is found, and what neither has
//     done is done once.
//   - a message makes the handler fail: the transaction is rolled back, and
//     halves are tried until that message is alone. A *semel.Failure
//     (semel.Final) dead-letters it at once, anything else after MaxAttempts, and
//     the watermark passes over it when the copy is with the brokers. By
//     offsets, all behind it in its partition wait meanwhile; by keys, those
//     with its record key.
//   - a message's key is in flight elsewhere: by keys, it is tried again until
//     it is not, and those with its record key wait.
//   - the database is down: no message is taken until it answers, partitions
//     stay, and nothing is lost.
//   - the topic was deleted and made anew: Serve ends with driver.ErrClosed. By
//     offsets it does so until pgkafka.Forget was called.
//   - the log was cut behind what is done, or its beginning was deleted before
//     it was read: Serve ends, as semelkafka.Options.OutOfRange says.
//   - Serve's context ends: the running transaction ends, and the group is
//     left by Source.Close.
//
// A message that breaks its connection, as by a statement that takes longer than
// a context of its own, or one that crashes the server process, at once or at
// COMMIT, is found in the same way, as long as the database answers on others.
// Where it does not, it is an outage, and all wait.
//
// # A message that kills its process
//
// Out of memory, os.Exit, a crash in C: the transaction is rolled back with all
// that it could have told, and the next member runs into the same. So a member
// leaves a pgkafka.CrashMarker with the first message of a partition that it is given,
// one statement, and no more as long as all is well. Where two in a row have begun
// at one offset, and are gone without an end in order, the third takes care with
// that partition: each message has a transaction of its own, and behind a note that
// it is tried. Tries without an end count as attempts, and after MaxAttempts the
// message is a dead letter, whose text says so; it is not run again. Care ends
// behind 2,000 messages. With a MaxAttempts below zero it stops its partition.
// What is too much for the process only all at once gets through in this way.
//
// So it kills its process MaxAttempts times, and two or three times before. A note
// decides nothing else: one too many costs time. But a message is dead-lettered
// that does nothing wrong, if it is in work, alone, each of MaxAttempts times that
// its member is killed for something else, or is frozen or slow until another has
// the partition. To end within Options.Drain is no such time; nor is an outage of
// the database, unless the member is killed in it.
//
// The rows are in semel_crash_marker, one for each partition; pgkafka.Forget removes
// those of a topic, and old ones do no harm.
//
// # Not promised
//
// By offsets, attempts that end in an error are counted by the process. By keys, a
// message whose handler was running, alone in its transaction, when an outage began,
// has made an attempt, too; one that meets MaxAttempts of them is a dead letter.
package kafkapg
