package semelsqs_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelsqs/sqstest"
	"github.com/semel-go/semel/store"
)

// A part of a message that was cut off may have had the key, so that the message must
// not run without it. Nothing of it is lost: the copy has the part as it was.
func TestNext_EncodedPartDamaged_IsDeadLetter(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ attribute, value, want string }{
		{"semel-headers", `[["aWRlbXBvdGVuY3kta2V5","azE`, `the attribute "semel-headers" is no list of headers`},
		{"semel-headers", `[["idempotency-key","k1"]]`, `the attribute "semel-headers" is no list of headers`}, // not in base64
		{"semel-body", "base64", `the attribute "semel-body" says that the body is base64, and it is not`},
		{"semel-body", "gzip", `the attribute "semel-body" is "gzip"; it must be base64 or empty`},
	} {
		b := open(t, false)
		in := b.sending(&consume.Message{Body: []byte("no base64!"), Headers: []store.Header{{Name: "kind", Value: "order"}}})
		in.MessageAttributes[c.attribute] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: &c.value}
		if _, err := b.client.SendMessage(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		s := source(t, b.client, b.name, &b.opt)
		if _, err := s.Info(t.Context()); err != nil {
			t.Fatal(err)
		}
		var letters []consume.Message
		until(t, "a letter", func() bool {
			if ds, err := s.Next(t.Context(), 10); len(ds) > 0 || err != nil {
				t.Fatalf("%s: Next returns %d messages, %v", c.value, len(ds), err)
			}
			letters = b.Copies(t, driver.DeadLetter)
			return len(letters) == 1
		})
		if text, _ := letters[0].Header(driver.LetterError); !strings.Contains(text, c.want) {
			t.Errorf("%s: the letter's error is %q; want %q in it", c.value, text, c.want)
		}
		kind, _ := letters[0].Header("kind")
		if part, _ := letters[0].Header(c.attribute); part != c.value || kind != "order" || string(letters[0].Body) != "no base64!" || b.Unsettled(t) != 0 {
			t.Errorf("%s: the letter has the body %q and the headers %v, and %d messages are left", c.value, letters[0].Body, letters[0].Headers, b.Unsettled(t))
		}
	}
}

// An answer whose text was changed on its way does not match SQS's checksum: nothing of
// it runs or is deleted, and the message comes again after its visibility time-out.
func TestNext_BodyCutOffOnTheWay_ErrorAndNothingLost(t *testing.T) {
	t.Parallel()
	b := open(t, false)
	m := keyed("a body that is cut off")
	b.Publish(t, m)
	spy := newSpy(t, b.url, false)
	spy.cutBodies = true
	s := source(t, sqstest.Client(spy.url), b.name, &b.opt)
	if _, err := s.Info(t.Context()); err != nil {
		t.Fatal(err)
	}
	ds, err := s.Next(t.Context(), 1)
	if len(ds) != 0 {
		t.Fatalf("Next returned %d messages", len(ds))
	}
	wants(t, err, `receive from queue "`+b.name+`"`, "checksum")
	if d := received(t, source(t, b.client, b.name, &b.opt)); string(d.Message().Body) != string(m.Body) || d.Message().Deliveries != 2 {
		t.Errorf("the next delivery is number %d with the body %q", d.Message().Deliveries, d.Message().Body)
	}
	if n := len(spy.calls("DeleteMessageBatch")); n != 0 {
		t.Errorf("%d deletions", n)
	}
}
