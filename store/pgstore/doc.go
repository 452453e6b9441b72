// Package pgstore keeps the records of Semel in PostgreSQL, version 14 or later. Use
// it if the effects of your handlers are rows in PostgreSQL: record and effect then
// commit in one transaction, so the effect happens exactly once. The page
// docs/glossary.md in the repository explains the terms, such as claim, lease,
// settlement and fencing token.
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
// # Ways to run a call
//
//   - [Do], [Once] and [Atomic.Run] run one call in a transaction of its own.
//   - [Atomic.In] runs calls in a pgx transaction of the caller, [DoSQL] in a
//     transaction of database/sql.
//   - [Atomic.RunWhole] runs one handler for many calls in one transaction, for a
//     consumer of a broker. A [Prefetcher] looks up the next batch in the meantime.
//   - A semel.Guard over the store runs calls under leases, for effects outside of
//     this database.
//
// # Promises
//
//   - A method that returns nil has committed. With the server's default settings
//     the commit is on disk (synchronous_commit=on). [Store.Check] reports settings
//     that break this, and Options.RelaxedClaims relaxes it for claims.
//   - After a failover to an asynchronous standby, the last commits may be missing,
//     and their calls run again. To prevent it, set synchronous_standby_names.
//   - Leases and expiry use the server's clock (clock_timestamp). Fencing tokens grow
//     even if that clock is set back.
//   - The retention must be longer than the longest transaction. If a key expires and
//     is swept during a transaction, that transaction may get a lower fencing token.
//
// # Handlers of Atomic
//
// A handler must write to the database with its transaction only. It must not commit
// or roll back, and must not leave a statement running. After the handler has
// returned, methods of its transaction return pgx.ErrTxClosed. The results of
// LargeObjects and Conn are not guarded; do not use them after the handler.
//
// If another transaction is running the same key, the call ends with
// semel.ErrInProgress, or waits for up to Call.Wait. If the connection breaks during
// COMMIT, Run asks the server for up to 10 seconds whether the transaction has
// committed. If the server does not answer, Run returns semel.ErrUnavailable (or
// semel.ErrCanceled) and semel.ErrInDoubt. Make the same call again to find out.
//
// # Batches
//
// One batch of [Atomic.RunWhole] may end as several transactions, in order:
//
//   - A transaction takes at most 1,000 calls, because each key takes an advisory lock
//     of the server.
//   - If a transaction conflicts with another one, the batch runs again, first whole,
//     then in halves. If the server refuses COMMIT, it runs again in halves.
//   - If a connection breaks in the handler or at COMMIT, and the server confirms that
//     nothing has committed, the batch runs again in halves. A call that breaks its
//     connection even when it runs alone ends with semel.ErrUnavailable, and a failed
//     attempt is recorded. If a connection breaks at another time, the calls that have
//     not committed yet end with semel.ErrUnavailable.
//
// # Settings
//
// See [Options]. The guide docs/postgres.md in the repository explains throughput,
// the choice of keys, notifications, partitions, roles and PgBouncer.
package pgstore
