// Package amqptest runs private RabbitMQ nodes for tests, from the server that
// the machine has installed. It is for tests only.
//
// A node listens on the loopback interface, keeps its data in a directory of
// its own, has an epmd of its own, and dies with the test process, however that
// ends. [Server.Kill] and [Server.Start] crash it and bring it back.
// [Server.Eval] asks it what AMQP does not tell, such as how many messages are
// with consumers.
//
// Where there is no server, tests are skipped, loudly; with
// SEMEL_TEST_REQUIRE=1 they fail.
package amqptest
