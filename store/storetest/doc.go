// Package storetest is the conformance suite for stores: it tests that a store
// keeps the promises of package store. It is for tests only, and depends on the
// standard library and Semel alone.
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
// [Run] has a subtest for each rule, so that the name of a failed subtest is the
// broken promise. It also plays random histories on the store and on the memory
// store, and compares them. The optional fields of [Harness] add tests:
//
//   - Advance: expiry to the microsecond, and a clock that is set back
//   - Reopen: races between two handles
//   - Begin: transactions
//   - HideOutcomes: records whose outcomes cannot be read
//
// The suite demands these properties, which the docs of store.Store leave open:
//
//   - All times of a record come from one reading of the clock. The record is
//     exactly the one that Proposal.Insert, Proposal.Replace or Settlement.Apply
//     makes at the time of its Updated.
//   - A key's Value, a Fingerprint's Sum, and the body and header values of an
//     outcome are bytes, not text.
//   - An expired record stays readable until a sweep. If the database deletes
//     expired rows itself, give it a later time.
//   - If the clock can be set back, a new claim of a swept key still gets a
//     higher fence.
//   - A call whose context has ended before the call changes nothing, and returns
//     an error other than ErrNotFound and ErrLeaseLost.
//
// [Fault] wraps a store and makes its calls fail, for tests of code that uses a
// store. [Bench] measures a store. [History] plays one random history again.
package storetest
