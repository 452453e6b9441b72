// Package moved moves records from one store to another while calls go on, so that no
// call takes effect a second time.
//
// A move has three parts. First, [Copy] copies the records while the processes still use
// the old store; this part may be left out. Second, all processes stop, and start again
// with the store that [New] makes of both: before each claim of a key it moves the key's
// record to the new store; the old one is only read. Third, Copy copies the rest,
// [Verify] compares, and the processes start with the new store alone. The page
// docs/migrate.md has the commands.
//
// No process may use the old store alone while another uses the new one: the old store
// does not learn what the new one has recorded, so that both would run the same call.
//
// Copy the rest within the retention after the second part, and not later. If a saga or a call
// in doubt of the old store has ended in the new one, and its record there has expired or was
// erased, Copy brings it back as it was, and it runs again.
//
// A record keeps its state, fence, owner, times, outcome and steps. The fences of the new
// store are above the fences of the old one, because New waits until the new store's clock
// is past the old store's. The timers of sagas are set again, due after a second: a timer may
// be early. Messages of an outbox are in tables of their own and are not moved, and calls in
// a transaction (Atomic) do not pass the store that New makes: copy all records while no
// process runs.
package moved
