package semelsqs_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelsqs"
	"github.com/semel-go/semel/consume/semelsqs/sqstest"
	"github.com/semel-go/semel/store"
)

func source(t *testing.T, client *sqs.Client, queue string, o *semelsqs.Options) *semelsqs.Source {
	t.Helper()
	s, err := semelsqs.New(client, queue, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// wants checks that an error has all these parts.
func wants(t *testing.T, err error, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("the error is %v; want %q in it", err, part)
		}
	}
}

func TestInfo_QueuesMissing_NamesAll(t *testing.T) {
	t.Parallel()
	s := source(t, sqstest.Client(sqstest.URL(t)), "nobody.fifo", nil)
	_, err := s.Info(t.Context())
	wants(t, err, `"nobody.fifo" does not exist`, `"nobody-dead-letters.fifo" does not exist`, `"nobody-quarantine.fifo" does not exist`,
		"aws sqs create-queue --queue-name nobody-dead-letters.fifo --attributes FifoQueue=true")
}

func TestInfo_ServerDown_NamesEndpoint(t *testing.T) {
	t.Parallel()
	_, err := source(t, sqstest.Client("http://127.0.0.1:1"), "q", nil).Info(t.Context())
	wants(t, err, "SQS gives no answer", "check the client's endpoint")
}

func TestInfo_CredentialsRefused_NamesCredentials(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{"InvalidClientTokenId": "SQS refuses the credentials", "AccessDenied": "allow sqs:GetQueueUrl"} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/x-amz-json-1.0")
			w.WriteHeader(http.StatusForbidden)
			_, _ = fmt.Fprintf(w, `{"__type":"com.amazon.coral.service#%s","message":"no"}`, code)
		}))
		t.Cleanup(server.Close)
		_, err := source(t, sqstest.Client(server.URL), "q", nil).Info(t.Context())
		wants(t, err, want)
	}
}

func TestInfo_CopiesIntoTheQueueItself_IsRefused(t *testing.T) {
	t.Parallel()
	b := open(t, false)
	b.opt.DeadLetters = b.queue
	_, err := source(t, b.client, b.name, &b.opt).Info(t.Context())
	wants(t, err, "is the queue that is consumed")
}

func TestInfo_RedrivePolicy_LimitsDeliveries(t *testing.T) {
	t.Parallel()
	client, _ := withPolicy(t)
	i, err := source(t, client, "q", nil).Info(t.Context())
	if want := (driver.Info{DeliveryLimit: 7, AckWait: 2 * time.Second, Horizon: time.Hour}); err != nil || i != want {
		t.Errorf("Info: %+v, %v; want %+v", i, err, want)
	}
}

func TestNew_InvalidOptions_NamesAll(t *testing.T) {
	t.Parallel()
	_, err := semelsqs.New(nil, "", &semelsqs.Options{PollWait: time.Minute, Visibility: 1500 * time.Millisecond, DeadLetters: "x", Quarantine: "x"})
	wants(t, err, "client: must not be nil", "queue: must not be empty", "PollWait: is 1m0s", "Visibility: is 1.5s", `both "x"`)
}

// received is the next message of a queue.
func received(t *testing.T, s *semelsqs.Source) driver.Delivery {
	t.Helper()
	if _, err := s.Info(t.Context()); err != nil {
		t.Fatal(err)
	}
	var ds []driver.Delivery
	until(t, "received", func() bool {
		var err error
		if ds, err = s.Next(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		return len(ds) == 1
	})
	return ds[0]
}

// The handler of a message whose body lies in S3 would get the address for the body.
func TestNext_BodyInS3_IsDeadLetter(t *testing.T) {
	t.Parallel()
	for name, fifo := range kinds {
		for _, attribute := range []string{"ExtendedPayloadSize", "SQSLargePayloadSize"} {
			b := open(t, fifo)
			m := keyed("large")
			m.Headers = append(m.Headers, store.Header{Name: attribute, Value: "300000"})
			in := b.sending(&m)
			in.MessageAttributes[attribute] = types.MessageAttributeValue{DataType: aws.String("Number"), StringValue: aws.String("300000")}
			if _, err := b.client.SendMessage(t.Context(), in); err != nil {
				t.Fatal(err)
			}
			letter := refused(t, b)
			if text, _ := letter.Header(driver.LetterError); string(letter.Body) != "large" || !strings.Contains(text, "S3") {
				t.Errorf("%s: the letter's body is %q, its error %q", name, letter.Body, text)
			}
		}
	}
}

// Messages of any producer have their group, deduplication ID and MessageId.
func TestNext_FIFO_GroupAndIdentity(t *testing.T) {
	t.Parallel()
	b := open(t, true)
	out, err := b.client.SendMessage(t.Context(), &sqs.SendMessageInput{
		QueueUrl: &b.queue, MessageBody: aws.String("{}"), MessageGroupId: aws.String("account-7"), MessageDeduplicationId: aws.String("order-1"),
	})
	if err != nil {
		t.Fatal(err)
	}
	b.opt.OrderKey = nil
	m := received(t, source(t, b.client, b.name, &b.opt)).Message()
	id, _ := m.Header(semelsqs.DeduplicationIDHeader)
	if m.OrderKey != "account-7" || id != "order-1" || m.Origin.ID != *out.MessageId || m.Origin.Topic != b.name || m.Deliveries != 1 || m.Published.IsZero() {
		t.Errorf("the message is %+v", m)
	}
}

// One message in a batch may be refused: the others are deleted.
func TestAck_PartOfBatchFails_OnlyThatIsAnError(t *testing.T) {
	t.Parallel()
	b := open(t, false)
	var want []consume.Message
	for i := range 10 {
		want = append(want, keyed(fmt.Sprint(i)))
	}
	b.Publish(t, want...)
	spy := newSpy(t, b.url, true)
	s := source(t, sqstest.Client(spy.url), b.name, &b.opt)
	if _, err := s.Info(t.Context()); err != nil {
		t.Fatal(err)
	}
	results := make(chan error)
	n := 0
	for n < 10 {
		ds, err := s.Next(t.Context(), 10)
		if err != nil {
			t.Fatal(err)
		}
		n += len(ds)
		for _, d := range ds {
			go func() { results <- d.Ack(context.Background()) }()
		}
	}
	failed := 0
	for range n {
		if err := <-results; err != nil {
			failed++
			wants(t, err, "InternalError")
		}
	}
	if failed == 0 || b.Unsettled(t) != failed {
		t.Errorf("%d acks failed, and %d messages are left", failed, b.Unsettled(t))
	}
}

// SQS would hide the messages of a receive that is broken off.
func TestNext_ContextEnds_ReturnsTheMessagesOfTheReceive(t *testing.T) {
	t.Parallel()
	b := open(t, false)
	b.opt.PollWait = 20 * time.Second
	spy := newSpy(t, b.url, false)
	s := source(t, sqstest.Client(spy.url), b.name, &b.opt)
	if _, err := s.Info(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	got := make(chan string, 1)
	go func() {
		ds, err := s.Next(ctx, 10)
		got <- fmt.Sprint(len(ds), " messages, ", err)
	}()
	until(t, "a receive", func() bool { return len(spy.calls("ReceiveMessage")) > 0 })
	cancel()
	b.Publish(t, keyed("k"))
	if text := <-got; text != "1 messages, <nil>" {
		t.Errorf("Next returned %s", text)
	}
}

// A retry is hidden for whole seconds, never less than asked for.
func TestNak_AfterExtend_IsTheLastChange(t *testing.T) {
	t.Parallel()
	for delay, want := range map[time.Duration]string{0: `"VisibilityTimeout":0`, 1500 * time.Millisecond: `"VisibilityTimeout":2`, 24 * time.Hour: `"VisibilityTimeout":431`} {
		b := open(t, false)
		spy := newSpy(t, b.url, false)
		b.Publish(t, keyed("k"))
		d := received(t, source(t, sqstest.Client(spy.url), b.name, &b.opt))
		if err := d.Extend(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := d.Nak(t.Context(), delay); err != nil {
			t.Fatal(err)
		}
		calls := spy.calls("ChangeMessageVisibilityBatch")
		if len(calls) != 2 || !strings.Contains(calls[0], `"VisibilityTimeout":2`) || !strings.Contains(calls[1], want) {
			t.Errorf("Extend, Nak(%v): the requests are %q; want the last to have %s", delay, calls, want)
		}
	}
}

// A handler that outlived its message must not settle the next delivery of it.
func TestAck_MessageGone_IsErrGone(t *testing.T) {
	t.Parallel()
	b := open(t, true)
	b.Publish(t, keyed("k"))
	d := received(t, source(t, b.client, b.name, &b.opt))
	again := received(t, source(t, b.client, b.name, &b.opt)) // after the visibility time-out
	if err := d.Ack(t.Context()); !errors.Is(err, driver.ErrGone) {
		t.Errorf("Ack of the earlier delivery: %v, want ErrGone", err)
	}
	if err := again.Ack(t.Context()); err != nil || b.Unsettled(t) != 0 {
		t.Errorf("Ack of the later delivery: %v, %d messages are left", err, b.Unsettled(t))
	}
}
