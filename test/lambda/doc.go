// Package lambda runs functions of package semellambda as AWS Lambda runs them: each
// sandbox is a process that takes invocations from a Runtime API, one at a time. It is
// killed at its time-out, in the middle of an invocation, or frozen. The package has
// only tests.
//
// The Runtime API here is the documented one, without limits of memory and without
// other lifecycle events. The campaigns also run in aws-lambda-rie, AWS's own emulator,
// which scripts/lambda-rie installs; SEMEL_TEST_RIE_BIN names another program. Without
// it these tests are skipped.
package lambda
