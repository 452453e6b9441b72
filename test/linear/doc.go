// Package linear checks that the operations of a store, with its steps and timers, are linearizable: each
// takes effect at one moment between its call and its return, and the results are
// equal to the results of one record that makes the changes in that order.
//
// [Record] makes a history of a store by several concurrent clients, with faults.
// [Check] judges it. Check compares the history with a model of a record, which is
// written from the rules of package store and shares only types with it.
package linear
