package semelsqs_test

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/consumetest"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelsqs"
	"github.com/semel-go/semel/consume/semelsqs/sqstest"
	"github.com/semel-go/semel/store"
)

// patience is how long a test waits for an event, on a busy machine.
const patience = 5 * time.Minute

const orderHeader = "order-key"

func TestMain(m *testing.M) {
	flag.Parse()
	// The tests wait for whole seconds of SQS most of the time, so that more of them
	// run at once than there are cores.
	if err := flag.Set("test.parallel", "24"); err != nil {
		panic(err)
	}
	os.Exit(sqstest.Main(m))
}

// The names of queues, on a server that other processes may use, too.
var (
	process = rand.Text()[:8]
	queues  atomic.Int64
)

// broker is a queue with its queues of copies.
type broker struct {
	url    string
	client *sqs.Client
	fifo   bool
	name   string
	queue  string // URLs
	copies map[driver.Action]string
	opt    semelsqs.Options

	mu   sync.Mutex
	seen map[driver.Action][]consume.Message
	next int
}

// open makes new queues on the shared server.
func open(t testing.TB, fifo bool) *broker {
	t.Helper()
	url := sqstest.URL(t)
	b := &broker{url: url, client: sqstest.Client(url), fifo: fifo, copies: map[driver.Action]string{}, seen: map[driver.Action][]consume.Message{}}
	base, suffix := fmt.Sprintf("q%s-%d", process, queues.Add(1)), ""
	if fifo {
		suffix = ".fifo"
	}
	b.name = base + suffix
	b.queue = b.create(t, b.name)
	b.copies[driver.DeadLetter] = b.create(t, base+"-dead-letters"+suffix)
	b.copies[driver.Quarantine] = b.create(t, base+"-quarantine"+suffix)
	b.opt = semelsqs.Options{PollWait: time.Second, OrderKey: func(m *consume.Message) string {
		key, _ := m.Header(orderHeader)
		return key
	}}
	return b
}

// create makes a queue whose visibility time-out is 2 s, because SQS counts whole
// seconds.
func (b *broker) create(t testing.TB, name string) string {
	t.Helper()
	attributes := map[string]string{"VisibilityTimeout": "2"}
	if b.fifo {
		attributes["FifoQueue"] = "true"
	}
	out, err := b.client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes})
	if err != nil {
		t.Fatal(err)
	}
	return aws.ToString(out.QueueUrl)
}

// Publish implements consumetest.Broker.
func (b *broker) Publish(t testing.TB, ms ...consume.Message) {
	t.Helper()
	for i := range ms {
		if _, err := b.client.SendMessage(context.Background(), b.sending(&ms[i])); err != nil {
			t.Fatal(err)
		}
	}
}

// sending is a message for the queue.
func (b *broker) sending(m *consume.Message) *sqs.SendMessageInput {
	headers := m.Headers
	if m.OrderKey != "" {
		headers = append([]store.Header{{Name: orderHeader, Value: m.OrderKey}}, headers...)
	}
	in := &sqs.SendMessageInput{QueueUrl: &b.queue}
	text, attributes := semelsqs.Encode(headers, m.Body)
	in.MessageBody, in.MessageAttributes = &text, attributes
	if b.fifo {
		b.mu.Lock()
		b.next++
		n := strconv.Itoa(b.next)
		b.mu.Unlock()
		group := "alone-" + n
		if m.OrderKey != "" {
			group = fmt.Sprintf("%x", m.OrderKey)
		}
		in.MessageGroupId, in.MessageDeduplicationId = &group, &n
	}
	return in
}

// Copies implements consumetest.Broker.
func (b *broker) Copies(t testing.TB, to driver.Action) []consume.Message {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		out, err := b.client.ReceiveMessage(context.Background(), &sqs.ReceiveMessageInput{
			QueueUrl: aws.String(b.copies[to]), MaxNumberOfMessages: 10, MessageAttributeNames: []string{"All"},
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(out.Messages) == 0 {
			return append([]consume.Message(nil), b.seen[to]...)
		}
		for _, m := range out.Messages {
			b.seen[to] = append(b.seen[to], *semelsqs.Decode("copies", &m))
			if _, err := b.client.DeleteMessage(context.Background(), &sqs.DeleteMessageInput{QueueUrl: aws.String(b.copies[to]), ReceiptHandle: m.ReceiptHandle}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Unsettled implements consumetest.Broker.
func (b *broker) Unsettled(t testing.TB) (n int) {
	t.Helper()
	out, err := b.client.GetQueueAttributes(context.Background(), &sqs.GetQueueAttributesInput{QueueUrl: &b.queue, AttributeNames: []types.QueueAttributeName{"All"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible", "ApproximateNumberOfMessagesDelayed"} {
		k, err := strconv.Atoi(out.Attributes[name])
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		n += k
	}
	return n
}

// Connect implements consumetest.Broker.
func (b *broker) Connect(t testing.TB) consumetest.Conn {
	t.Helper()
	line := newLine()
	s, err := semelsqs.New(sqstest.Client(b.url, func(o *sqs.Options) { o.HTTPClient = line }), b.name, &b.opt)
	if err != nil {
		t.Fatal(err)
	}
	return &conn{s, line}
}

// line is a network connection that can be cut.
type line struct {
	client *http.Client
	ctx    context.Context // the life of the connection
	cut    context.CancelCauseFunc
}

var errDead = errors.New("the process is dead")

func newLine() *line {
	ctx, cut := context.WithCancelCause(context.Background())
	return &line{&http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 32}}, ctx, cut}
}

// Do implements the SDK's HTTPClient.
func (l *line) Do(r *http.Request) (*http.Response, error) {
	if l.ctx.Err() != nil {
		return nil, errDead
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	context.AfterFunc(l.ctx, func() { cancel(errDead) })
	return l.client.Do(r.WithContext(ctx))
}

// conn is a member with a connection of its own.
type conn struct {
	*semelsqs.Source
	line *line
}

func (c *conn) Kill() {
	c.line.cut(errDead)
	c.line.client.CloseIdleConnections()
}

func (c *conn) Close() error {
	c.Kill()
	return nil
}

func until(t testing.TB, what string, ready func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ready(); <-time.After(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after %v: not %s", patience, what)
		}
	}
}

func keyed(key string) consume.Message {
	return consume.Message{Body: []byte(key), Headers: []store.Header{{Name: consume.KeyHeader, Value: key}}}
}
