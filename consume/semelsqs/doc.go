// Package semelsqs is the adapter of Amazon SQS for package consume: a [Source]
// takes messages from a standard or a FIFO queue. Pass it to consume.Consumer.Serve.
//
// An ack deletes the message; up to ten deletions share a request, and each has its
// own result. While a message runs or waits in this process, the Source extends its
// visibility time-out, so that no other consumer gets it. SQS allows this for 12 hours
// after the receive; the Source stops 30 s earlier. A retry makes the message visible after
// the pause, in whole seconds, or at the end of these 12 hours if that is earlier. A handler
// that runs for longer keeps its key by its lease, and the message is received again
// meanwhile. Serve stops receiving before it gives messages back with visibility 0.
//
// In a FIFO queue the order key is the MessageGroupId. SQS delivers no message of a
// group while an earlier one is in flight, so order per group holds over several
// consumers and over their deaths. A standard queue keeps no order.
//
// If SQS refuses the copy of a message of a FIFO queue ten times, the message goes back with a
// pause of five minutes, in which SQS delivers no other message of its group. So while the
// queue of copies is missing, or refuses the copy for its size, a group gets on by at most nine
// messages in five minutes, and by none if the queue has a redrive policy. Mend the queue of
// copies, or delete the message.
//
// Dead letters and quarantined messages are sent to queues of their own before the
// message is deleted. SQS takes ten attributes, and their names and values are
// restricted, so [Encode] packs the headers that do not fit into the attribute
// "semel-headers"; a Source unpacks it.
//
// # Receive counts
//
// SQS counts receives, also of a message that only waited, and a redrive policy moves
// a message after maxReceiveCount of them. A message that waits here is received
// once, however long it waits; each retry at the broker, each stop and each death of
// a consumer adds one. With a redrive policy Serve takes no more messages than it has
// free handlers, and none that waits for another: it does not start if Options.OrderKey is
// set, and a receive from a FIFO queue asks for one message, because SQS delivers no second one
// of its group meanwhile. Make maxReceiveCount greater than MaxAttempts and the number of
// restarts within a message's life; with the defaults of package consume, 100 is a
// good value. Messages whose key runs elsewhere, or whose shard of the store is away, are
// held in addition, and each stop adds one receive to them, too. SQS moves a message without a
// reason; MaxAttempts and MaxDeliveries send a letter that has one. Serve reads the policy at its start only: start it again
// after you add one. Until then Serve goes on to take messages that wait, and its next stop adds a receive to
// each of them.
//
// Serve checks the queues of copies at its start only. If somebody later deletes one, or lowers
// its MaximumMessageSize, SQS itself refuses the copy. SQS has no setting with which it accepts
// a copy and drops it before the queue's MessageRetentionPeriod, which is four days by default;
// set it to 14 days.
//
// A message of the extended client, whose body lies in S3, is not run: it goes to the
// dead letters as it is. So does a message whose attributes of Encode are damaged.
package semelsqs
