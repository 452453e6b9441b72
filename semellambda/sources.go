package semellambda

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"github.com/semel-go/semel"
)

// SQS makes the handler of a function that gets messages of a queue. The package
// documentation says what happens to a message. A FIFO queue keeps the order of each
// message group.
func SQS(run semel.Runner, o Options[events.SQSMessage], fn func(ctx context.Context, message events.SQSMessage) error) (func(ctx context.Context, event events.SQSEvent) (events.SQSEventResponse, error), error) {
	if err := o.check("SQS", run, fn != nil, true); err != nil {
		return nil, err
	}
	return func(ctx context.Context, event events.SQSEvent) (response events.SQSEventResponse, err error) {
		records := make([]record[events.SQSMessage], len(event.Records))
		for i, m := range event.Records {
			if m.MessageId == "" {
				return response, errNoID("SQS", i)
			}
			records[i] = record[events.SQSMessage]{m, json.RawMessage(m.Body), m.MessageId, m.MessageId, messageGroup(m), envelopeOf(&event.Records[i])}
		}
		b := batch[events.SQSMessage]{run: run, options: o, handler: fn}
		response.BatchItemFailures = []events.SQSBatchItemFailure{} // null would fail the whole batch
		for _, id := range b.runAll(ctx, records) {
			response.BatchItemFailures = append(response.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: id})
		}
		return response, nil
	}, nil
}

// messageGroup is the group of a message of a FIFO queue. A standard queue may have
// groups, too, but no order.
func messageGroup(m events.SQSMessage) string {
	if !strings.HasSuffix(m.EventSourceARN, ".fifo") {
		return ""
	}
	return "group " + m.Attributes["MessageGroupId"]
}

// Kinesis makes the handler of a function that gets records of a Kinesis stream. The
// package documentation says what happens to a record.
func Kinesis(run semel.Runner, o Options[events.KinesisEventRecord], fn func(ctx context.Context, record events.KinesisEventRecord) error) (func(ctx context.Context, event events.KinesisEvent) (events.KinesisEventResponse, error), error) {
	if err := o.check("Kinesis", run, fn != nil, true); err != nil {
		return nil, err
	}
	return func(ctx context.Context, event events.KinesisEvent) (response events.KinesisEventResponse, err error) {
		records := make([]record[events.KinesisEventRecord], len(event.Records))
		for i, r := range event.Records {
			if r.Kinesis.SequenceNumber == "" || r.EventID == "" {
				return response, errNoID("Kinesis", i)
			}
			// The stream's name keeps the records of two streams apart.
			stream := streamName(r.EventSourceArn)
			records[i] = record[events.KinesisEventRecord]{r, r.Kinesis.Data, stream + " " + r.EventID, r.Kinesis.SequenceNumber, shard, envelope{source: stream}}
		}
		b := batch[events.KinesisEventRecord]{run: run, options: o, handler: fn}
		response.BatchItemFailures = []events.KinesisBatchItemFailure{}
		for _, id := range b.runAll(ctx, records) {
			response.BatchItemFailures = append(response.BatchItemFailures, events.KinesisBatchItemFailure{ItemIdentifier: id})
		}
		return response, nil
	}, nil
}

// DynamoDB makes the handler of a function that gets the changes of a DynamoDB table.
// The package documentation says what happens to a record.
func DynamoDB(run semel.Runner, o Options[events.DynamoDBEventRecord], fn func(ctx context.Context, record events.DynamoDBEventRecord) error) (func(ctx context.Context, event events.DynamoDBEvent) (events.DynamoDBEventResponse, error), error) {
	if err := o.check("DynamoDB", run, fn != nil, true); err != nil {
		return nil, err
	}
	return func(ctx context.Context, event events.DynamoDBEvent) (response events.DynamoDBEventResponse, err error) {
		records := make([]record[events.DynamoDBEventRecord], len(event.Records))
		for i, r := range event.Records {
			if r.Change.SequenceNumber == "" || r.EventID == "" {
				return response, errNoID("DynamoDB", i)
			}
			doc, err := json.Marshal(r)
			if err != nil {
				return response, fmt.Errorf("semellambda: DynamoDB: record %d: %w", i, err)
			}
			records[i] = record[events.DynamoDBEventRecord]{r, doc, r.EventID, r.Change.SequenceNumber, shard, envelope{source: tableName(r.EventSourceArn)}}
		}
		b := batch[events.DynamoDBEventRecord]{run: run, options: o, handler: fn}
		response.BatchItemFailures = []events.DynamoDBBatchItemFailure{}
		for _, id := range b.runAll(ctx, records) {
			response.BatchItemFailures = append(response.BatchItemFailures, events.DynamoDBBatchItemFailure{ItemIdentifier: id})
		}
		return response, nil
	}, nil
}

// shard is the group of all records of a stream: a batch comes from one shard, and
// Lambda goes on after its last record before the first failure.
const shard = "shard"

// errNoID refuses an event that the source cannot have sent: Lambda could not find
// the record by an empty ID, and would take the whole batch as failed.
func errNoID(source string, i int) error {
	return fmt.Errorf("semellambda: %s: record %d has no ID; is the function connected to another source?", source, i)
}
