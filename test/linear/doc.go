// Package linear checks that the operations of a store are linearizable: that
// each takes effect at one moment between its call and its return, in an order
// that one record, kept by one hand, could have had.
//
// Record makes a history of a store by several clients at once, with faults
// between them; Check judges it. The record that it is compared with is written
// from the rules of package store, and shares no code with it but the types.
package linear
