// Package dynamotest runs ministack, an emulator of DynamoDB and S3, for tests. It is
// for tests only.
//
// A server listens on the loopback interface, keeps its tables in memory, and on
// Linux dies with the test process, however that ends.
//
// If there is no ministack, tests are skipped with a message; if SEMEL_TEST_REQUIRE
// is 1, they fail. scripts/ministack installs it from PyPI. SEMEL_TEST_MINISTACK_BIN
// names the program. SEMEL_TEST_DYNAMODB_URL names a server that replaces the shared
// one.
package dynamotest
