// Package outboxcompare compares the outbox of Semel with the forwarder of Watermill, from
// PostgreSQL into Kafka. It is a module of its own, because of the clients that Watermill
// needs. So it also tests semelwatermill with the messages of watermill-kafka.
package outboxcompare
