package semellambda_test

import (
	"context"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/semellambda"
	"github.com/semel-go/semel/store/memstore"
)

// encoding/json reads each of these keys as U+FFFD. A message is done only if its own
// handler has run.
func TestSQS_KeysThatAreNoUnicode_AreRefused(t *testing.T) {
	guard, err := semel.New(memstore.New(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	runs := 0
	o := semellambda.Options[events.SQSMessage]{
		Operation: "charge", Tenant: semellambda.Shared[events.SQSMessage], KeyPointers: []string{"/id"},
		Payload: func(events.SQSMessage) (semel.Payload, error) { return semel.NoPayload(), nil },
	}
	h, err := semellambda.SQS(guard, o, func(context.Context, events.SQSMessage) error { runs++; return nil })
	if err != nil {
		t.Fatal(err)
	}
	res, err := h(t.Context(), events.SQSEvent{Records: []events.SQSMessage{
		{MessageId: "m1", Body: `{"id":"\ud800"}`}, {MessageId: "m2", Body: `{"id":"\udfff"}`}, {MessageId: "m3", Body: "{\"id\":\"\xff\"}"},
		{MessageId: "m4", Body: `{"id":"\ud83d\ude00"}`}, {MessageId: "m5", Body: `{"id":9007199254740992}`}, {MessageId: "m6", Body: `{"id":9007199254740993}`},
	}})
	if err != nil || runs != 3 || len(res.BatchItemFailures) != 3 {
		t.Errorf("the handler ran %d times, and not done are %v, %v; want 3, and m1, m2 and m3", runs, res.BatchItemFailures, err)
	}
}
