// Package natstest proves package semelnats on a real NATS server, which runs
// in the test's process. It is a module of its own, so that the adapter does
// not require the server.
package natstest
