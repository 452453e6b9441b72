//go:build unix

package semelsqs_test

import (
	"context"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/consumetest"
	"github.com/semel-go/semel/store/memstore"
)

// Waiting for messages, or for a server that gives no answer, uses little CPU. The test is
// not parallel, and so runs before those that are.
func TestServe_NoMessages_UsesLittleCPU(t *testing.T) {
	b := open(t, false)
	b.opt.PollWait = 0 // the default
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
	source, ended := b.Connect(t), make(chan error, 1)
	go func() { ended <- c.Serve(ctx, source) }()
	b.Publish(t, keyed("k"))
	until(t, "settled", func() bool { return b.Unsettled(t) == 0 })
	consumetest.ReportIdle(t, "SQS (ElasticMQ)", "a consumer that waits for messages")
	source.Kill() // its requests fail at once
	for range cap(failed) {
		<-failed
	}
	consumetest.ReportIdle(t, "SQS (ElasticMQ)", "a consumer whose server cannot be reached")
	stop()
	if err := <-ended; err != nil {
		t.Errorf("Serve: %v", err)
	}
}
