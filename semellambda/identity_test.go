package semellambda_test

import (
	"context"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/semellambda"
	"github.com/semel-go/semel/store"
)

// order7 is a message with the same body as all the others; attributes are names and values.
func order7(id, queue string, attributes ...string) events.SQSMessage {
	m := events.SQSMessage{MessageId: id, Body: `{"id":7,"cents":100}`, EventSourceARN: "arn:aws:sqs:eu-west-1:1:" + queue, MessageAttributes: map[string]events.SQSMessageAttribute{}}
	for i := 0; i < len(attributes); i += 2 {
		m.MessageAttributes[attributes[i]] = events.SQSMessageAttribute{StringValue: &attributes[i+1], DataType: "String"}
	}
	return m
}

// byID takes the key, and if both says so the payload, from the body only.
func byID(both bool) semellambda.Options[events.SQSMessage] {
	o := quiet[events.SQSMessage]()
	o.KeyPointers = []string{"/id"}
	if both {
		o.PayloadPointers = []string{"/cents"}
	}
	return o
}

// deliver gives messages to a function, each in an invocation of its own, and returns the
// IDs of those that ran and of those that are reported.
func deliver(t *testing.T, o semellambda.Options[events.SQSMessage], messages ...events.SQSMessage) (ran, reported []string) {
	t.Helper()
	h := must[sqsHandler](t)(semellambda.SQS(newGuard(t, nil, nil), o, func(_ context.Context, m events.SQSMessage) error {
		ran = append(ran, m.MessageId)
		return nil
	}))
	for _, m := range messages {
		r := must[events.SQSEventResponse](t)(h(t.Context(), events.SQSEvent{Records: []events.SQSMessage{m}}))
		reported = append(reported, failures(r)...)
	}
	return ran, reported
}

// The type of an event may stand beside its body: both events run.
func TestSQS_SameBodyOfTwoTypes_BothRun(t *testing.T) {
	packed := driver.PackHeaders([]store.Header{{Name: "ce_type", Value: "cancelled"}})
	binary := order7("2", "orders")
	binary.MessageAttributes["type"] = events.SQSMessageAttribute{BinaryValue: []byte("cancelled"), DataType: "Binary"}
	for name, pair := range map[string][2]events.SQSMessage{
		"event type":          {order7("1", "orders", "event-type", "created"), order7("2", "orders", "event-type", "cancelled")},
		"CloudEvent":          {order7("1", "orders", "ce-type", "created"), order7("2", "orders", "ce-type", "cancelled")},
		"one has none":        {order7("1", "orders"), order7("2", "orders", "type", "cancelled")},
		"packed by semelsqs":  {order7("1", "orders", "ce_type", "created"), order7("2", "orders", driver.PackedHeaders, packed)},
		"a binary attribute":  {order7("1", "orders", "type", "created"), binary},
		"a type of 300 bytes": {order7("1", "orders", "type", "created"), order7("2", "orders", "type", string(make([]byte, 300)))},
		"the key imitates one": {order7("1", "orders", "type", "created"), func() events.SQSMessage {
			m := order7("2", "orders")
			m.Body = `{"id":"type \"created\" 7","cents":100}`
			return m
		}()},
	} {
		for _, both := range []bool{false, true} {
			ran, reported := deliver(t, byID(both), pair[0], pair[1], pair[0])
			if name == "the key imitates one" {
				wantEqual(t, reported, []string{"2"})
				continue
			}
			t.Log(name)
			wantEqual(t, ran, []string{"1", "2"})
			wantEqual(t, reported, nil)
		}
	}
}

// A trace and a retry have other attributes in each delivery.
func TestSQS_AttributesOfARedelivery_DoNotCount(t *testing.T) {
	for _, both := range []bool{false, true} {
		again := order7("2", "orders", "event-type", "created", "traceparent", "00-2", "retry-count", "2")
		again.Attributes = map[string]string{"ApproximateReceiveCount": "3", "AWSTraceHeader": "x"}
		again.EventSourceARN = "arn:aws:sqs:us-east-1:2:orders" // the queue was moved
		ran, reported := deliver(t, byID(both), order7("1", "orders", "event-type", "created", "traceparent", "00-1"), again)
		wantEqual(t, ran, []string{"1"})
		wantEqual(t, reported, nil)
	}
}

// A function may read two queues. Nobody can tell whether a message of the other queue is
// another event, or the same one that was moved by hand: it is not lost, and does not run twice.
func TestSQS_SameBodyOfTwoQueues_IsReported(t *testing.T) {
	for _, both := range []bool{false, true} {
		ran, reported := deliver(t, byID(both), order7("1", "orders-created"), order7("2", "orders-cancelled"))
		wantEqual(t, ran, []string{"1"})
		wantEqual(t, reported, []string{"2"})
	}
	dead := order7("1", "orders-dead-letters")
	dead.Attributes = map[string]string{"DeadLetterQueueSourceArn": "arn:aws:sqs:eu-west-1:1:orders"}
	ran, reported := deliver(t, byID(false), order7("1", "orders"), dead)
	wantEqual(t, ran, []string{"1"})
	wantEqual(t, reported, nil)
	own := byID(false)
	own.KeyPointers, own.Key = nil, func(m events.SQSMessage) (string, error) { return m.EventSourceARN + " 7", nil }
	ran, reported = deliver(t, own, order7("1", "orders-created"), order7("2", "orders-cancelled"))
	wantEqual(t, ran, []string{"1", "2"})
	wantEqual(t, reported, nil)
	own.Key = func(events.SQSMessage) (string, error) { return "7", nil }
	own.Payload = func(events.SQSMessage) (semel.Payload, error) { return semel.NoPayload(), nil }
	ran, _ = deliver(t, own, order7("1", "orders-created"), order7("2", "orders-cancelled"))
	wantEqual(t, ran, []string{"1"})
}

func TestStreams_SameRecordOfTwoStreams_IsReported(t *testing.T) {
	o := quiet[events.KinesisEventRecord]()
	o.KeyPointers = []string{"/id"}
	runs := 0
	kinesis := must[func(context.Context, events.KinesisEvent) (events.KinesisEventResponse, error)](t)(semellambda.Kinesis(newGuard(t, nil, nil), o, func(context.Context, events.KinesisEventRecord) error {
		runs++
		return nil
	}))
	reported := 0
	for i, stream := range []string{"created", "created", "cancelled"} {
		n := string(rune('1' + i))
		r := must[events.KinesisEventResponse](t)(kinesis(t.Context(), events.KinesisEvent{Records: []events.KinesisEventRecord{{
			EventID: "shardId-0:" + n, EventSourceArn: "arn:aws:kinesis:eu-west-1:1:stream/" + stream,
			Kinesis: events.KinesisRecord{SequenceNumber: n, PartitionKey: n, Data: []byte(`{"id":7}`)},
		}}}))
		reported += len(r.BatchItemFailures)
	}
	if runs != 1 || reported != 1 {
		t.Errorf("Kinesis: %d runs, %d records reported", runs, reported)
	}

	d := quiet[events.DynamoDBEventRecord]()
	d.KeyPointers, d.PayloadPointers = []string{"/dynamodb/Keys/id/S"}, []string{"/dynamodb/Keys"}
	runs, reported = 0, 0
	table := must[func(context.Context, events.DynamoDBEvent) (events.DynamoDBEventResponse, error)](t)(semellambda.DynamoDB(newGuard(t, nil, nil), d, func(context.Context, events.DynamoDBEventRecord) error {
		runs++
		return nil
	}))
	for i, arn := range []string{"table/orders/stream/2026-01-01", "table/orders/stream/2026-02-02", "table/customers/stream/2026-01-01"} {
		n := string(rune('1' + i))
		r := must[events.DynamoDBEventResponse](t)(table(t.Context(), events.DynamoDBEvent{Records: []events.DynamoDBEventRecord{{
			EventID: n, EventSourceArn: "arn:aws:dynamodb:eu-west-1:1:" + arn,
			Change: events.DynamoDBStreamRecord{SequenceNumber: n, Keys: map[string]events.DynamoDBAttributeValue{"id": events.NewStringAttribute("7")}},
		}}}))
		reported += len(r.BatchItemFailures)
	}
	if runs != 1 || reported != 1 {
		t.Errorf("DynamoDB: %d runs, %d records reported", runs, reported)
	}
}
