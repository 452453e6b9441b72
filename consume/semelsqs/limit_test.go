package semelsqs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/semel-go/semel/consume/driver"
)

// limited is a message of a queue that refuses a time-out that ends more than 12 hours after
// the receive, as SQS does and ElasticMQ does not. The test's code gets the times until which
// SQS hides the message.
func limited(t *testing.T, o *Options) (d *delivery, hidden *[]time.Duration) {
	t.Helper()
	s, err := New(sqs.New(sqs.Options{}), "orders", o)
	if err != nil {
		t.Fatal(err)
	}
	received := time.Now()
	hidden = &[]time.Duration{}
	s.changes.send = func(_ context.Context, es []*entry) {
		for _, e := range es {
			until := time.Since(received) + time.Duration(e.seconds)*time.Second
			if until > 12*time.Hour {
				e.err = entryError(types.BatchResultErrorEntry{Code: aws.String("InvalidParameterValue"), SenderFault: true,
					Message: aws.String("Value for parameter VisibilityTimeout is invalid. Reason: Total VisibilityTimeout for the message is beyond the limit [43200 seconds]")})
				continue
			}
			*hidden = append(*hidden, until)
		}
	}
	return s.delivery(types.Message{MessageId: aws.String("m"), ReceiptHandle: aws.String("h"), Body: aws.String("b")}, received), hidden
}

func TestNak_PauseBeyondTheLimit_EndsAtTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, hidden := limited(t, nil)
		time.Sleep(2 * time.Second) // the handler
		err := d.Nak(t.Context(), 24*time.Hour)
		if err != nil || len(*hidden) != 1 || (*hidden)[0] < 12*time.Hour-time.Minute {
			t.Errorf("the message is hidden until %v, %v; want 12 h after its receive", *hidden, err)
		}
		synctest.Wait()
	})
}

// The last extension ends at the limit. After it, Extend names the limit.
func TestExtend_LongVisibility_HidesUntilTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, hidden := limited(t, &Options{Visibility: 8 * time.Hour})
		var err error
		for range 5 {
			time.Sleep(8 * time.Hour / 3)
			err = d.Extend(t.Context())
			synctest.Wait()
		}
		if n := len(*hidden); n != 4 || (*hidden)[n-1] < 12*time.Hour-time.Minute {
			t.Errorf("the message is hidden until %v; want four extensions, and the last until 12 h after the receive", *hidden)
		}
		if err == nil || errors.Is(err, driver.ErrGone) || !strings.Contains(err.Error(), "12 hours") {
			t.Errorf("after 13 h: %v, want an error that names the limit", err)
		}
	})
}

// If SQS refuses a Nak, for example because it throttles, the Consumer keeps the message, and
// tries it again here.
func TestNak_Fails_MessageIsExtendedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, hidden := limited(t, &Options{Visibility: 30 * time.Second})
		send := d.s.changes.send
		d.s.changes.send = func(_ context.Context, es []*entry) { failAll(es, context.DeadlineExceeded) }
		if err := d.Nak(t.Context(), time.Minute); err == nil {
			t.Fatal("no error")
		}
		synctest.Wait()
		d.s.changes.send = send
		if err := d.Extend(t.Context()); err != nil || len(*hidden) != 1 {
			t.Errorf("the message is hidden until %v, %v; want one extension", *hidden, err)
		}
		synctest.Wait()
	})
}

// SQS could take two changes of a message in the other order if they are in one request, or in
// two at once. An Extend that was given up may have its request still.
func TestNak_ExtendHasNoAnswer_IsSentAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, _ := limited(t, &Options{Visibility: 30 * time.Second})
		var requests []string
		d.s.changes.send = func(_ context.Context, es []*entry) {
			request := ""
			for _, e := range es {
				request += fmt.Sprintf("%s %d ", e.handle, e.seconds)
			}
			requests = append(requests, request)
			time.Sleep(2 * time.Second)
		}
		d.s.changes.start("another message", 1)
		synctest.Wait() // its request runs
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := d.Extend(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Extend: %v", err)
		}
		if err := d.Nak(t.Context(), time.Minute); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if want := []string{"another message 1 ", "h 30 ", "h 60 "}; !slices.Equal(requests, want) {
			t.Errorf("the requests are %q, want %q", requests, want)
		}
	})
}

// A time-out that SQS refuses says nothing about the message.
func TestEntryError_TimeoutRefused_IsNotErrGone(t *testing.T) {
	refused := func(text string) error {
		return entryError(types.BatchResultErrorEntry{Code: aws.String("InvalidParameterValue"), Message: &text})
	}
	if err := refused("Value for parameter VisibilityTimeout is invalid."); errors.Is(err, driver.ErrGone) {
		t.Errorf("got %v", err)
	}
	if err := refused("Value for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired."); !errors.Is(err, driver.ErrGone) {
		t.Errorf("got %v, want ErrGone", err)
	}
}
