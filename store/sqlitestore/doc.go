// Package sqlitestore keeps records in an SQLite file: the durable, embedded
// store, for one machine.
//
// [Open] takes the path of the file. The file may be the application's own
// database: all of Semel's tables are named semel_…, application_id and
// user_version are left to the application, and an [Atomic] can then commit a
// record together with the application's rows. Semel switches the file to WAL
// mode, which stays.
//
// # Promises
//
// A method that returns nil has written to the disk (WAL, synchronous=FULL),
// so it survives a crash of the process, the system and the power, as long as
// the disk does what fsync asks; see Options.Relaxed. Any number of processes
// of one machine may open the file. Its clock is the wall clock of the process
// that asks, read under the write lock, which the processes of one machine
// share; the fence grows even if that is set back.
//
// A network file system does not work: WAL needs shared memory, and locks that
// hold. Open refuses those that it knows.
//
// Do not use a second SQLite library (such as a cgo driver) on the same file
// in the same process: POSIX locks do not hold between the two. For the same
// reason nothing else in the process may open and close the file while it is
// in use.
//
// # Throughput
//
// SQLite has one writer at a time. The claims, settlements and renewals that
// come while a transaction commits go together in the next one; a lone one is
// sent at once. Duplicates are read on connections of their own, and neither
// wait for a writer nor need room on the disk. New keys in order (UUIDs of version
// 7, ULIDs, numbers; see store.Key.ID) cost a large file less than random ones.
package sqlitestore
