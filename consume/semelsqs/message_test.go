package semelsqs_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelsqs"
	"github.com/semel-go/semel/consume/semelsqs/sqstest"
	"github.com/semel-go/semel/store"
)

func TestEncode_AnyHeadersAndBody_DecodesTheSame(t *testing.T) {
	t.Parallel()
	var many []store.Header
	for i := range 30 {
		many = append(many, store.Header{Name: fmt.Sprint("h", i), Value: "v"})
	}
	for name, m := range map[string]consume.Message{
		"plain":          keyed("k"),
		"empty body":     {Headers: keyed("k").Headers},
		"binary body":    {Body: []byte{0, 255, 1}},
		"many headers":   {Body: []byte("b"), Headers: many},
		"odd headers":    {Body: []byte("b"), Headers: []store.Header{{Name: "AWS.x", Value: "1"}, {Name: "a b", Value: "\x00\xff"}, {Name: "", Value: ""}, {Name: "e", Value: ""}}},
		"repeats":        {Body: []byte("b"), Headers: []store.Header{{Name: "a", Value: "1"}, {Name: "a", Value: "2"}}},
		"Encode's names": {Body: []byte("b"), Headers: []store.Header{{Name: "semel-body", Value: "empty"}, {Name: "semel-headers", Value: "x"}}},
	} {
		text, attributes := semelsqs.Encode(m.Headers, m.Body)
		if len(attributes) > 10 || text == "" {
			t.Errorf("%s: %d attributes, body %q", name, len(attributes), text)
		}
		got := semelsqs.Decode("q", &types.Message{Body: &text, MessageAttributes: attributes})
		byName := func(a, b store.Header) int { return strings.Compare(a.Name, b.Name) }
		slices.SortStableFunc(got.Headers, byName)
		slices.SortStableFunc(m.Headers, byName)
		if !slices.Equal(got.Headers, m.Headers) || string(got.Body) != string(m.Body) {
			t.Errorf("%s: %q and %q came back as %q and %q", name, m.Headers, m.Body, got.Headers, got.Body)
		}
	}
}

// A copy that does not fit is sent again without the error's text. If that does not
// fit, the message stays in the queue, and the error says what to do.
func TestForward_CopyTooLarge_NamesTheLimit(t *testing.T) {
	t.Parallel()
	for refused, want := range map[int]string{1: "", 2: "raise it"} {
		b := open(t, false)
		b.Publish(t, keyed("k"))
		spy := newSpy(t, b.url, false)
		spy.tooLarge = refused
		d := received(t, source(t, sqstest.Client(spy.url), b.name, &b.opt))
		headers := []store.Header{{Name: driver.LetterReason, Value: "failed"}, {Name: driver.LetterError, Value: "a long story"}}
		err := d.Forward(t.Context(), driver.DeadLetter, headers)
		if want != "" {
			wants(t, err, want, "MaximumMessageSize", b.name[:1])
			continue
		}
		letters := b.Copies(t, driver.DeadLetter)
		if err != nil || len(letters) != 1 {
			t.Fatalf("Forward: %v, %d letters", err, len(letters))
		}
		if _, ok := letters[0].Header(driver.LetterError); ok {
			t.Error("the second copy has the error's text, too")
		}
	}
}

// A redrive policy of the queue moves a message by itself, whatever reads it.
func TestNext_RedrivePolicy_MovesMessageToItsQueue(t *testing.T) {
	t.Parallel()
	b := open(t, false)
	b.opt.OrderKey = nil
	arn, err := b.client.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: aws.String(b.copies[driver.DeadLetter]), AttributeNames: []types.QueueAttributeName{"QueueArn"}})
	if err != nil {
		t.Fatal(err)
	}
	policy := fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":2}`, arn.Attributes["QueueArn"])
	if _, err := b.client.SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{QueueUrl: &b.queue, Attributes: map[string]string{"RedrivePolicy": policy}}); err != nil {
		t.Fatal(err)
	}
	b.Publish(t, keyed("k"))
	s := source(t, b.client, b.name, &b.opt)
	for n := range 2 {
		d := received(t, s)
		if d.Message().Deliveries != n+1 {
			t.Errorf("receive %d has the count %d", n+1, d.Message().Deliveries)
		}
		if err := d.Nak(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "moved", func() bool {
		if ds, err := s.Next(t.Context(), 1); len(ds) > 0 || err != nil {
			t.Fatalf("after 2 receives Next returns %d messages, %v", len(ds), err)
		}
		return len(b.Copies(t, driver.DeadLetter)) == 1
	})
}
