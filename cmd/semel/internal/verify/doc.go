// Package verify implements semel verify: it tests on a real store, which may be in
// use, the guarantees of package store. It writes only records of its own, and
// removes them at the end.
//
// A check reports a violation only if nothing else can be the cause: no other
// process, no slow network, no machine that was suspended for minutes. It compares
// times with the store's clock, or with bounds that hold even if an answer is late.
// It skips a record that the sweep of another process has recovered meanwhile.
package verify
