// Package consume runs the messages of an at-least-once broker through a
// [semel.Runner], so that each message takes effect once. A [Consumer] decides
// what happens to a message; the adapter of a broker (semelkafka, semelnats,
// semelamqp, semelsqs, semelpulsar) carries it out. Package
// [github.com/semel-go/semel/consume/driver] has the contract of an adapter.
//
// # What happens to a message
//
// After each try, one of these things happens to a message:
//
//   - It is acked: it is finished, and the broker may forget it.
//   - It is retried: its handler has failed, and runs again after a pause.
//   - It is held: it cannot run yet, because its key runs elsewhere or the store does not
//     answer. This process keeps it unacked and tries again soon.
//   - It is dead-lettered, because it has failed for good: a copy goes to the dead
//     letters, which are a topic, queue or stream, and then the message is acked.
//   - It is quarantined, because nobody knows whether it took effect: a copy goes to the
//     quarantine, which is another such place, and then the message is acked.
//
// driver.Decide implements this table; the Consumer counts MaxAttempts:
//
//	the run ended with                      the message is
//	nil, or a stored result (a duplicate)   acked
//	*semel.Failure, now or in a replay      dead-lettered (or AckFailures: acked)
//	  with semel.CodeAttemptsExhausted      dead-lettered, also with AckFailures
//	semel.ErrParked                         quarantined
//	semel.ErrMismatch                       dead-lettered
//	semel.ErrInProgress, ErrReleased        held
//	semel.ErrLeaseLost                      held; the next try finds the result of the other run
//	semel.ErrUnavailable, ErrCanceled       held; if the store is down, no message is taken until it answers
//	  after the handler ran in an Atomic    retried, because its transaction did not commit;
//	                                        held, if only a part of the store is away
//	store.ErrCorrupt                        quarantined
//	semel.ErrOutcomeNotStored               acked, because a second run would double the effect;
//	  with a *semel.Failure in it           as after the *semel.Failure
//	semel.ErrNotKept                        acked: a duplicate whose result was too large
//	semel.ErrUnverifiable                   quarantined
//	semel.ErrInvalid, semel.ErrExpired      dead-lettered
//	any other error, a panic                retried; after MaxAttempts dead-lettered
//
// Some messages do not run:
//
//   - A message without a key is dead-lettered, unless the key sources end with
//     [Unprotected] or [Reject]. So is a message with an invalid key.
//   - A message that was delivered more than MaxDeliveries times is dead-lettered, if its
//     handler has begun MaxDeliveries times. Under [Unprotected] the deliveries alone
//     count.
//   - A message that is older than Retention is quarantined, because the record of an
//     earlier run may be deleted. A message without a time of publication always runs.
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
// overtake them, also while one order key fails: Options.Waiting limits how
// many messages wait. Dead letters keep the order, too, unless the broker refuses a
// letter ten times and takes its message back.
//
// A message without an order key waits for its retry at the broker. It waits in the
// Consumer instead if the pause is at most 100 ms, if it runs under [Unprotected], or if the
// broker is Kafka, which cannot redeliver one message.
//
// # End
//
// When the context of Serve ends, running handlers may go on for Options.Drain. Then
// their contexts end, too. If a handler returns an error then, its attempt counts as
// failed, unless the error is a semel.NoEffect.
package consume
