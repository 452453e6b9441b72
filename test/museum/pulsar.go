package museum

const pulsar = "consume/semelpulsar"

// Pulsar sends everything again that is not acked, after each reconnect and each close of
// a consumer, and a batch as a whole.
var pulsars = []Mutant{
	{
		Name: "Pulsar: a message in work is handed out again after a reconnect", Rule: "ack",
		Dir: pulsar, Func: "(*unsettled).arrived", Package: pulsar, Run: "TestNext_MessageHere_CopyIsNoDelivery",
		Old: `case earlier != nil:`, New: `case earlier != nil && false:`,
	},
	{
		Name: "Pulsar: a batch goes back while one of its messages is in work", Rule: "ack",
		Dir: pulsar, Func: "(*unsettled).giveBack", Package: pulsar, Run: "TestNak_BatchInWork_GoesBackAfterTheOthers",
		Old: `e.back = d.id`, New: `u.redeliver(d.id)`,
	},
	{
		Name: "Pulsar: a stop keeps the messages that nobody has read", Rule: "ack",
		Dir: pulsar, Func: "(*arrivals).stop", Package: pulsar, Run: "TestStop_UnreadAndLaterMessages_GoBack",
		Old: `a.refuse(id)`, New: `_ = id`,
	},
	{
		Name: "Pulsar: the consumer is closed while a message is in work, and others get it", Rule: "rule 7",
		Dir: pulsar, Func: "(*link).closeIfDone", Package: pulsar, Run: "TestStop_UnreadAndLaterMessages_GoBack",
		Old: `l.unsettled.left() > 0`, New: `l.unsettled.left() > 0 && false`,
	},
	{
		Name: "Pulsar: a partition without a broker stops the acks of all", Rule: "isolation",
		Dir: pulsar, Func: "(*acks).add", Package: pulsar, Run: "TestAck_OnePartitionUnavailable_OthersAreAcked",
		Old: `p := a.partitions[id.PartitionIdx()]`, New: `p := a.partitions[0]`,
	},
	{
		Name: "Pulsar: a partition is given up, and the messages of others hide that", Rule: "rule 14",
		Dir: pulsar, Func: "(*link).next", Package: pulsar, Run: "TestNext_OnePartitionGivenUp_TopicIsBusy_SubscribesAgain",
		Old: `l.heard[raw.ID().PartitionIdx()] = time.Now()`, New: `l.asked, l.heard[raw.ID().PartitionIdx()] = time.Now(), time.Now()`,
	},
	{
		Name: "Pulsar: a partition that was added is not read", Rule: "isolation",
		Dir: pulsar, Func: "(*link).ask", Package: pulsar, Run: "TestNext_PartitionAdded_SubscribesAgain",
		Old: "len(partitions) > len(ids)", New: "len(partitions) < len(ids)",
	},
	{
		Name: "Pulsar: the client looks for partitions, and panics after one that is busy", Rule: "isolation",
		Dir: pulsar, Func: "(*link).subscribe", Package: pulsar, Run: "TestNext_PartitionAdded_SubscribesAgain",
		Old: "AutoDiscoveryPeriod: never", New: "AutoDiscoveryPeriod: 0 * never",
	},
	{
		Name: "Pulsar: an exclusive member closes all partitions although one cannot be had again", Rule: "isolation",
		Dir: pulsar, Func: "(*link).ask", Package: pulsar, Run: "TestNext_OnePartitionGivenUpAndAway_ExclusiveReadsTheOthers",
		Old: "end.stays = l.s.tryPartitions(l.isOver)", New: "end.stays = nil",
	},
	{
		Name: "Pulsar: a stop leaves a consumer that tries a partition, and the next member is refused", Rule: "rule 14",
		Dir: pulsar, Func: "(*link).close", Package: pulsar, Run: "TestStopAndInfo_PartitionIsTried_WaitForItsConsumer",
		Old: `
			l.trying <- struct{}{}
			<-l.trying`,
		New: "",
	},
	{
		Name: "Pulsar: a copy of a message that has come again is tried for ever", Rule: "ack",
		Dir: pulsar, Func: "(*delivery).Forward", Package: pulsar, Run: "TestForward_SubscribedAgain_IsErrGone",
		Old: `if d.l.isAbandoned() {`, New: `if d.l.isAbandoned() && false {`,
	},
	{
		Name: "Pulsar: an ack is not answered", Rule: "ack",
		Dir: pulsar, Func: "(*link).subscribe", Package: pulsar, Run: "TestInfo_Subscription_IsAnswered",
		Old: `AckWithResponse: true`, New: `AckWithResponse: false`,
	},
	{
		Name: "Pulsar: the broker deletes the copies, because nobody subscribes", Rule: "ack",
		Dir: pulsar, Func: "(*Source).keepCopies", Package: pulsar, Run: "TestInfo_Copies_HaveASubscription",
		Old: `pulsar.SubscriptionPositionEarliest`, New: `pulsar.SubscriptionPositionLatest`,
	},
	{
		Name: "Pulsar: a member that is no longer active handles what it has not read", Rule: "order",
		Dir: pulsar, Func: "(*arrivals).revoke", Package: pulsar, Run: "TestFailover_MemberInactive_UnreadMessagesAreDropped",
		Old: `delete(a.unread, partition)`, New: `_ = partition`,
	},
	{
		Name: "Pulsar: an active member waits for what the broker has forgotten to send", Rule: "ack",
		Dir: pulsar, Func: "(*link).health", Package: pulsar, Run: "TestFailover_IdleMember_AsksForMessagesWithoutAck",
		Old: `l.resend(i)`, New: `_ = i`,
	},
	{
		Name: "Pulsar: an outbox keeps a producer that the client has closed", Rule: "outbox",
		Dir: pulsar, Func: "(*producers).send", Package: pulsar, Run: "TestSink_ProducerClosed_NextMessageGetsAnother",
		Old: `p.forget(topic, o)`, New: `_ = o`,
	},
	{
		Name: "Pulsar: an outbox mixes keys in a batch", Rule: "outbox",
		Dir: pulsar, Func: "NewSink", Package: pulsar, Run: "TestSink_Message_HasKeyAndHeadersAndIsInNoBatch",
		Old: `DisableBatching: true`, New: `DisableBatching: false`,
	},
	{
		Name: "Pulsar: a slow handler gets all messages of its partition again and again", Rule: "rule 14",
		Dir: pulsar, Func: "(*link).mayResend", Package: pulsar, Run: "TestFailover_MessagesAreHere_AsksRarely",
		Old: "last.taken >= l.unsettled.here(partition)", New: "last.taken >= 0",
	},
	{
		Name: "Pulsar: the pauses of resends grow for the life of a busy member", Rule: "ack",
		Dir: pulsar, Func: "(*link).mayResend", Package: pulsar, Run: "TestFailover_MessagesAreHere_AsksRarely",
		Old: "last.taken >= l.unsettled.here(partition)", New: "l.unsettled.here(partition) == 0",
	},
}
