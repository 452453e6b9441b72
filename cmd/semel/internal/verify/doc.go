// Package verify tries out, on a store that is in use, what package store
// promises: for semel verify. It works on records of its own only, and removes
// them at the end.
//
// A violation is said only of what cannot be the work of anybody else, of a
// slow network or of a machine that stood still for some minutes: times are
// compared with the store's own, or as bounds that hold however late an answer
// came, and a record that somebody's sweep has recovered meanwhile is not
// judged.
package verify
