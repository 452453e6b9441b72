package semelsqs

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/semel-go/semel/outbox"
)

// silent is an endpoint that takes requests and never answers.
type silent struct{}

func (silent) Do(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func TestSink_NoAnswer_IsLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink, err := NewSink(sqs.New(sqs.Options{Region: "us-east-1", Credentials: aws.AnonymousCredentials{}, HTTPClient: silent{}}))
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		sink.Publish(t.Context(), []outbox.Message{{Topic: "orders", ID: "1"}}, func(_ int, err error) {
			if err == nil || outbox.IsPoison(err) || !strings.Contains(err.Error(), "no answer within 15s") || !strings.Contains(err.Error(), "orders") {
				t.Errorf("error %v, want one that names the limit and the queue", err)
			}
		})
		if took := time.Since(began); took != sinkTimeout {
			t.Errorf("it took %v, want %v", took, sinkTimeout)
		}
	})
}

// lapsing is an endpoint, and a lease that is over after the first request, without Done.
type lapsing struct {
	context.Context
	requests atomic.Int64
}

var errLapsed = errors.New("the lease is over")

func (l *lapsing) Err() error {
	if l.requests.Load() > 0 {
		return errLapsed
	}
	return l.Context.Err()
}

func (l *lapsing) Do(*http.Request) (*http.Response, error) {
	l.requests.Add(1)
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(`{"QueueUrl": "http://queue"}`))}, nil
}

func TestSink_LeaseEndsDuringLookUp_SendsNothing(t *testing.T) {
	l := &lapsing{Context: t.Context()}
	sink, err := NewSink(sqs.New(sqs.Options{Region: "us-east-1", Credentials: aws.AnonymousCredentials{}, HTTPClient: l}))
	if err != nil {
		t.Fatal(err)
	}
	sink.Publish(l, []outbox.Message{{Topic: "orders", ID: "1"}}, func(_ int, err error) {
		if !errors.Is(err, errLapsed) {
			t.Errorf("error %v, want the end of the lease", err)
		}
	})
	if n := l.requests.Load(); n != 1 {
		t.Errorf("%d requests, want the look-up only", n)
	}
}
