// Package pgoutbox is the outbox of package outbox in PostgreSQL: it writes messages in
// transactions of pgx or database/sql, and gives them to an outbox.Publisher. The tables
// are in the schema of a pgstore.Store.
//
//	box, err := pgoutbox.New(st, nil)
//	...
//	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
//		... // the effect
//		return box.Put(ctx, tx, outbox.Message{Topic: "orders", OrderKey: customer, Body: event})
//	})
//
// Put works the same in a handler of pgstore's Atomic, with the transaction of the
// handler.
//
// # Promises
//
//   - A message becomes visible to publishers when its transaction commits. If the
//     transaction commits without waiting for the disk (synchronous_commit=off), a crash
//     of the server may take it back after the message was published. With a synchronous
//     standby, Take first makes sure that the standby has what it has read, also if the
//     wait of a commit was cancelled.
//   - Put takes an advisory lock for each order key until the end of the transaction, so
//     that the messages of a key are in the order of the commits. A transaction that
//     writes a message of a key waits for another one that has done so. Two transactions
//     that write messages of two keys in opposite order can meet a deadlock (40P01), as
//     with rows; one Put of several messages locks their keys in one order.
//   - A publisher deletes a message after the destination has acknowledged it. That
//     commit does not wait for the disk, because it can only be lost together with the
//     server's memory, and the message is then published again.
//   - Publishers never compare positions or transaction ids with a limit. So a
//     transaction that commits late is not skipped, a long transaction delays no other
//     one's messages, and a database that was restored from a dump goes on at once.
//
// Put notifies publishers (NOTIFY) when the transaction commits, at most once in 50 ms in
// each process, because a transaction that notifies holds a lock of the whole server
// during its commit.
package pgoutbox
