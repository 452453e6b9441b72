// Package lambda runs functions of package semellambda as AWS Lambda runs them: each
// sandbox is a process that takes invocations from a Runtime API, one at a time. It is
// killed at its time-out, in the middle of an invocation, or frozen. The package has
// only tests.
//
// The Runtime API here is the documented one, without limits of memory and without
// other lifecycle events. SEMEL_TEST_RIE_BIN names AWS's own emulator; if it is set,
// or aws-lambda-rie is in the PATH, a test runs a function in it, too.
package lambda
