// Package proctest starts the child processes of tests: the private servers of
// pgtest, redistest and amqptest, brokers, and workers that a test kills. It is
// for tests only.
//
// On Linux a child process dies with the test process, however that ends. On
// other systems a child process may outlive a test process that is killed.
//
// [Start] runs a program. A [Server] is a program that listens on the loopback
// interface, keeps its files in a directory of its own, and can be killed and
// started again. [Need] skips a test whose program is not installed, and fails
// it if SEMEL_TEST_REQUIRE is 1.
package proctest
