// Package outboxcompare compares the outbox of Semel with the forwarder of Watermill, from
// PostgreSQL into Kafka. It is a module of its own, because of the clients that Watermill
// needs.
package outboxcompare
