// Package sqstest runs ElasticMQ, an emulator of Amazon SQS, for tests. It is for tests
// only.
//
// A server listens on the loopback interface, keeps its queues in memory, and on Linux
// dies with the test process, however that ends.
//
// If there is no ElasticMQ, or no java, tests are skipped with a message; if
// SEMEL_TEST_REQUIRE is 1, they fail. scripts/elasticmq/elasticmq fetches the jars from
// Maven Central. SEMEL_TEST_ELASTICMQ_JARS names their directory, and
// SEMEL_TEST_SQS_URL a server that replaces the shared one.
package sqstest
