package semelsqs

import (
	"errors"
	"net/http"
	"strings"
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
			if !errors.Is(err, errSinkTimeout) || outbox.IsPoison(err) || !strings.Contains(err.Error(), "orders") {
				t.Errorf("error %v, want errSinkTimeout and the queue", err)
			}
		})
		if took := time.Since(began); took != sinkTimeout {
			t.Errorf("it took %v, want %v", took, sinkTimeout)
		}
	})
}
