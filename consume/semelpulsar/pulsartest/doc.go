// Package pulsartest runs a broker of Apache Pulsar for tests. It is for tests only.
//
// A server is Pulsar itself, with one broker and one bookie in one process. It listens on
// the loopback interface, creates topics by itself, takes about 10 s to start and 500 MB
// of memory, and on Linux dies with the test process, however that ends.
//
// If there is no Pulsar, or no java, tests are skipped with a message. scripts/pulsar/pulsar
// fetches it from Maven Central. SEMEL_TEST_PULSAR names its directory; then it is required.
package pulsartest
