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
// run the handler for a key, and a settlement stores the result. The page
// docs/glossary.md in the repository explains these and the other terms.
//
// # Ways to run a call
//
//   - [Do], [Once] and [Atomic.Run] run one call in a transaction of its own, and
//     [DoSQL] does so with database/sql.
//   - [Atomic.In] runs calls in a pgx transaction of the caller.
//   - [Atomic.RunWhole] runs one handler for many calls in one transaction. It is meant
//     for a consumer of a broker. A [Prefetcher] looks up the keys of the next calls
//     while the handler runs.
//   - A semel.Guard with this store runs calls under leases, for effects outside of
//     this database.
//
// # Promises
//
//   - A change is committed when the method that makes it returns nil (with Atomic.In
//     and Store.Tx, when the caller commits). With the
//     server's default settings it is then on disk (synchronous_commit=on).
//     [Store.Check] reports settings that break this, and Options.RelaxedClaims
//     relaxes it for claims.
//   - After a failover to an asynchronous standby, the last commits may be missing, and
//     retries of their calls run the handlers again. To prevent this, set
//     synchronous_standby_names. A call then gets a recorded result only after the
//     standby has it. While the standby is away, calls of an Atomic end with
//     semel.ErrUnavailable, and with semel.ErrInDoubt, too, if their COMMIT was waiting.
//   - Leases and expiry use the server's clock (clock_timestamp). The fencing tokens of a
//     key grow even if that clock is set back.
//   - semel.Options.Retention must be longer than the longest transaction. If a sweep
//     deletes the expired record of a key during a transaction, that transaction may get
//     a lower fencing token for the key.
//
// # Handlers of Atomic
//
// A handler must write to the database with its transaction only. It must not end the
// transaction, and must not leave a statement running when it returns. The store does
// not send a COMMIT or ROLLBACK of a handler, and the call fails. With the connection
// that Conn returns, or with an *sql.Tx, a handler can end the transaction nevertheless;
// then the call fails, too. If the handler may have committed, the call ends with
// semel.ErrInDoubt and its key is parked: later calls end with semel.ErrParked until an
// operator has decided.
//
// After the handler has returned, the methods of its transaction return
// pgx.ErrTxClosed. The store cannot guard the results of LargeObjects and Conn, so do not
// use them after the handler has returned. For a handler that uses Conn, the store sends
// one more statement, to find out whether the handler has ended the transaction.
//
// If a statement fails and the handler returns nil nevertheless, the call fails, and
// this counts as a failed attempt. If the server refuses COMMIT but accepts another
// write, this is a failed attempt, too, and the caller gets the server's error.
//
// If another transaction is running the same key, the call waits for up to Call.Wait,
// and then ends with semel.ErrInProgress. If the connection breaks during COMMIT, Run
// asks the server whether the transaction has committed. If the server does not answer
// within StoreTimeout (of semel.Options, 5 s by default), Run returns
// semel.ErrUnavailable (or semel.ErrCanceled) together with semel.ErrInDoubt. Make the
// same call again to find out.
//
// # Batches
//
// A batch is the calls of one [Atomic.RunWhole]. It may run in several transactions, in
// order:
//
//   - A transaction takes at most 1,000 calls, because each key takes an advisory lock
//     of the server.
//   - If a transaction conflicts with another one, its calls run again: up to three
//     times together, and then in halves. If the server refuses COMMIT, they run again
//     in halves.
//   - If the connection breaks in the handler or at COMMIT, and the server confirms that
//     nothing has committed, the calls run again in halves. A call that breaks its
//     connection even when it runs alone ends with semel.ErrUnavailable, and this counts
//     as a failed attempt.
//   - After any other error of the server or the connection, the batch stops: the calls
//     that have not committed end with semel.ErrUnavailable. If the error is a COMMIT
//     without an answer, the calls with writes in it end with semel.ErrInDoubt, too.
//
// # Settings
//
// See [Options]. The guide docs/postgres.md in the repository explains throughput,
// the choice of keys, notifications, partitions, roles and PgBouncer.
package pgstore
