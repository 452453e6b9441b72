// Package pgstore keeps the records of Semel in PostgreSQL, version 14 or later. Use
// it if the effects of your handlers are rows in PostgreSQL: record and effect then
// commit in one transaction, so the effect happens exactly once.
//
//	st, err := pgstore.New(ctx, pool, nil)
//	...
//	transfers, err := pgstore.NewAtomic(st, nil)
//	...
//	call := semel.Call{Operation: "transfer", Tenant: "ann", Key: id, Payload: semel.JSON(request)}
//	balance, err := pgstore.Do(ctx, transfers, call, func(ctx context.Context, _ *semel.Execution, tx pgx.Tx) (int64, error) {
//		... // write with tx
//	})
//
// [Open] takes a URL, [New] takes the application's pool. Both create the tables in
// the schema "semel" (Options.Schema), or check that they exist; see [Store.Migrate].
//
// A record is the row for one idempotency key. A claim gives one caller the right to
// run the handler for a key, and a settlement stores the result. Each claim gets a
// fencing token, a number that grows. A lease is the time for which a claim holds if
// there is no transaction around it. A sweep deletes expired records. The page
// docs/glossary.md in the repository explains these and the other terms.
//
// # Ways to run a call
//
//   - [Do], [Once] and [Atomic.Run] run one call in a transaction of its own, and
//     [DoSQL] does so with database/sql. This takes two round trips besides those of the
//     handler. If many of the recent calls were duplicates and several calls run at once,
//     they first share a lookup of recorded results, on the store's connection.
//   - [Atomic.In] runs calls in a pgx transaction of the caller.
//   - [Atomic.RunBatch] runs one handler for many calls in one transaction. It is meant
//     for a consumer of a broker. A [Prefetcher] looks up the keys of the next calls
//     while the handler runs.
//   - A semel.Guard with this store runs calls whose effects are outside of this
//     database, under leases. It promises less than the ways above: after a crash it
//     cannot know whether the effect happened.
//
// # Promises
//
//   - A change is committed when the method that makes it returns nil. With Atomic.In
//     and Store.Tx, the change is committed when the caller commits.
//   - A committed change is on disk, because synchronous_commit is on by default. If a
//     setting of the server breaks this promise, [Store.Check] reports the setting.
//     Options.RelaxedClaims gives the promise up for claims.
//   - After a failover to an asynchronous standby, the last commits may be missing, and
//     retries of their calls run the handlers again. To prevent this, set
//     synchronous_standby_names. A call then gets a recorded result only after the
//     standby has it. While the standby is away, calls of an Atomic end with
//     semel.ErrUnavailable after StoreTimeout. A new call waits in COMMIT, and its error
//     also wraps semel.ErrInDoubt. A duplicate that finds a record waits, too, because the
//     record may not be on the standby yet.
//   - Leases and expiry use the server's clock (clock_timestamp). The fencing tokens of a
//     key grow even if that clock is set back. There is one exception: an Atomic's
//     transaction has begun, a sweep deletes the expired record of a key, and then the
//     transaction claims that key. Its token may be lower than that of the deleted record.
//     So semel.Options.Retention must be longer than the longest transaction.
//
// # Handlers of Atomic
//
// A handler must write to the database with its transaction only. It must not end the
// transaction, and must not leave a statement running when it returns. It must read or
// close the rows of each query, because nothing can be sent while rows are open. If rows are
// open when the handler returns, the store closes the connection, the call fails, and this
// counts as a failed attempt. A *semel.Failure that the handler returned is not recorded
// then. With Atomic.In it is the caller's connection that is closed.
//
// If a handler calls Commit or Rollback of its pgx.Tx, the store does not send that to the
// server, and the call fails. A handler can still end the transaction with the connection
// that Conn returns, or with an *sql.Tx; then the call fails, too. If the handler has
// committed in this way, the call ends with semel.ErrInDoubt, and its key is parked:
// later calls with the key end with semel.ErrParked, until an operator says whether the
// effect happened. A record that the handler has committed with an outcome, as a
// [Prefetcher] inserts it, is not parked.
//
// In two cases such a call ends with semel.ErrUnavailable, which also wraps
// semel.ErrInDoubt, and its key may not be parked, so that a later call may run the
// handler a second time:
//
//   - A handler that used Conn lost its connection, and the server does not say within
//     StoreTimeout whether the handler has committed.
//   - The handler has committed, but the store does not answer when it parks the key, or
//     another call has claimed the key meanwhile.
//
// If a handler calls Conn while rows are open, or after a statement has failed, the store cannot
// ask for the id of the transaction. Then it asks for the lock of the key instead. It does not
// see the commit in three cases, and a later call may run the handler a second time:
//
//   - The call is a step, which has no lock.
//   - The handler has closed the connection.
//   - The handler has committed and begun another transaction, in which a statement has failed.
//     A failed statement releases the lock in any transaction, so this looks like a handler that
//     has only failed: the call is a failed attempt, and is not in doubt. A batch of
//     one call that has savepoints sees it, and parks the key.
//
// After the handler has returned, the methods of its transaction return
// pgx.ErrTxClosed. The objects that LargeObjects and Conn have returned would still work,
// so do not use them then. For a handler that uses Conn, the store sends
// one more statement, to find out whether the handler has ended the transaction.
//
// For settings, use SET LOCAL or set_config with is_local. If a handler runs SET without LOCAL,
// or RESET, its connection is closed after the transaction, because the next key on it would
// have the setting too. With Atomic.In the connection is the caller's, and stays open. The store
// does not see settings that are made by Conn, by an *sql.Tx, in a function or by a statement
// that was prepared before; they hold for the next user of the connection.
//
// If a statement fails and the handler returns nil nevertheless, the call fails, and
// this counts as a failed attempt. The handler can let a statement fail if it sets a
// savepoint first (tx.Begin) and rolls back to it.
//
// If another transaction is running the same key, the call waits for up to Call.Wait,
// and then ends with semel.ErrInProgress. A call that has joined the transaction of a
// handler cannot wait. If the handler returns its semel.ErrInProgress, no attempt counts, and
// the handler's call runs again within Call.Wait. A handler that returns the
// semel.ErrInProgress of any other call, or of a call for its own key, has failed as with any
// other error.
//
// # COMMIT
//
// If the server refuses COMMIT because of a conflict with another transaction, the handler
// runs again: see [Atomic.Run]. If the server refuses COMMIT for another reason, nothing
// was written. The store then tries to record a failed attempt in a second transaction,
// which also shows what the cause was. If the second transaction commits, the cause was in
// the handler's writes: the attempt counts, and the caller gets the server's error. If it
// does not, the cause is the server: no attempt counts, and the caller gets
// semel.ErrUnavailable.
//
// If the connection ends before the server has answered COMMIT, with or without an error of
// the server, Run asks the server whether the transaction has committed. A standby does not
// count until it has taken over, because it may not have replayed the commit. If the server
// does not answer within StoreTimeout (of semel.Options, 5 s by default), Run returns
// semel.ErrUnavailable (or semel.ErrCanceled), and the error also wraps semel.ErrInDoubt. To
// find out, make the same call again: if the transaction has committed, the call gets the
// recorded result; otherwise the handler runs.
//
// # Batches
//
// A batch is the calls of one [Atomic.RunBatch]. Its calls may run in several
// transactions, one after the other:
//
//   - A transaction takes at most 1,000 calls, because each key takes an advisory lock
//     of the server.
//   - If a transaction conflicts with another one, its calls run again together. After
//     three conflicts, they run in two transactions, one for each half of the calls, and
//     a half may be halved again. If the server refuses COMMIT, the calls run again in
//     halves at once.
//   - If the connection breaks in the handler or at COMMIT, and the server confirms that
//     nothing has committed, the calls run again in halves. A call that breaks its
//     connection even when it runs alone ends with semel.ErrUnavailable, and this counts
//     as a failed attempt.
//   - After any other error of the server or the connection, the batch stops: the calls
//     that have not committed end with semel.ErrUnavailable. If it was a COMMIT that
//     got no answer, the errors of the calls in that transaction also wrap
//     semel.ErrInDoubt.
//
// # Settings
//
// See [Options]. The guide docs/postgres.md in the repository explains throughput,
// the choice of keys, notifications, partitions, roles and PgBouncer.
package pgstore
