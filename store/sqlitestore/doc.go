// Package sqlitestore keeps records in an SQLite file. It is the durable store
// for one machine, and needs no server.
//
// [Open] takes the path of the file. The file may be the application's own
// database: all of Semel's tables are named semel_…, application_id and
// user_version are left to the application, and an [Atomic] can then commit a
// record together with the application's rows. Semel switches the file to WAL
// mode, which stays. The encoding of the file must be UTF-8, SQLite's default.
//
// # Promises
//
// A method that returns nil has written to the disk (WAL, synchronous=FULL),
// so the change survives a crash of the process or the system and a power loss,
// if the disk obeys fsync; see Options.Relaxed. Any number of processes of one
// machine may open the file. The store's clock is the wall clock of that machine,
// read under the write lock; the fence grows even if the clock is set back.
//
// A network file system does not work, because WAL needs shared memory and
// reliable locks. Open refuses the ones it knows.
//
// The file must have one name, because SQLite finds the log and the locks by it: Open
// refuses a file with hard links, and one that is mounted by itself (mount its
// directory). Symbolic links are fine. If the file is removed or replaced while the
// store is open, calls fail with ErrUnsafe until the process is restarted.
//
// Do not use a second SQLite library (such as a cgo driver) on the same file
// in the same process, because POSIX locks do not work between the two. For the
// same reason nothing in the process may open and close the file by other means
// while the store is open.
//
// # Throughput
//
// SQLite has one writer at a time. Claims, settlements and renewals that arrive
// while a transaction commits share the next one; a single one is written at
// once. Duplicates change nothing: they need no disk space, and are read on
// separate connections while a handler's transaction holds the lock. In a large
// file, ordered new keys (UUIDs of version 7, ULIDs, numbers; see store.Key.ID) are
// cheaper than random ones.
package sqlitestore
