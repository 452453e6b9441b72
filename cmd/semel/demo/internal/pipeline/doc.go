// Package pipeline is the demo's way of orders as events: a NATS server with
// JetStream in this process, and producers that send each order up to three
// times.
package pipeline
