// Package museum holds seeded bugs that the tests of the project must catch.
//
// Each bug is a Mutant: a small change of one declaration that breaks a rule of
// the protocol. Many are bugs that other projects have had. TestMuseum applies
// each mutant alone and requires that the change compiles and that the tests
// named by Run fail. A mutant that survives shows a rule without a test.
//
// # How to add a seeded bug
//
//   - Add a Mutant to the list of its topic. Dir and Func name the declaration,
//     Old and New the change, Rule the rule that it breaks (see rules).
//   - Old needs only the words of Go that make its place unique in Func; write
//     no comments into it. Within a string literal, such as a statement of SQL,
//     Old is text, and white space does not count.
//   - Package and Run name the tests that must fail. Name the one test that is
//     written for the rule, so that the run is short.
//   - Check it: go test -run 'TestMuseum/NAME' .
//
// If TestMutants_CodeOfToday_EachFits fails, the code has changed: correct Dir, Func,
// Old and New of the mutant that it names, or remove the mutant if the
// mechanism is gone.
//
// # How a mutant runs
//
// All mutants share one build of the tests of each package: in an overlay of
// the source each function begins with a copy of its body for each mutant, and
// the environment variable SEMEL_SEEDED_BUG switches one on. First all tests
// that the mutants name run without a mutant; these must pass. A mutant outside
// the body of a function, in a function that calls recover, or that does not
// compile beside the others, has a build of its own. The source tree is not
// touched. Tests of allocations (named Allocate) are left out, because the
// copies allocate.
package museum
