// Package kafkatest proves package semelkafka on kfake, a broker in the test's
// process, and on a real Apache Kafka where scripts/kafka/kafka has its jars.
// It is a module of its own, so that the adapter does not require either.
package kafkatest
