// Package store has the interface between Semel and the databases that keep its
// records. It is for authors of stores and of tools for operators; users of Semel
// need package semel and one of the stores.
//
// A [Store] keeps records and compares them; it never judges them. One pure
// function, [Decide], says what a record means for a call. Three more say how a
// change makes a new record: [Proposal.Insert], [Proposal.Replace] and
// [Settlement.Apply]. A store that works in Go calls them; a store that works in
// SQL or Lua does the same in its own language, and package storetest compares
// the results.
//
// This package imports only the standard library.
package store
