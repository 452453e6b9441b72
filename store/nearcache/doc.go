// Package nearcache keeps outcomes in the memory of the process, in front of
// any store, so that a duplicate is answered without a round trip.
//
//	near, err := nearcache.New(st, nil)
//	guard, err := semel.New(near, nil)
//
// It caches completed and failed records, and no others: a terminal record does
// not change until it expires. The store alone decides whether a key is free.
// store.Decide says what a cached record means for a call, so another payload
// under a cached key is a mismatch here too.
//
// # What is cached
//
// The cache takes a record that the store returned, and the outcome of a claim
// that this process won, once Settle has succeeded. Settle does not return the
// times that the store wrote, so the cache estimates them from the claim:
// Updated, Completed and Expires may be earlier than the store's. Claim returns
// such a record to a duplicate; Get asks the store. Swap removes the key.
//
// # How old an answer may be
//
// The cache answers with a record until the earlier of
//
//   - its expiry, less Options.Skew and a thousandth of the time that was left.
//     Time is counted from before the store was asked, by the monotonic clock or
//     by the wall clock of this process, whichever shows more, so that a record
//     expires in time after the machine slept
//   - Options.MaxAge after the store last confirmed it
//
// If somebody changes a terminal record before it expires (an operator frees a
// key or edits the database, the store loses data), the process that does so
// through the cache sees it at once, and the others after MaxAge at the latest.
// Until then duplicates get the earlier outcome. A stale answer never lets a
// handler run. While the store is down, cached keys are still answered.
//
// # A front: a shared cache
//
// With Options.Front a fast store that all processes share stands before the
// store of record: Redis in front of PostgreSQL, say.
//
//	near, err := nearcache.New(postgres, &nearcache.Options{Front: redis})
//
// A key that is not in memory is looked up in the front, and a record that the
// store confirmed is written to the front, after the store. The front decides
// nothing:
//
//   - if it fails, is slow, is empty or holds something else, that is a miss and
//     never an error, and it is not asked again for Options.FrontCooldown
//   - each record carries the time that it may still be used for, counted by the
//     front's clock from before it was written. If that clock was set back, or
//     this process's wall clock says that the record has expired, it is a miss
//   - a swap through any process leaves a mark in the front, so that a process
//     which read the key before the swap cannot write the earlier record
//     afterwards. The record that takes the mark's place keeps it out too, also
//     when its life is over or its writer has died. If the front cannot be reached
//     during the swap, or evicts the mark, the earlier record may be used for MaxAge
//     at most. Use one MaxAge in all processes
//
// The front holds fingerprints and outcomes, so protect it like the store:
// anybody who can write to it can forge answers. It may evict. A key in the front
// is the store's key with "##front" after the operation; Sweep removes expired
// keys of the front too.
//
// A call with a new key reads the front once, and writes it twice after its
// outcome is confirmed, each for at most Options.FrontTimeout. That pays if a
// round trip to the front is much cheaper than one to the store.
//
// # Memory
//
// Options.MaxBytes bounds the memory, the cache's own data included. When it is
// full, the oldest record that was not used since its last turn is removed.
package nearcache
