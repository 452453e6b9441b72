// Package semelnats brings messages of NATS JetStream to package consume, from
// a durable pull consumer. [Source] is what consume.Consumer.Serve takes.
//
// An ack is a double ack: it counts when the server has answered. A retry is a
// Nak with a delay, or waits here if others wait behind it. While a message is
// here, InProgress keeps it from other members. Dead letters and parked
// messages are published, and acknowledged by a stream, before the message is
// acked.
//
// The consumer's MaxDeliver must be -1 (no limit), for the server drops a
// message silently after it: consume's own MaxAttempts and MaxDeliveries end in
// the dead letters. See [Options.MaxDeliver].
//
// A pull consumer with several members delivers in order to all of them
// together, and not per key. Order per key holds for one member at a time; for
// more, give each a consumer with a filter of its own, such as a partition in
// the subject. What a member that died had in work comes again after AckWait,
// behind what follows it; only a MaxAckPending of 1 keeps order there.
//
// A message without a body must have no header named Status: the client takes
// it for the server's own word, and it is never handled.
package semelnats
