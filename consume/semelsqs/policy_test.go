package semelsqs_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/semelsqs"
	"github.com/semel-go/semel/consume/semelsqs/sqstest"
)

// withPolicy is a client of a server that has each queue, with a redrive policy and without a
// message. Most is how many messages the last receive asked for.
func withPolicy(t *testing.T) (client *sqs.Client, most *atomic.Int64) {
	most = &atomic.Int64{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			QueueName, QueueURL string
			MaxNumberOfMessages int64
		}
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		switch _, act, _ := strings.Cut(r.Header.Get("X-Amz-Target"), "."); act {
		case "GetQueueUrl":
			_, _ = fmt.Fprintf(w, `{"QueueUrl":"http://sqs/1/%s"}`, in.QueueName)
		case "GetQueueAttributes":
			_, _ = fmt.Fprintf(w, `{"Attributes":{"QueueArn":"arn:%s","VisibilityTimeout":"2","MessageRetentionPeriod":"3600","MaximumMessageSize":"1048576","RedrivePolicy":"{\"maxReceiveCount\":7}"}}`, in.QueueURL)
		default:
			most.Store(in.MaxNumberOfMessages)
			_, _ = fmt.Fprint(w, "{}")
		}
	}))
	t.Cleanup(server.Close)
	return sqstest.Client(server.URL), most
}

// A message that waits for another one of its order key is received, and SQS moves it after some
// receives, although its handler never began.
func TestInfo_RedrivePolicyAndOrderKey_IsRefused(t *testing.T) {
	t.Parallel()
	client, _ := withPolicy(t)
	for _, queue := range []string{"q", "q.fifo"} {
		_, err := source(t, client, queue, &semelsqs.Options{OrderKey: func(*consume.Message) string { return "lane" }}).Info(t.Context())
		wants(t, err, `"`+queue+`"`, "Options.OrderKey", "RedrivePolicy")
	}
}

// A receive returns up to ten messages of one group, and all but the first would wait.
func TestNext_RedrivePolicy_ReceivesOneMessageOfFIFO(t *testing.T) {
	t.Parallel()
	client, most := withPolicy(t)
	for queue, want := range map[string]int64{"q": 10, "q.fifo": 1} {
		s := source(t, client, queue, nil)
		if _, err := s.Info(t.Context()); err != nil {
			t.Fatal(err)
		}
		if ds, err := s.Next(t.Context(), 100); len(ds) > 0 || err != nil || most.Load() != want {
			t.Errorf("%s: a receive asks for %d messages, want %d: %v", queue, most.Load(), want, err)
		}
	}
}
