// Package pgstore keeps records in PostgreSQL (14 and later): the store for
// money that is in PostgreSQL already.
//
// [Open] takes a URL, [New] the application's pool. Both make the schema
// "semel" (Options.Schema) with the tables of Semel, or check that it is there.
// A role that may SELECT, INSERT, UPDATE and DELETE rows is enough once
// [Store.Migrate] has run; a migration may bring a table, so have ALTER DEFAULT
// PRIVILEGES grant that for those to come. [Migrations] has the scripts for those
// who run them by other means. The view semel_readable is for people.
//
// # Promises
//
// A method that returns nil has committed, with the durability that the server
// is set to: by default it has waited for the disk (synchronous_commit=on), so
// it survives a crash of the server. [Store.Check] (semel doctor) names settings
// that break this: Open and New do not look at them. Options.RelaxedClaims is the
// one that the store offers. After a failover to a standby that was not
// synchronous the last commits may be gone, and what they recorded runs again: set
// synchronous_standby_names where that must not be.
//
// A retention must exceed the longest transaction: a key that ends, expires and
// is swept within a transaction that began before may get a lower fence in it.
//
// The clock is the server's (clock_timestamp()). The fence grows even if that
// is set back, or a standby with another clock takes over.
//
// # Two ways to run
//
// A semel.Guard over the store runs calls under leases, for effects that are
// elsewhere. [Atomic] commits the record together with what the handler writes
// to the database: in a transaction of its own, in one that the caller has
// open with pgx ([Atomic.In]), or in one of database/sql ([DoSQL]).
//
// [Atomic.RunWhole] runs a whole poll of a broker in one transaction, with one
// handler for all messages, so that their rows can be written in one statement. A
// [Prefetcher] looks for each batch while the one before it runs. Package
// pgkafka has what a consumer of Kafka needs beside that.
//
// # Handlers of Atomic
//
// A handler must not end its transaction, leave a statement running in it, or
// write to the database in another way. After the handler has returned, its
// transaction answers pgx.ErrTxClosed; only the results of LargeObjects and Conn
// are not guarded, and must not be used then.
//
// A duplicate in flight is semel.ErrInProgress, or waits for up to Call.Wait. If
// the connection breaks during COMMIT, Run asks the server for up to 10 s what
// became of it. If the server does not answer, Run returns semel.ErrUnavailable
// (and semel.ErrInDoubt) although the transaction may be committed: the same call,
// made again, finds out.
//
// # Batches
//
// If the server refuses a transaction of [Atomic.RunWhole] because of another
// transaction, it runs again, whole, then in halves. If the server refuses COMMIT,
// the batch runs again in halves. So one batch may end as several transactions, in
// order. If a connection breaks, each call of that transaction and each call after
// it ends with semel.ErrUnavailable. A connection that breaks inside the handler,
// or at COMMIT, may be the fault of one call: if the store still answers and
// nothing was committed, the batch runs again in halves, and the call that breaks
// the connection alone ends with semel.ErrUnavailable and a noted attempt.
//
// Each key takes an advisory lock until the transaction ends; more than 1,000
// calls are split into several transactions.
//
// # Throughput
//
// Claims that come while a round trip is in flight go together in the next
// one, and so do settlements, in a lane of their own; a lone one is sent at
// once. A claim is one statement: an insert that decides, behind a read that
// spares duplicates the lock. Renewals have a connection to themselves. A row
// that another transaction has locked holds up who wants it, and nobody else.
// No index but the primary key exists: a sweep, and List, read the table in
// the order of the disk. The store's own connections run with enable_seqscan,
// enable_hashjoin, enable_mergejoin and jit off, and plan_cache_mode
// force_generic_plan, so that a plan which was made while the table was small
// stays good. Where a pooler does not pass such settings on, or the URL says
// otherwise, each batch brings them along. Statements of Atomic run on the
// application's, where such a plan lasts until the table is next analyzed.
//
// Keys that tell their order, as UUIDs of version 7, ULIDs and numbers do (see
// store.Key.ID), are written next to each other. Random ones (UUIDs of version 4) go
// to any page of the index: in a table of many millions that takes memory for all
// of it, and after a checkpoint several times the server's log for each new key.
//
// # Waiting
//
// A call that waits for a running duplicate (semel.Call.Wait) in another
// process polls, at growing intervals of up to half a second. With
// Options.Notify it is told: each store listens on a connection of its own, and
// what ends a run is said to all of them after it has been committed. It is a
// hint: the call looks for itself, and if a notification is lost (its sender
// died, the listener's connection broke) it polls.
//
// # Partitions
//
// With Options.Partitions the table of records is made in partitions by hash of
// the id: each is vacuumed by itself, and a statement for a key reads the one
// that has it. The id follows from the key alone, so all who want a key meet in
// one partition, whose unique index decides. Partitions by time are not
// offered: a server has no unique index across them, so a key is granted once
// in each, and a retry after midnight runs again. They would do only for keys
// that carry their own time. Records leave by [Store.Sweep] all the same.
//
// # PgBouncer
//
// Transaction pooling works, without Options.Notify, which Open then refuses:
// the store keeps no other state in a session. Prepared statements need
// PgBouncer 1.21 (max_prepared_statements); before that, add
// default_query_exec_mode=exec to the URL. It is tested on 1.18, and by
// "make test-pgbouncer" on 1.24.
package pgstore
