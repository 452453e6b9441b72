// Package nearcache keeps outcomes in the memory of the process, in front of
// any store, so that a duplicate is answered without a round trip.
//
//	near, err := nearcache.New(st, nil)
//	guard, err := semel.New(near, nil)
//
// It holds records that are completed or failed for good, and nothing else: a
// terminal record does not change until it expires. Whether a key is free is
// always asked of the store, and so is everything in flight, released or
// unknown. What a record means for a call is said by store.Decide, as without
// the cache: another payload under a kept key is a mismatch here too.
//
// # What comes in
//
// Only what the store has confirmed: a record that it handed out, and the
// outcome of a claim that this process won, once Settle has succeeded. For the
// latter the store does not say which times it has written, so the cache
// counts them from the claim: Updated, Completed and Expires of such a record
// may be earlier than the store's. Claim hands it out, for duplicates have no
// use for these times; Get asks the store. Nothing is put in by Swap, which
// removes what is there.
//
// # How old an answer may be
//
// A record is handed out until the earlier of
//
//   - its expiry, less Options.Skew and a thousandth of the time. The store's
//     clock is reckoned from the last answer, counted from before it was asked
//     for, by this process's monotonic clock and by its wall clock, whichever
//     says more: so a machine that slept, too, finds it over
//   - Options.MaxAge after the store last confirmed it
//
// So whatever changes a terminal record before it expires (an operator who
// makes a key free or who edits the database, a store that lost data, a store
// whose clock is turned forward) is seen at once by the process that does it
// through the cache, and by the others after MaxAge at the latest. Until then
// duplicates get the outcome that was. No setting lets anything run because of
// the cache: the worst of a stale answer is a replay that comes too late.
//
// While the store is away, duplicates of what is kept are answered still.
//
// # A front
//
// With Options.Front a fast store stands between the processes and the store of
// truth: Redis in front of PostgreSQL, say.
//
//	near, err := nearcache.New(postgres, &nearcache.Options{Front: redis})
//
// What is not in memory is looked for there first, and what the store has
// confirmed is put there too, so that a duplicate is answered which comes to
// another process. The front is written after the store, never before, and
// nothing is decided by it:
//
//   - a front that fails, is slow, is empty, or holds something else, is a miss
//     and never an error. It is left alone for Options.FrontRest then
//   - a front that loses what it holds costs trips to the store, and no more
//   - a front that hands out what is old (a replica that lags, a server that came
//     back from a snapshot) can hand out what the store has confirmed, and
//     within its life: each record travels with the time that is left to it, which
//     is counted by the front's clock from before it was put there. A front whose
//     clock was turned back has none of it, and this process's wall clock has to
//     agree that the record has not expired
//   - a swap through any process takes the key out of the front. If the front
//     cannot be reached then, what it holds lasts for MaxAge at most
//
// It holds fingerprints and outcomes, so it needs the same care as the store;
// who can write to it can make up answers. It may evict as it likes. Its keys
// are those of the store, with "##front" behind the operation, so that it can
// be a store to others beside; Sweep tidies it too.
//
// What it costs: a call with a new key reads the front once before the store
// decides, and writes it twice (claim and settle) once the outcome is
// confirmed, while its caller waits, for at most Options.FrontTimeout each. So it
// pays where a trip to the front is much cheaper than one to the store.
//
// # Memory
//
// At most Options.MaxBytes are kept, counted with what the cache itself needs
// for each record. When it is full the oldest goes that was not asked for since
// the last time it was the oldest (a clock).
package nearcache
