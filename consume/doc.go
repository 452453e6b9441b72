// Package consume runs the messages of an at-least-once broker through a
// [semel.Runner], so that each message takes effect once. A [Consumer] decides
// what happens to a message; the adapter of a broker (semelkafka, semelnats,
// semelamqp, semelsqs, semelpulsar) carries it out. Package
// [github.com/semel-go/semel/consume/driver] has the contract of an adapter.
//
// A Runner is either a *semel.Guard or the Atomic of a store. A Guard claims a key for
// a limited time, the lease, and renews the lease while the handler runs. An Atomic
// commits the handler's writes and the record of the key in one transaction. Under the
// policy semel.Park, a Guard parks a call if nobody knows whether it took effect: the
// call does not run again until somebody decides. The page docs/glossary.md in the
// repository explains these and the other terms.
//
// # What happens to a message
//
// A try passes a message to the Runner once. A try in which the handler starts is an
// attempt. After each try, one of these things happens to the message:
//
//   - It is acked: it is finished, and the broker may forget it.
//   - It is retried: its handler has failed, and runs again after a pause.
//   - It is held: it cannot run now, because another run of its key is going on or the
//     store does not answer. This process keeps the message unacked, and tries it again
//     soon.
//   - It is dead-lettered, because it has failed for good: a copy goes to the dead
//     letters, which are a topic, queue or stream, and then the message is acked.
//   - It is quarantined, because nobody knows whether it took effect: a copy goes to the
//     quarantine, which is another such place, and then the message is acked.
//
// The result of the Runner decides:
//
//	result of the Runner                    the message is
//	nil: the handler succeeded,             acked
//	  now or for an earlier delivery
//	*semel.Failure: the handler failed      dead-lettered (with AckFailures: acked)
//	  for good, now or earlier
//	the same with                           dead-lettered, also with AckFailures
//	  semel.CodeAttemptsExhausted
//	semel.ErrParked                         quarantined
//	semel.ErrMismatch                       dead-lettered: the key was used with another payload
//	semel.ErrInProgress, ErrReleased        held; if the error has a driver.Turn, until it has come
//	semel.ErrLeaseLost                      held; the next try finds the result of the other run
//	semel.ErrUnavailable, ErrCanceled       held; if the store is down, no message is taken until it answers
//	ErrUnavailable, ErrCanceled of an       retried, because the transaction did not commit; held if
//	  Atomic whose handler has run          only a part of the store is down, such as a shard
//	store.ErrCorrupt                        quarantined: the record cannot be read
//	semel.ErrOutcomeNotStored               acked, because a second run would double the effect
//	the same with a *semel.Failure in it    as for the *semel.Failure alone
//	semel.ErrNotKept                        acked: the handler succeeded earlier
//	semel.ErrUnverifiable                   quarantined: the payload cannot be compared
//	semel.ErrInvalid, semel.ErrExpired      dead-lettered: the call or its token is not valid
//	any other error, or a panic             retried; after MaxAttempts attempts dead-lettered
//
// A Consumer counts the attempts. For everything else in this table it calls
// driver.Decide, which a loop of your own can call, too.
//
// Some messages do not run:
//
//   - A message without a key is dead-lettered. To run it all the same, end the key
//     sources with [Unprotected]; to stop the Consumer instead, with [Reject].
//   - A message with an invalid key is dead-lettered.
//   - A message that was delivered too often is dead-lettered: see Options.MaxDeliveries.
//   - A message that is older than Options.Retention is quarantined, because the record
//     of an earlier run may have been deleted already. A message without a time of
//     publication always runs, and one that an operator has sent back if Options.Reopen
//     is set.
//
// The outcome is stored before the message is acked, and the copy of a dead-lettered or
// quarantined message is published before the message is acked. If the process dies
// before the ack, the broker redelivers the message. The Consumer then finds the outcome,
// and acks the message or publishes the copy again. The second copy has the same header
// driver.LetterID, by which a reader of the dead letters can tell that it is a repeat.
//
// If the broker refuses a copy, the message is not acked, and the Consumer publishes the
// copy again. After ten refusals the Consumer gives the message back to the broker, which
// redelivers it about five minutes later. If the broker cannot redeliver a single message, as
// Kafka and an exclusive or a failover subscription of Pulsar, the Consumer goes on publishing
// the copy.
//
// # Order
//
// The adapter gives each message an order key, for example the key of a Kafka
// record. A Consumer handles messages with equal order keys one at a time, in the order of
// their delivery, retries included. Messages with other order keys go on meanwhile, unless
// as many messages wait as Options.Waiting allows.
// Dead letters keep the order, too, with one exception: a message whose copy the broker has
// refused ten times does not delay the next one any more. Until then the later messages of
// its order key wait. In a FIFO queue of SQS they wait until the message has come again, too.
//
// A message with an order key waits in the Consumer for the pause after a failed attempt.
// A message without one goes back to the broker for that pause, and waits in the Consumer
// in three cases only: if the pause is at most 100 ms, if its key comes from
// [Unprotected], and if the broker cannot redeliver a single message.
//
// # End
//
// When the context of Serve ends, running handlers may go on for Options.Drain. Then
// the contexts of the handlers end, too. If a handler returns an error because of that,
// the attempt counts as failed, unless the error is a semel.NoEffect, which says that
// nothing was done.
package consume
