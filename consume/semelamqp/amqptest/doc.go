// Package amqptest runs private RabbitMQ nodes for tests, from the server that
// this machine has installed. It is for tests only.
//
// A node listens on the loopback interface, keeps its data in a directory of its
// own, has an epmd of its own, and on Linux dies with the test process, however
// that ends. [Server.Kill] and [Server.Start] crash a node and start it again.
// [Server.Eval] asks the node for facts that AMQP does not offer, such as the
// number of messages that consumers hold.
//
// If there is no server, tests are skipped with a message; if
// SEMEL_TEST_REQUIRE is 1, they fail.
package amqptest
