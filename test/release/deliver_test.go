package release

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/semelsqs/sqstest"
)

func TestMain(m *testing.M) { os.Exit(sqstest.Main(m)) }

// deliver has the container's semel deliver send a message that is twice in a queue, and
// then another one.
func deliver(t *testing.T, start func(...string) *exec.Cmd, root string) {
	endpoint := sqstest.URL(t)
	client := sqstest.Client(endpoint)
	var queue *string
	for _, name := range []string{"orders-quarantine", "orders-dead-letters", "orders"} {
		out, err := client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name})
		if err != nil {
			t.Fatal(err)
		}
		queue = out.QueueUrl
	}
	send := func(key string) {
		if _, err := client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: queue, MessageBody: aws.String("{}"), MessageAttributes: map[string]types.MessageAttributeValue{
			consume.KeyHeader: {DataType: aws.String("String"), StringValue: &key},
		}}); err != nil {
			t.Fatal(err)
		}
	}
	keys := make(chan string, 10)
	service := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { keys <- r.Header.Get("Idempotency-Key") }))
	defer service.Close()
	cmd := start("deliver", "--from", "sqs://orders?region=us-east-1&endpoint="+endpoint, "--to", service.URL, "--store", "sqlite:/data/deliver.db")
	cmd.Env = append(cmd.Env, "AWS_ACCESS_KEY_ID=x", "AWS_SECRET_ACCESS_KEY=x")
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	stopped := false
	stop := func() {
		if !stopped {
			_ = cmd.Process.Kill()
			<-ended
			stopped = true
		}
	}
	defer stop()
	next := func(want string) {
		t.Helper()
		select {
		case key := <-keys:
			if key != want {
				t.Errorf("the service got the key %s, want %s", key, want)
			}
		case err := <-ended:
			stopped = true
			t.Fatalf("semel deliver has ended: %v\n%s", err, log.String())
		case <-time.After(2 * time.Minute):
			stop()
			t.Fatalf("the service has not got %s\n%s", want, log.String())
		}
	}
	send("k1")
	next(`"k1"`)
	send("k1")
	for left := "?"; left != "0"; <-time.After(50 * time.Millisecond) {
		out, err := client.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: queue, AttributeNames: []types.QueueAttributeName{"All"}})
		if err != nil {
			t.Fatal(err)
		}
		if left = out.Attributes["ApproximateNumberOfMessages"]; left == "0" {
			left = out.Attributes["ApproximateNumberOfMessagesNotVisible"]
		}
	}
	send("k2")
	next(`"k2"`)
	if _, err := os.Stat(filepath.Join(root, "data", "deliver.db")); err != nil {
		t.Errorf("the records are not in /data: %v", err)
	}
}
