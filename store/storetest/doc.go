// Package storetest proves that a store keeps the promises of package store.
// It needs nothing but the standard library and Semel itself, and is for
// tests only.
//
// A store's own test is ten lines:
//
//	func TestConformance(t *testing.T) {
//		storetest.Run(t, storetest.Harness{
//			Open: func(t testing.TB) store.Store {
//				st := open(t.TempDir()) // empty, and shared with no other test
//				t.Cleanup(func() { _ = st.Close() })
//				return st
//			},
//		})
//	}
//
// [Run] has a subtest for each rule, so that a failure names the promise that
// is broken, and plays random histories on the store and on the memory store
// side by side. Each further field of [Harness] that is set proves more: with
// Advance expiry is tested to the microsecond and with a clock that is set
// back, with Reopen two handles race, with Begin transactions are tested.
//
// What the suite asks for beyond the words of store.Store:
//
//   - a record's times all come from one reading of the clock: it is exactly
//     what Proposal.Insert, Proposal.Replace or Settlement.Apply makes at the
//     time that its Updated says
//   - a key's Value, a Fingerprint's Sum and an outcome's body and header
//     values are bytes, not text
//   - an expired record stays readable until a sweep: a database that deletes
//     by itself has to be told a later time
//   - where the clock can be set back, a fence that was swept counts still
//   - a call whose context is over beforehand changes nothing and says so, and
//     never by ErrNotFound or ErrLeaseLost
//
// [Fault] stands between a caller and a store and fails, for tests of what
// uses a store. [Bench] measures. [History] plays one history again.
package storetest
