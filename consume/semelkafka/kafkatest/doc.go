// Package kafkatest proves package semelkafka on kfake, a broker in the test's
// process, and on a real Apache Kafka, whose jars scripts/kafka/kafka fetches.
// It is a module of its own, so that the adapter does not require either.
package kafkatest
