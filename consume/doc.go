// Package consume runs the messages of an at-least-once broker through a
// [semel.Runner], so that each message takes effect once. A [Consumer] decides
// what happens to a message; the adapter of a broker (semelkafka, semelnats,
// semelamqp) carries it out. Package driver has the contract of an adapter.
//
// # What happens to a message
//
// driver.Decide implements this table:
//
//	the run ended with                      the message is
//	nil, or a stored result (a duplicate)   acked
//	*semel.Failure, now or in a replay      dead-lettered, then acked (or AckFailures: acked)
//	any other error, a panic                retried after Backoff; after MaxAttempts dead-lettered
//	semel.ErrParked                         quarantined, then acked
//	semel.ErrMismatch                       dead-lettered, then acked
//	semel.ErrInProgress, ErrReleased        held here and tried again soon
//	semel.ErrLeaseLost                      held here; the next try finds the result of the other run
//	semel.ErrUnavailable, ErrCanceled       held here; no message is taken until the store answers
//	  and its transaction did not commit    retried, as after any other error
//	store.ErrCorrupt                        quarantined, then acked
//	semel.ErrOutcomeNotStored               acked, because a second run would double the effect;
//	                                        with a *semel.Failure, as after that
//	semel.ErrNotKept                        acked: a duplicate whose result was too large
//	semel.ErrUnverifiable                   quarantined, then acked
//	semel.ErrInvalid, semel.ErrExpired      dead-lettered, then acked
//
// Some messages do not run. A message without a key (see [Unprotected] and
// [Reject]), with an invalid key, or with more than MaxDeliveries deliveries is
// dead-lettered. A message that is older than Retention is quarantined, because
// the record of an earlier run may be deleted. A message without a time of
// publication always runs.
//
// The outcome is stored before the ack, and a copy is published before the ack.
// After a crash between them the broker redelivers the message; the consumer
// then finds the outcome, or sends the copy again with the same
// driver.LetterID. If the broker does not accept a copy, the message goes back
// for minutes and is not acked; with Kafka the consumer waits with it.
//
// # Order
//
// A Consumer handles messages with equal order keys one at a time, in the order
// of their delivery, retries included. Messages with other order keys overtake
// them. The retry of a message without an order key waits at the broker.
//
// When Serve ends, a handler that Options.Drain cuts off has failed an attempt,
// unless it returns semel.NoEffect.
package consume
