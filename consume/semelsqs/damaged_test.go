package semelsqs_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelsqs/sqstest"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
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
		letter := refused(t, b)
		if text, _ := letter.Header(driver.LetterError); !strings.Contains(text, c.want) {
			t.Errorf("%s: the letter's error is %q; want %q in it", c.value, text, c.want)
		}
		kind, _ := letter.Header("kind")
		if part, _ := letter.Header(c.attribute); part != c.value || kind != "order" || string(letter.Body) != "no base64!" {
			t.Errorf("%s: the letter has the body %q and the headers %v", c.value, letter.Body, letter.Headers)
		}
	}
}

// refused serves a queue whose only message cannot be read, and returns its dead letter. The
// message must not run, and an operator must see it.
func refused(t *testing.T, b *broker) *consume.Message {
	t.Helper()
	g, err := semel.New(memstore.New(nil), &semel.Options{Retention: consume.DefaultRetention})
	if err != nil {
		t.Fatal(err)
	}
	var settled atomic.Int64
	c, err := consume.New(g, consume.Keyed("billing", consume.FromHeader(consume.KeyHeader), consume.BrokerID()), func(context.Context, *semel.Execution, *consume.Message) error {
		t.Error("the handler ran")
		return nil
	}, &consume.Options{AllowShortRetention: true, Observe: func(_ context.Context, e consume.Event) {
		if e.Kind == consume.EventSettled && e.Disposition.Reason == driver.ReasonInvalid {
			settled.Add(1)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	b.opt.Visibility = 5 * time.Minute // so that a slow machine does not get the message again
	served := make(chan error, 1)
	go func() { served <- c.Serve(ctx, source(t, b.client, b.name, &b.opt)) }()
	until(t, "settled as invalid", func() bool { return settled.Load() == 1 })
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
	letters := b.Copies(t, driver.DeadLetter)
	if len(letters) != 1 || b.Unsettled(t) != 0 {
		t.Fatalf("%d dead letters, and %d messages are left", len(letters), b.Unsettled(t))
	}
	if group, _ := letters[0].Header(driver.LetterGroup); group != "billing" {
		t.Errorf("the letter's group is %q", group)
	}
	return &letters[0]
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
