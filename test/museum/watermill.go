package museum

// Watermill: when the router acks and what it publishes.
var watermills = []Mutant{
	{
		Name: "Watermill: a message does not give up its turn", Rule: "limits",
		Dir: router, Func: "waitForTurn", Package: router, Run: "TestHandler_TurnHasNotCome",
		Old: "turn.Leave()", New: "",
	},
	{
		Name: "Watermill: a message whose key runs elsewhere is acked", Rule: "ack",
		Dir: router, Func: "take", Package: router, Run: "TestHandler_KeyRunsElsewhere",
		Old: "if disposition.Reason == driver.ReasonRejected {", New: "if disposition.Reason != driver.ReasonRejected {\nreturn nil, nil\n}\nif disposition.Reason == driver.ReasonRejected {",
	},
	{
		Name: "Watermill: a rejected message is tried without a pause", Rule: "isolation",
		Dir: router, Func: "take", Package: router, Run: "TestHandler_RejectedMessage_IsTriedOnceASecond",
		Old: "wait(ctx, longestHold)", New: "wait(ctx, 0)",
	},
	{
		Name: "Watermill: an Ack of the handler acks before the outcome is stored", Rule: "ack",
		Dir: router, Func: "Handler", Package: router, Run: "TestHandler_HandlerAcksTooEarly",
		Old: "msg := d.msg.Copy()", New: "msg := d.msg",
	},
	{
		Name: "Watermill: a message that was only held goes to the poison queue", Rule: "ack",
		Dir: router, Func: "ForPoisonQueue", Package: router, Run: "TestHandler_KeyRunsElsewhere",
		Old: "e.Disposition.Action == driver.DeadLetter ||", New: "e.Disposition.Action != driver.Retry ||",
	},
	{
		Name: "Watermill: a duplicate publishes nothing", Rule: "rule 8",
		Dir: router, Func: "recorder.Run", Package: router, Run: "TestHandler_PublishingFails",
		Old: "return encode(d.produced), nil", New: "_ = encode\nreturn store.Outcome{}, nil",
	},
	{
		Name: "Watermill: a failure that is acked publishes messages", Rule: "rule 8",
		Dir: router, Func: "(*delivery).messages", Package: router, Run: "TestHandler_EachEnd_FollowsTheTable",
		Old: "case driver.ReasonDone, driver.ReasonDoneButNotStored:", New: "case driver.ReasonDone, driver.ReasonDoneButNotStored, driver.ReasonFailed:",
	},
	{
		Name: "Watermill: messages that are not kept are lost in silence", Rule: "rule 10",
		Dir: router, Func: "decode", Package: router, Run: "TestHandler_MessagesTooLarge",
		Old: `o.Codec == "" && !o.Gone`, New: `o.Codec == "" || o.Gone`,
	},
	{
		Name: "Watermill: a name in two spellings gives another key at each delivery", Rule: "rule 15",
		Dir: router, Func: "messageOf", Package: router, Run: "TestMessageOf_NameInTwoSpellings_KeyIsTheSame",
		Old: `slices.Sorted(maps.Keys(msg.Metadata))`, New: `slices.Collect(maps.Keys(msg.Metadata))`,
	},
	{
		Name: "Watermill: two records with other keys and equal bodies are one message", Rule: "rule 12",
		Dir: router, Func: "messageOf", Package: router, Run: "TestHandler_RecordKeysDiffer",
		Old: "[]byte(msg.Metadata.Get(RecordKeyMetadata))", New: "nil",
	},
}
