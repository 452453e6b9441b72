// Package consume runs the messages of an at-least-once broker through a
// [semel.Runner], so that each message takes effect once. A [Consumer] decides
// what happens to a message; the adapter of a broker (semelkafka, semelnats,
// semelamqp) carries it out. Package driver has the contract of an adapter.
//
// # What happens to a message
//
// A message is acked when it is finished. It is retried when its handler has
// failed: it comes again after a pause. It is held when it is not its turn: this
// process keeps it unacked and tries again soon. The dead letters take copies of
// messages that failed for good, and the quarantine takes copies of messages of
// which nobody knows whether they took effect. driver.Decide implements this table:
//
//	the run ended with                      the message is
//	nil, or a stored result (a duplicate)   acked
//	*semel.Failure, now or in a replay      dead-lettered, then acked (or AckFailures: acked)
//	semel.ErrParked                         quarantined, then acked
//	semel.ErrMismatch                       dead-lettered, then acked
//	semel.ErrInProgress, ErrReleased        held
//	semel.ErrLeaseLost                      held; the next try finds the result of the other run
//	semel.ErrUnavailable, ErrCanceled       held; no message is taken until the store answers
//	  after the handler ran in an Atomic    retried, because its transaction did not commit
//	store.ErrCorrupt                        quarantined, then acked
//	semel.ErrOutcomeNotStored               acked, because a second run would double the effect;
//	  with a *semel.Failure in it           as after the *semel.Failure
//	semel.ErrNotKept                        acked: a duplicate whose result was too large
//	semel.ErrUnverifiable                   quarantined, then acked
//	semel.ErrInvalid, semel.ErrExpired      dead-lettered, then acked
//	any other error, a panic                retried; after MaxAttempts dead-lettered
//
// Some messages do not run. A message without a key (unless the key sources end
// with [Unprotected] or [Reject]), with an invalid key, or with more than
// MaxDeliveries deliveries is dead-lettered. A message that is older than Retention
// is quarantined, because the record of an earlier run may be deleted. A message
// without a time of publication always runs.
//
// The outcome is stored before the ack. The copy of a dead-lettered or quarantined
// message is published before the ack, too. After a crash between them the broker
// redelivers the message; the consumer then finds the outcome, or sends the copy
// again with the same driver.LetterID. If the broker does not accept a copy, the
// message is not acked: the broker redelivers it minutes later, or, with Kafka, the
// consumer keeps it and publishes the copy again.
//
// # Order
//
// The adapter gives each message an order key, for example the partition and key of
// a Kafka record. A Consumer handles messages with equal order keys one at a time, in
// the order of their delivery, retries included. Messages with other order keys
// overtake them. The retry of a message without an order key waits at the broker.
//
// When Serve ends, a handler whose context Options.Drain ends counts as a failed
// attempt, unless it returns semel.NoEffect.
package consume
