//go:build unix

package semelsqs_test

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/consumetest"
	"github.com/semel-go/semel/consume/semelsqs/sqstest"
	"github.com/semel-go/semel/store/memstore"
)

// Waiting for messages, or for a server that gives no answer, uses little CPU and few
// requests, each of which AWS charges for. The test is not parallel, and so runs before
// those that are.
func TestServe_NoMessages_UsesLittleCPU(t *testing.T) {
	b := open(t, false)
	b.opt.PollWait = 0 // the default
	requests := &counting{line: newLine(), counts: map[string]int{}}
	s := source(t, sqstest.Client(b.url, func(o *sqs.Options) { o.HTTPClient = requests }), b.name, &b.opt)
	g, err := semel.New(memstore.New(nil), &semel.Options{Retention: consume.DefaultRetention})
	if err != nil {
		t.Fatal(err)
	}
	handle := func(context.Context, *semel.Execution, *consume.Message) error { return nil }
	failed := make(chan struct{}, 2)
	c, err := consume.New(g, consume.Keyed("test", consume.FromHeader(consume.KeyHeader)), handle, &consume.Options{Observe: func(_ context.Context, e consume.Event) {
		if e.Kind == consume.EventReceiveFailed {
			select {
			case failed <- struct{}{}:
			default:
			}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Serve(ctx, s) }()
	b.Publish(t, keyed("k"))
	until(t, "settled", func() bool { return b.Unsettled(t) == 0 })
	idle := func(who string) {
		before, began := requests.count("ReceiveMessage"), time.Now()
		consumetest.ReportIdle(t, "SQS (ElasticMQ)", who)
		if n, most := requests.count("ReceiveMessage")-before, 2+int(time.Since(began)/time.Second); n > most {
			t.Errorf("%s made %d receives in %v; at most %d are needed", who, n, time.Since(began), most)
		}
	}
	idle("a consumer that waits for messages")
	requests.cut(errDead) // its requests fail at once
	for range cap(failed) {
		<-failed
	}
	idle("a consumer whose server cannot be reached")
	stop()
	if err := <-ended; err != nil {
		t.Errorf("Serve: %v", err)
	}
}
