package museum

const rabbit = "consume/semelamqp"

// RabbitMQ confirms a copy later, returns one that no queue takes, and gives each channel
// its own delivery tags.
var rabbits = []Mutant{
	{
		Name: "RabbitMQ: waiting for other messages of a queue counts as the broker's time", Rule: "outbox",
		Dir: rabbit, Func: "(*places).progress", Package: rabbit, Run: "TestSink_QueueIsSlow",
		Old: "q.freed.After(began)", New: "q.freed.After(began.Add(time.Hour))",
	},
	{
		Name: "RabbitMQ: a copy that came back passes for published", Rule: "ack",
		Dir: rabbit, Func: "(*outlet).judge", Package: rabbit, Run: "TestForward_BrokerDoesNotKeepTheCopy_Fails",
		Old: `
			delete(o.made, name)
			return errUnroutable`,
		New: "delete(o.made, name)",
	},
	{
		Name: "RabbitMQ: a copy that a full queue refuses passes for kept", Rule: "ack",
		Dir: rabbit, Func: "(*publisher).deliver", Package: rabbit, Run: "TestForward_BrokerDoesNotKeepTheCopy_Fails",
		Old: `
			<-confirm.Done()
			return o.judge(l, confirm.Acked(), q.name)`,
		New: `
			<-confirm.Done()
			return o.judge(l, true, q.name)`,
	},
	{
		Name: "RabbitMQ: a queue that confirms nothing stops the copies to all queues", Rule: "isolation",
		Dir: rabbit, Func: "(*queue).slot", Package: rabbit, Run: "TestForward_OneQueueConfirmsNothing_OthersTakeCopies",
		Old: `q.exchange + "/" + q.name`, New: `""`,
	},
	{
		Name: "RabbitMQ: a topic that does not confirm holds up the others of an outbox", Rule: "isolation",
		Dir: rabbit, Func: "(*Sink).Publish", Package: rabbit, Run: "TestSink_OneTopicConfirmsNothing_OthersAreSent",
		Old: "outbox.Limits{}, answer", New: "outbox.Limits{Parallel: 16}, answer",
	},
	{
		Name: "RabbitMQ: a message fails because all channels are in use", Rule: "rule 13",
		Dir: rabbit, Func: "(*publisher).deliver", Package: rabbit, Run: "TestSink_AllChannelsInUse_MessagesWait",
		Old: `leave, err := o.channels.take(ctx, "")`, New: `leave, err := func() {}, error(nil)`,
	},
	{
		Name: "RabbitMQ: a message is acked before its copy is confirmed", Rule: "ack",
		Dir: rabbit, Func: "(*sent).wait", Package: rabbit, Run: "TestForward_LateConfirm_IsWaitedFor",
		Old: `return fmt.Errorf("the broker has not confirmed it yet: %w", ctx.Err())`, New: "return nil",
	},
	{
		Name: "RabbitMQ: an ack is of all before it, too", Rule: "ack",
		Dir: rabbit, Func: "(*delivery).ack", Package: rabbit, Run: "TestAck_AcksOneMessage",
		Old: "d.raw.Ack(false)", New: "d.raw.Ack(true)",
	},
	{
		Name: "RabbitMQ: a delivery of an old channel is acked on the new one", Rule: "ack",
		Dir: rabbit, Func: "(*delivery).ack", Package: rabbit, Run: "TestAck_OldChannel_IsErrGone",
		Old: `
			if err := d.gone(); err != nil {
				return err
			}
			if err := d.raw.Ack(false); err != nil {`,
		New: `
			if d.back {
				return d.gone()
			}
			if err := d.s.link.Load().ch.Ack(d.raw.DeliveryTag, false); err != nil {`,
	},
	{
		Name: "RabbitMQ: what was sent ahead is dropped at the end", Rule: "ack",
		Dir: rabbit, Func: "(*link).release", Package: rabbit, Run: "TestInfo_GivenBack_IsNotOvertaken|TestStop_SentAhead_GoesBack",
		Old: "d.Nack(false, true)", New: "d.Nack(false, false)",
	},
	{
		Name: "RabbitMQ: a retry counts from one again", Rule: "rule 13",
		Dir: rabbit, Func: "retryOf", Package: rabbit, Run: "TestRetry_KeepsMessageAndCount",
		Old: "int64(deliveries(d))", New: "int64(1)",
	},
	{
		Name: "RabbitMQ: a second retry loses where the message was published to", Rule: "rule 15",
		Dir: rabbit, Func: "copyOf", Package: rabbit, Run: "TestRetry_KeepsMessageAndCount",
		Old: "if _, has := p.Headers[h.Name]; !has {", New: `if h.Value != "" {`,
	},
	{
		Name: "RabbitMQ: what was sent ahead overtakes what was given back", Rule: "ack",
		Dir: rabbit, Func: "(*Source).Info", Package: rabbit, Run: "TestInfo_GivenBack_IsNotOvertaken",
		Old: "l != nil && l.holdsBack() && l.mark(errLost) {", New: "l != nil && l.holdsBack() && s.opt.OrderKey == nil {",
	},
	{
		Name: "RabbitMQ: a copy's late failure is the next one's", Rule: "ack",
		Dir: rabbit, Func: "(*delivery).copy", Package: rabbit, Run: "TestForward_LateFailure_SendsAgain",
		Old: "if c == nil || c.failed() {", New: "if c == nil {",
	},
	{
		Name: "RabbitMQ: a retry comes before its Retry-After", Rule: "deliver",
		Dir: rabbit, Func: "level", Package: rabbit, Run: "TestLevel_IsTheNextOne",
		Old: "(d-1)/firstLevel", New: "d/firstLevel/2",
	},
}
