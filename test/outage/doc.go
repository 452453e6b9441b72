// Package outage tests how long callers wait for a server that gives no answer:
// frozen, cut off from the network, or killed, while calls are in flight.
package outage
