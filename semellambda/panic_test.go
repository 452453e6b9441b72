package semellambda_test

import (
	"context"
	"slices"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/semellambda"
)

// A panic would end the invocation, and with it the other records of the batch, each time.
func TestSQS_OptionPanicsForOneRecord_OthersRun(t *testing.T) {
	broken := func(m events.SQSMessage) {
		if m.Body == "panic" {
			panic("boom")
		}
	}
	for name, set := range map[string]func(o *semellambda.Options[events.SQSMessage]){
		"Key": func(o *semellambda.Options[events.SQSMessage]) {
			o.Key = func(m events.SQSMessage) (string, error) { broken(m); return m.MessageId, nil }
		},
		"Tenant": func(o *semellambda.Options[events.SQSMessage]) {
			o.Tenant = func(m events.SQSMessage) (string, error) { broken(m); return "ann", nil }
		},
		"Payload": func(o *semellambda.Options[events.SQSMessage]) {
			o.Payload = func(m events.SQSMessage) (semel.Payload, error) { broken(m); return semel.NoPayload(), nil }
		},
		"Report": func(o *semellambda.Options[events.SQSMessage]) {
			o.Key = func(m events.SQSMessage) (string, error) { broken(m); return m.MessageId, nil }
			o.Report = func(context.Context, string, error) { panic("boom") }
		},
	} {
		var ran []string
		o := quiet[events.SQSMessage]()
		set(&o)
		h := must[sqsHandler](t)(semellambda.SQS(newGuard(t, nil, nil), o, func(_ context.Context, m events.SQSMessage) error {
			ran = append(ran, m.MessageId)
			return nil
		}))
		r := must[events.SQSEventResponse](t)(h(t.Context(), messages(false, [3]string{"1", "", "x"}, [3]string{"2", "", "panic"}, [3]string{"3", "", "x"})))
		if got := failures(r); !slices.Equal(got, []string{"2"}) || !slices.Equal(ran, []string{"1", "3"}) {
			t.Errorf("%s panics: reported %q, ran %q", name, got, ran)
		}
	}
}
