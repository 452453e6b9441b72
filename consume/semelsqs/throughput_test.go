package semelsqs_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/semelsqs"
	"github.com/semel-go/semel/consume/semelsqs/sqstest"
	"github.com/semel-go/semel/store/memstore"
)

// A consumer with records in memory, against the usual program without deduplication:
// several loops that receive ten messages, handle them and delete them by one request.
// The rounds of both alternate, and the log has the requests for each message. The median
// of the ratios has a floor.
func TestServe_Throughput_AgainstPlainConsumer(t *testing.T) {
	if os.Getenv("SEMEL_TEST_COMPARE") != "1" {
		t.Skip("a measurement: set SEMEL_TEST_COMPARE=1")
	}
	const floor = 0.6
	const rounds, messages = 7, 2000
	for _, latency := range []time.Duration{0, 5 * time.Millisecond} {
		var ratios []float64
		for range rounds {
			plain := throughput(t, "plain", messages, latency, plainConsumer)
			guarded := throughput(t, "semelsqs", messages, latency, guardedConsumer)
			ratios = append(ratios, guarded/plain)
		}
		slices.Sort(ratios)
		t.Logf("handlers of %v: semelsqs has %.2f times the rate of a plain consumer (median of %d rounds; %.2f to %.2f)",
			latency, ratios[rounds/2], rounds, ratios[0], ratios[rounds-1])
		if ratios[rounds/2] < floor {
			t.Errorf("handlers of %v: the median is %.2f; the floor is %.2f", latency, ratios[rounds/2], floor)
		}
	}
}

// consumer handles the messages of a queue until ctx ends.
type consumer func(ctx context.Context, t *testing.T, client *sqs.Client, b *broker, handle func())

// throughput is how many messages a second a consumer handles from the first one on.
func throughput(t *testing.T, name string, messages int, latency time.Duration, run consumer) float64 {
	t.Helper()
	b := open(t, false)
	b.opt.Visibility, b.opt.OrderKey = time.Minute, nil
	var sending sync.WaitGroup
	for part := range 4 {
		sending.Go(func() {
			for i := part * 10; i < messages; i += 40 {
				in := &sqs.SendMessageBatchInput{QueueUrl: &b.queue}
				for j := range 10 {
					m := keyed(strconv.Itoa(i + j))
					s, id := b.sending(&m), strconv.Itoa(j)
					in.Entries = append(in.Entries, types.SendMessageBatchRequestEntry{Id: &id, MessageBody: s.MessageBody, MessageAttributes: s.MessageAttributes})
				}
				if _, err := b.client.SendMessageBatch(t.Context(), in); err != nil {
					t.Error(err)
				}
			}
		})
	}
	sending.Wait()
	line := newLine()
	defer line.client.CloseIdleConnections()
	requests := &counting{line: line, counts: map[string]int{}}
	client := sqstest.Client(b.url, func(o *sqs.Options) { o.HTTPClient = requests })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var handled atomic.Int64
	var began atomic.Pointer[time.Time]
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		run(ctx, t, client, b, func() {
			now := time.Now()
			began.CompareAndSwap(nil, &now)
			if latency > 0 {
				<-time.After(latency)
			}
			handled.Add(1)
		})
	}()
	until(t, "all handled", func() bool { return handled.Load() >= int64(messages) })
	until(t, "all deleted", func() bool { return b.Unsettled(t) == 0 })
	rate := float64(messages) / time.Since(*began.Load()).Seconds()
	cancel()
	<-ended
	t.Logf("%s, handlers of %v: %.0f messages/s; requests for each message: %s", name, latency, rate, requests.perMessage(messages))
	return rate
}

func guardedConsumer(ctx context.Context, t *testing.T, client *sqs.Client, b *broker, handle func()) {
	g, err := semel.New(memstore.New(nil), &semel.Options{Retention: consume.DefaultRetention})
	if err != nil {
		t.Error(err)
		return
	}
	c, err := consume.New(g, consume.Keyed("load", consume.FromHeader(consume.KeyHeader)), func(context.Context, *semel.Execution, *consume.Message) error {
		handle()
		return nil
	}, nil)
	if err != nil {
		t.Error(err)
		return
	}
	s, err := semelsqs.New(client, b.name, &b.opt)
	if err != nil {
		t.Error(err)
		return
	}
	if err := c.Serve(ctx, s); err != nil {
		t.Error(err)
	}
}

// plainConsumer has as many handlers at once as the guarded one by default.
func plainConsumer(ctx context.Context, _ *testing.T, client *sqs.Client, b *broker, handle func()) {
	var all sync.WaitGroup
	defer all.Wait()
	for range 64 / 10 {
		all.Go(func() {
			for ctx.Err() == nil {
				out, err := client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
					QueueUrl: &b.queue, MaxNumberOfMessages: 10, WaitTimeSeconds: 1, VisibilityTimeout: 60, MessageAttributeNames: []string{"All"},
					MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
				})
				if err != nil || len(out.Messages) == 0 {
					continue
				}
				var handlers sync.WaitGroup
				in := &sqs.DeleteMessageBatchInput{QueueUrl: &b.queue}
				for i, m := range out.Messages {
					handlers.Go(handle)
					id := strconv.Itoa(i)
					in.Entries = append(in.Entries, types.DeleteMessageBatchRequestEntry{Id: &id, ReceiptHandle: m.ReceiptHandle})
				}
				handlers.Wait()
				_, _ = client.DeleteMessageBatch(ctx, in) // a message that is left fails the test
			}
		})
	}
}

// counting counts the requests of a client by their operation.
type counting struct {
	*line
	mu     sync.Mutex
	counts map[string]int
}

func (c *counting) Do(r *http.Request) (*http.Response, error) {
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	c.mu.Lock()
	c.counts[operation]++
	c.mu.Unlock()
	return c.line.Do(r)
}

func (c *counting) count(operation string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counts[operation]
}

func (c *counting) perMessage(messages int) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(c.counts)) {
		parts = append(parts, fmt.Sprintf("%s %.2f", name, float64(c.counts[name])/float64(messages)))
	}
	return strings.Join(parts, ", ")
}
