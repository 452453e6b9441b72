package outbox_test

import (
	"context"
	"fmt"

	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/outbox/outboxtest"
)

// printer is a sink that prints the messages.
type printer struct{ done func() }

// Publish implements outbox.Sink.
func (p printer) Publish(ctx context.Context, messages []outbox.Message, answer func(i int, err error)) {
	outbox.EachInTurn(ctx, messages, outbox.Limits{Parallel: 8}, answer, func(_ context.Context, m *outbox.Message) error {
		fmt.Printf("%s for %s: %s\n", m.Topic, m.OrderKey, m.Body)
		if string(m.Body) == "order 2" {
			p.done()
		}
		return nil
	})
}

// A program publishes until it stops. The outbox in memory stands for one in PostgreSQL or
// SQLite.
func ExamplePublisher() {
	ctx, stop := context.WithCancel(context.Background())
	box := outboxtest.NewMemory()
	for n := 1; n <= 2; n++ {
		m := outbox.Message{Topic: "orders", OrderKey: "ann", Body: fmt.Appendf(nil, "order %d", n)}
		if err := box.Put(ctx, m); err != nil {
			fmt.Println(err)
		}
	}
	publisher, err := outbox.New(box, printer{stop}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("stopped:", publisher.Run(ctx))
	// Output:
	// orders for ann: order 1
	// orders for ann: order 2
	// stopped: <nil>
}
