// Package store is the seam between Semel and the databases that keep its
// records. It is for people who write a store, an adapter or an operator's
// tool; people who only use Semel need package semel and one of the stores.
//
// A [Store] moves records and compares them. It never classifies: what a
// record means for a call is said by one pure function, [Decide], which every
// fast path, cache and waiter calls too. What a change makes of a record is
// said by three more, [Proposal.Insert], [Proposal.Replace] and
// [Settlement.Apply]; a store that works in Go calls them, one that works in
// SQL or Lua mirrors them, and package storetest compares the two.
//
// This package imports nothing but the standard library, and nothing of the
// rest of Semel.
package store
