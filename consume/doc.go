// Package consume runs messages of an at-least-once broker through a
// [semel.Runner], so that each takes effect once: one contract for every
// broker. A [Consumer] decides, and the adapter of a broker, a [Source],
// carries out.
//
// # What becomes of a message
//
// [Decide] is this table, and nothing else decides:
//
//	the run ended with                      the message is
//	nil, or a kept result (a duplicate)     acked
//	*semel.Failure, now or in a replay      dead-lettered, then acked (or AckFailures: acked)
//	any other error, a panic                retried after Backoff; after MaxAttempts dead-lettered (where they
//	                                        are counted: see Options.MaxDeliveries)
//	semel.ErrParked                         parked, then acked
//	semel.ErrMismatch                       dead-lettered, then acked
//	semel.ErrInProgress, ErrReleased        held here, and looked at again soon; never acked, never dropped
//	semel.ErrLeaseLost                      held here; the next look finds what the other run left
//	semel.ErrUnavailable                    held here; no message is taken until the store answers
//	  and its transaction did not commit    retried, as after an error: that may be its own doing
//	  and its record cannot be read         parked, then acked
//	semel.ErrOutcomeNotStored               acked: it has run, and to run it again would double the effect;
//	                                        with a *semel.Failure as that
//	semel.ErrNotKept                        acked: a duplicate whose result was too large
//	semel.ErrUnverifiable                   parked, then acked
//	semel.ErrInvalid, semel.ErrExpired      dead-lettered, then acked
//
// A message is not run at all, but dead-lettered, if it has no key (or see
// [Unprotected] and [Reject]), a malformed one, or more than MaxDeliveries; and
// parked, if it is older than outcomes are kept, for then nobody knows whether
// it has run. The age of a message without a time of publication, such as one of
// RabbitMQ's whose producer sets no timestamp, is not known: it is run.
//
// The outcome is stored before the ack, and a copy is published before the
// ack. A crash between brings the message again, and then its outcome is found,
// or the copy is sent again with the same [LetterID]. A message whose copy the
// broker does not take goes back to it for minutes, and is never acked; where
// it cannot be given back alone (Kafka), the consumer waits with it.
//
// A handler that the end of the service cuts off (Options.Drain) has failed an
// attempt, unless it returns semel.NoEffect: say so if nothing was sent.
//
// # Order
//
// Messages with equal OrderKeys are handled one at a time, in the order of
// their delivery, and wait here for the retries of those before them. Others
// overtake. A retry of a message without an OrderKey goes back to the broker, if
// its key is not one of [Unprotected].
package consume
