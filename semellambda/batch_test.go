package semellambda_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/semellambda"
	"github.com/semel-go/semel/store/memstore"
)

// message is "id group body".
func messages(fifo bool, lines ...[3]string) events.SQSEvent {
	var e events.SQSEvent
	for _, l := range lines {
		m := events.SQSMessage{MessageId: l[0], Body: l[2], EventSourceARN: "arn:aws:sqs:eu-west-1:1:orders", Attributes: map[string]string{"MessageGroupId": l[1]}}
		if fifo {
			m.EventSourceARN += ".fifo"
		}
		e.Records = append(e.Records, m)
	}
	return e
}

func failures(r events.SQSEventResponse) []string {
	ids := []string{}
	for _, f := range r.BatchItemFailures {
		ids = append(ids, f.ItemIdentifier)
	}
	return ids
}

type sqsHandler = func(context.Context, events.SQSEvent) (events.SQSEventResponse, error)

func TestSQS_RecordFails_OnlyItIsReported(t *testing.T) {
	var ran []string
	h := must[sqsHandler](t)(semellambda.SQS(newGuard(t, nil, nil), quiet[events.SQSMessage](), func(_ context.Context, m events.SQSMessage) error {
		ran = append(ran, m.MessageId)
		switch m.Body {
		case "fail":
			return errBoom
		case "final":
			return semel.Final(errBoom)
		case "panic":
			panic("boom")
		}
		return nil
	}))
	batch := messages(false, [3]string{"1", "g", "x"}, [3]string{"2", "g", "fail"}, [3]string{"3", "g", "final"}, [3]string{"4", "g", "panic"}, [3]string{"5", "g", "y"})
	r := must[events.SQSEventResponse](t)(h(t.Context(), batch))
	wantEqual(t, failures(r), []string{"2", "3", "4"})
	wantEqual(t, ran, []string{"1", "2", "3", "4", "5"})
	ran = nil
	r = must[events.SQSEventResponse](t)(h(t.Context(), batch)) // delivered again as a whole, as after a crash
	wantEqual(t, failures(r), []string{"2", "3", "4"})
	wantEqual(t, ran, []string{"2", "4"}) // the failure that is final does not run again
}

func TestSQS_AllDone_ResponseHasEmptyList(t *testing.T) {
	h := must[sqsHandler](t)(semellambda.SQS(newGuard(t, nil, nil), quiet[events.SQSMessage](), func(context.Context, events.SQSMessage) error { return nil }))
	r := must[events.SQSEventResponse](t)(h(t.Context(), messages(false, [3]string{"1", "", "x"})))
	if b, err := json.Marshal(r); err != nil || string(b) != `{"batchItemFailures":[]}` {
		t.Errorf("the response is %s, %v", b, err)
	}
	if _, err := h(t.Context(), messages(false, [3]string{"", "", "x"})); err == nil {
		t.Error("a message without an ID is accepted")
	}
}

func TestSQS_FIFORecordFails_LaterOnesOfItsGroupDoNotRun(t *testing.T) {
	fail := true
	var ran []string
	h := must[sqsHandler](t)(semellambda.SQS(newGuard(t, nil, nil), quiet[events.SQSMessage](), func(_ context.Context, m events.SQSMessage) error {
		ran = append(ran, m.MessageId)
		if fail && m.Body == "fail" {
			return errBoom
		}
		return nil
	}))
	batch := messages(true, [3]string{"a1", "a", "x"}, [3]string{"a2", "a", "fail"}, [3]string{"b1", "b", "x"}, [3]string{"a3", "a", "x"}, [3]string{"b2", "b", "x"}, [3]string{"a4", "a", "x"})
	r := must[events.SQSEventResponse](t)(h(t.Context(), batch))
	wantEqual(t, failures(r), []string{"a2", "a3", "a4"})
	wantEqual(t, ran, []string{"a1", "a2", "b1", "b2"})
	fail, ran = false, nil
	r = must[events.SQSEventResponse](t)(h(t.Context(), batch))
	wantEqual(t, failures(r), []string{})
	wantEqual(t, ran, []string{"a2", "a3", "a4"})
}

// A group also stops at a record without a key, because it is not done.
func TestSQS_FIFORecordWithoutKey_LaterOnesOfItsGroupDoNotRun(t *testing.T) {
	o := quiet[events.SQSMessage]()
	o.KeyPointers = []string{"/id"}
	h := must[sqsHandler](t)(semellambda.SQS(newGuard(t, nil, nil), o, func(context.Context, events.SQSMessage) error { return nil }))
	r := must[events.SQSEventResponse](t)(h(t.Context(), messages(true, [3]string{"1", "a", `{}`}, [3]string{"2", "a", `{"id":"x"}`}, [3]string{"3", "b", `{"id":"y"}`})))
	wantEqual(t, failures(r), []string{"1", "2"})
}

func TestSQS_DuplicatesInBatch_RunOnce(t *testing.T) {
	o := quiet[events.SQSMessage]()
	o.KeyPointers = []string{"/id"}
	runs := map[string]int{}
	h := must[sqsHandler](t)(semellambda.SQS(newGuard(t, nil, nil), o, func(ctx context.Context, m events.SQSMessage) error {
		x, _ := semel.FromContext(ctx)
		if runs[x.Key()]++; x.Key() == "bad" {
			return errBoom
		}
		return nil
	}))
	r := must[events.SQSEventResponse](t)(h(t.Context(), messages(false, [3]string{"1", "", `{"id":"a"}`}, [3]string{"2", "", `{"id":"bad"}`},
		[3]string{"3", "", `{ "id":"a" }`}, [3]string{"1", "", `{"id":"a"}`}, [3]string{"4", "", `{"id":"bad"}`}, [3]string{"5", "", `{"id":"a","cents":1}`})))
	wantEqual(t, failures(r), []string{"2", "4", "5"}) // 5 has another payload
	if runs["a"] != 1 || runs["bad"] != 1 {
		t.Errorf("runs: %v; want one for each key", runs)
	}
}

// Two invocations get the same batch at the same time, as after a visibility
// time-out that is too short.
func TestSQS_ConcurrentInvocations_OneRunForEachKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(nil)
		runs, done := make(chan string, 100), make(chan []string, 2)
		var batch [][3]string
		for i := range 20 {
			batch = append(batch, [3]string{fmt.Sprint(i), "", fmt.Sprintf(`{"id":"k%d"}`, i%10)})
		}
		for range 2 {
			o := quiet[events.SQSMessage]()
			o.KeyPointers = []string{"/id"}
			h := must[sqsHandler](t)(semellambda.SQS(newGuard(t, st, nil), o, func(ctx context.Context, m events.SQSMessage) error {
				time.Sleep(time.Second)
				runs <- m.Body
				return nil
			}))
			go func() {
				r, err := h(t.Context(), messages(false, batch...))
				if err != nil {
					t.Error(err)
				}
				done <- failures(r)
			}()
		}
		first, second := <-done, <-done
		if len(runs) != 10 {
			t.Errorf("%d runs of 10 keys", len(runs))
		}
		if len(first)+len(second) < 10 {
			t.Errorf("reported: %v and %v; want the duplicates of runs in progress among them", first, second)
		}
		o := quiet[events.SQSMessage]()
		o.KeyPointers = []string{"/id"}
		h := must[sqsHandler](t)(semellambda.SQS(newGuard(t, st, nil), o, func(context.Context, events.SQSMessage) error {
			t.Error("a key ran again")
			return nil
		}))
		wantEqual(t, failures(must[events.SQSEventResponse](t)(h(t.Context(), messages(false, batch...)))), []string{})
	})
}

func TestSQS_TimeIsOver_RestIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ran []string
		h := must[sqsHandler](t)(semellambda.SQS(newGuard(t, nil, nil), quiet[events.SQSMessage](), func(ctx context.Context, m events.SQSMessage) error {
			ran = append(ran, m.MessageId)
			select {
			case <-ctx.Done():
				return semel.NoEffect(ctx.Err())
			case <-time.After(4 * time.Second):
				return nil
			}
		}))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		r := must[events.SQSEventResponse](t)(h(ctx, messages(false, [3]string{"1"}, [3]string{"2"}, [3]string{"3"}, [3]string{"4"}, [3]string{"5"})))
		wantEqual(t, ran, []string{"1", "2", "3"})
		wantEqual(t, failures(r), []string{"3", "4", "5"})
		if ctx.Err() != nil {
			t.Error("the batch ended after the invocation")
		}
	})
}

func TestKinesis_RecordFails_NoLaterOneRuns(t *testing.T) {
	fail := true
	var ran []string
	h := must[func(context.Context, events.KinesisEvent) (events.KinesisEventResponse, error)](t)(semellambda.Kinesis(newGuard(t, nil, nil), quiet[events.KinesisEventRecord](), func(_ context.Context, r events.KinesisEventRecord) error {
		ran = append(ran, r.Kinesis.SequenceNumber)
		if fail && string(r.Kinesis.Data) == "fail" {
			return errBoom
		}
		return nil
	}))
	var e events.KinesisEvent
	for i, data := range []string{"x", "fail", "y"} {
		n := fmt.Sprint(100 + i)
		e.Records = append(e.Records, events.KinesisEventRecord{
			EventID: "shardId-0:" + n, EventSourceArn: "arn:aws:kinesis:eu-west-1:1:stream/orders",
			Kinesis: events.KinesisRecord{SequenceNumber: n, PartitionKey: n, Data: []byte(data)},
		})
	}
	r, err := h(t.Context(), e)
	if err != nil || len(r.BatchItemFailures) != 2 || r.BatchItemFailures[0].ItemIdentifier != "101" {
		t.Errorf("reported %v, %v", r.BatchItemFailures, err)
	}
	wantEqual(t, ran, []string{"100", "101"})
	fail, ran = false, nil
	e.Records = e.Records[1:] // Lambda goes on at the first failure
	if r, err = h(t.Context(), e); err != nil || len(r.BatchItemFailures) != 0 {
		t.Errorf("reported %v, %v", r.BatchItemFailures, err)
	}
	wantEqual(t, ran, []string{"101", "102"})
	ran = nil
	e.Records[0].EventSourceArn += "-2" // the same ID in another stream is another record
	_ = must[events.KinesisEventResponse](t)(h(t.Context(), e))
	wantEqual(t, ran, []string{"101"})
}

func TestDynamoDB_KeyInRecord_NoLaterOneRunsAfterFailure(t *testing.T) {
	o := quiet[events.DynamoDBEventRecord]()
	o.KeyPointers = []string{"/dynamodb/NewImage/id/S", "/dynamodb/NewImage/version/N"}
	var keys []string
	h := must[func(context.Context, events.DynamoDBEvent) (events.DynamoDBEventResponse, error)](t)(semellambda.DynamoDB(newGuard(t, nil, nil), o, func(ctx context.Context, r events.DynamoDBEventRecord) error {
		x, _ := semel.FromContext(ctx)
		if keys = append(keys, x.Key()); x.Key() == `["b","2"]` {
			return errBoom
		}
		return nil
	}))
	var e events.DynamoDBEvent
	if err := json.Unmarshal([]byte(`{"Records":[
		{"eventID":"e1","dynamodb":{"SequenceNumber":"11","NewImage":{"id":{"S":"a"},"version":{"N":"1"}}}},
		{"eventID":"e2","dynamodb":{"SequenceNumber":"12","NewImage":{"id":{"S":"b"},"version":{"N":"2"}}}},
		{"eventID":"e3","dynamodb":{"SequenceNumber":"13","NewImage":{"id":{"S":"c"},"version":{"N":"3"}}}}]}`), &e); err != nil {
		t.Fatal(err)
	}
	r, err := h(t.Context(), e)
	if err != nil || len(r.BatchItemFailures) != 2 || r.BatchItemFailures[0].ItemIdentifier != "12" || r.BatchItemFailures[1].ItemIdentifier != "13" {
		t.Errorf("reported %v, %v", r.BatchItemFailures, err)
	}
	wantEqual(t, keys, []string{`["a","1"]`, `["b","2"]`})
}

// JSON payloads refuse some documents that their handlers can read. Such a record would stop
// its shard until it expires.
func TestKinesis_DocumentHasNoOneMeaning_IsComparedByItsBytes(t *testing.T) {
	for _, pointers := range [][]string{nil, {"/order"}} {
		for _, doc := range []string{`{"order":{"id":1,"id":2}}`, `{"order":1e400}`} {
			runs := 0
			o := quiet[events.KinesisEventRecord]()
			o.PayloadPointers = pointers
			h := must[func(context.Context, events.KinesisEvent) (events.KinesisEventResponse, error)](t)(semellambda.Kinesis(newGuard(t, nil, nil), o,
				func(context.Context, events.KinesisEventRecord) error { runs++; return nil }))
			for i, data := range []string{doc, doc, strings.Replace(doc, "1", "3", 1)} {
				r, err := h(t.Context(), events.KinesisEvent{Records: []events.KinesisEventRecord{{EventID: "e1", EventSourceArn: "arn:aws:kinesis:eu-west-1:1:stream/s",
					Kinesis: events.KinesisRecord{SequenceNumber: "1", Data: []byte(data)}}}})
				if reported := len(r.BatchItemFailures) > 0; err != nil || runs != 1 || reported != (i == 2) {
					t.Errorf("%s, compared %q: %d runs, reported %v, %v", data, pointers, runs, r.BatchItemFailures, err)
				}
			}
		}
	}
}

// The error of another call, which a handler passes on, does not say that its own is done.
func TestSQS_HandlerReturnsErrorOfAnotherCall_IsReported(t *testing.T) {
	h := must[sqsHandler](t)(semellambda.SQS(newGuard(t, nil, nil), quiet[events.SQSMessage](), func(_ context.Context, m events.SQSMessage) error {
		if m.Body == "nothing done" {
			return semel.NoEffect(semel.ErrNotKept)
		}
		return fmt.Errorf("another call: %w", semel.ErrOutcomeNotStored)
	}))
	r := must[events.SQSEventResponse](t)(h(t.Context(), messages(false, [3]string{"1", "g", "nothing done"}, [3]string{"2", "g", "x"})))
	wantEqual(t, failures(r), []string{"1", "2"})
}
