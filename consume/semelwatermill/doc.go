// Package semelwatermill makes a handler of a Watermill router take each message once,
// although the broker delivers it again, and publishes the same messages after each
// delivery.
//
//	once, err := semelwatermill.Handler(guard,
//		consume.Keyed("billing", consume.FromHeader(consume.KeyHeader), consume.BrokerID()), bill, nil)
//	…
//	router.AddHandler("billing", "orders", subscriber, "bills", publisher, once)
//
// [NoPublishHandler] does the same for AddConsumerHandler. The handler finds its
// semel.Execution with semel.FromContext, and the message as package consume sees it with
// consume.FromContext, from msg.Context(). It gets a copy of the message, so that its own
// Ack and Nack have no effect: the router acks after the outcome is stored.
//
// consume.FromHeader finds a key in the metadata of a message. consume.BrokerID takes its
// UUID, which stays the same if the broker delivers the message again, and if the producer
// publishes the same message again.
//
// # What happens to a message
//
// The table of package consume decides:
//
//	acked             the router publishes what the handler returned, and acks
//	retried           an error: the router nacks, or a Retry middleware runs it again
//	held              the wrapper waits, and tries again until msg.Context() ends;
//	                  then an error
//	dead-lettered,    an error for which ForPoisonQueue is true, in each delivery
//	quarantined
//
// A message is held while its key runs elsewhere, and while the store does not answer.
// It is not acked meanwhile. consume.Reject does not stop the router: a message without a
// key is an error after one second, in each delivery, and ForPoisonQueue is false for it.
// A panic of the handler is an error. consume.Options.Observe
// gets each decision. If the store does not answer, it also gets the beginning and the end
// of the wait of each message.
//
// # Messages that a handler publishes
//
// The outcome keeps the messages that the handler returns. The router publishes them
// after the outcome is stored. If the process dies between the two, or publishing fails,
// the next delivery publishes them from the outcome, with the same UUIDs, metadata and
// payloads, and the handler does not run. So each is published at least once, and again
// for each duplicate. Let the next consumer recognize repeats: by their UUID, or by a
// key that the handler sets:
//
//	out.Metadata.Set(consume.KeyHeader, x.DownstreamKey("bill"))
//
// Messages of more than semel.Options.MaxOutcome together are not kept: the first
// delivery publishes them, and a later one is an error for the poison queue, because
// nobody knows whether they were published. If messages must commit with the handler's
// writes to a database, or must not be published again, use package outbox.
//
// # Middlewares of the router
//
// All middlewares of the router stand outside of the wrapped handler, so they also see
// replays:
//
//   - Retry: without it, a broker delivers a nacked message again at once, up to
//     consume.Options.MaxAttempts. Each retry is an attempt of the key. To pause without
//     it, set semel.Options.Backoff: the next delivery is held until the pause is over.
//     Set ShouldRetry to stop if ForPoisonQueue is true. With Timeout, set
//     ResetContextOnRetry, because the context of the first attempt has ended.
//   - PoisonQueue: use PoisonQueueWithFilter with [ForPoisonQueue], and add it before
//     Retry. Without the filter, a message that was only held when the router was closed
//     goes to the poison queue.
//   - Timeout: it limits the handler and the waiting. The error of a handler that stops
//     for it is doubt, as is any other.
//   - Recoverer: not needed for the handler, and does no harm.
//   - Deduplicator: remove it. It marks a message before the handler runs, so that a
//     message whose handler failed is acked without effect at its next delivery.
//   - InstantAck: remove it. It acks before the outcome is stored.
//
// Do not wrap such middlewares around the handler before you pass it to Handler: a Retry
// there would repeat a handler although semel.Park forbids it.
//
// # Limits
//
// watermill-kafka passes the key of a record on in the context of a message only, and this package
// does not see it there. Without it consume.Hash takes two records for one if their bodies are equal, such
// as {"status":"paid"}, and all tombstones of a topic. Copy the key in your Unmarshaler. Leave the
// metadata of a record without a key as they are: a poison queue or a requeuer publishes the metadata
// of a message, but not the key of its record.
//
//	func (u unmarshaler) Unmarshal(record *sarama.ConsumerMessage) (*message.Message, error) {
//		msg, err := u.DefaultMarshaler.Unmarshal(record)
//		if err == nil && len(record.Key) > 0 {
//			msg.Metadata.Set(semelwatermill.RecordKeyMetadata, string(record.Key))
//		}
//		return msg, err
//	}
//
// Watermill knows neither the age of a message nor how often it was delivered, and its
// Ack does not report an error. So Retention does not stop late messages, MaxDeliveries
// has no effect, and Backoff, Concurrency, InFlight, Waiting and Drain of
// consume.Options are not used. With an Atomic of sqlitestore or dynamostore, attempts of
// earlier deliveries are not counted: limit them with Retry.MaxRetries and an unfiltered
// poison queue. Two handlers must have two groups, or the second skips the messages of the
// first.
package semelwatermill
