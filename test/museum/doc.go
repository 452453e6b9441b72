// Package museum holds seeded bugs that the tests of the project must catch.
//
// Each exhibit is a small change of one source file that breaks a rule; for
// many, other projects have had a bug like it. TestMuseum applies one at a
// time through the overlay of go test, without touching the source tree, and
// requires that the change compiles and that a named test fails. An exhibit
// that survives is a rule without a test.
//
// When TestEachMutantFitsTheCode fails, the code has moved on: mend the Old
// and New of the exhibit that it names.
package museum
