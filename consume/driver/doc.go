// Package driver holds what the adapter of a broker and package consume share:
// the messages, the contract of an adapter ([Source] and [Delivery]), the table
// that decides about a message ([Decide]), and the headers of the copies that
// go to the dead letters and to the quarantine ([Letter]).
//
// Import it to write an adapter, or to compare the reasons and read the headers
// that a consumer reports. To consume messages, import package consume and an
// adapter, such as semelkafka. Package consumetest tests an adapter.
package driver
