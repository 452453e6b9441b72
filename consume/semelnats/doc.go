// Package semelnats is the adapter of NATS JetStream for package consume: a
// [Source] takes messages from a durable pull consumer. Pass it to
// consume.Consumer.Serve.
//
// An ack is a double ack: it counts after the server has answered. A retry is a
// Nak with a delay, or waits here if other messages wait for it. InProgress
// keeps messages from other members while they are here. Dead letters and
// quarantined messages are stored in a stream before the message is acked. The stream is
// checked at the start of Serve and, if the last answer is older than 5 s, before each copy:
// while it has interest retention or no acknowledgements, the copy fails with an error that
// names the command that helps, and the message stays. A copy of the first 5 s after such a
// change may be lost. Limits of the stream, such as its MaxAge, are the operator's. Headers
// that the Go client refuses or changes, such as trace/id, which other clients send,
// are packed into the header "semel-headers" of the copy (driver.PackHeaders); a
// Source unpacks it. A sink does the same. A copy has a Nats-Msg-Id of its own, and the
// message's is packed, so that consume.FromHeader("Nats-Msg-Id") finds the key of a copy
// that is sent back.
//
// Connect with nats.MaxReconnects(-1). By default the client gives up after 60 attempts in
// about two minutes and closes the connection, and then Serve returns driver.ErrClosed.
//
// Set the consumer's MaxDeliver to -1 (no limit), because the server drops a
// message silently after it. The options MaxAttempts and MaxDeliveries of
// package consume dead-letter such a message instead, and count no delivery of a
// message with a key that only waited. See [Options.MaxDeliver]. If somebody sets MaxDeliver
// while Serve runs, the Source notices within 5 s, takes no more messages, and reports a
// consume.EventReceiveFailed that names it, until MaxDeliver is -1 again. A message that
// reaches the limit meanwhile is lost to Serve, unless WatchMaxDeliver runs, too; it stays in
// its stream. The Source does the same if somebody lowers AckWait to less than half of what it
// was when Serve began. Set MaxAckPending to at least
// the Consumer's InFlight and Waiting together (4352 by default): the server's
// default of 1000 stops all messages while 1000 wait for a key that fails. Without an
// OrderKey set it higher. Messages that went back for a pause count, too, and InFlight and
// Waiting do not limit them: with the default Backoff, each message that fails until it is
// dead-lettered counts for about ten minutes.
//
// A pull consumer with several members delivers in order to all of them
// together, not per key. Order per key holds for one member at a time; with
// more, give each a consumer with a filter of its own, such as a partition in
// the subject. It also holds from a Serve that has returned to the next one, unless the
// server, or in a cluster the consumer's leader, restarts between them or does not answer a
// pull for a second. If a member dies, its messages come again after AckWait, and
// later messages overtake them; only a MaxAckPending of 1 keeps order then.
//
// A message without a body must have no header named Status. The client takes it for a
// notice of the server, so that no Source sees it and nobody acks it: the server delivers
// it again after each AckWait. At each delivery the client drops the rest of the pull, whose
// messages come again after AckWait, too. If the notice would end the consumer (Status 409),
// Serve goes on, and the error of its consume.EventReceiveFailed names the stream. Delete
// such a message with: nats stream rmm STREAM SEQUENCE. When all other messages are done,
// its sequence number is one more than the acknowledgment floor that this command prints:
// nats consumer info STREAM CONSUMER.
package semelnats
