package consumer

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/semel-go/semel/cmd/semel/demo/internal/pipeline"
	"github.com/semel-go/semel/consume/semelnats"
)

// Options are what a consumer is told.
type Options struct {
	Broker  string // its URL
	Book    string // the path of the database of charges
	Journal string // its own
	Work    time.Duration
	Semel   bool
	// BrokerKeys takes the broker's own name of a message for its key, which is
	// a mistake: a producer that sends again makes a new one.
	BrokerKeys bool
}

// How much a consumer does at once, and has taken at once.
const concurrency, inFlight = 8, 16

// pollWait is how long it takes to notice that there are no more orders.
const pollWait = 200 * time.Millisecond

// Serve consumes until ctx ends.
func Serve(ctx context.Context, o *Options) (err error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	d, err := begin(o.Journal, fail)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.j.Close()) }()
	conn, err := nats.Connect(o.Broker, nats.MaxReconnects(-1))
	if err != nil {
		return err
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	pull, err := js.Consumer(ctx, pipeline.Stream, pipeline.Durable)
	if err != nil {
		return err
	}
	src, err := semelnats.New(js, pull, &semelnats.Options{PollWait: pollWait})
	if err != nil {
		return err
	}
	consume := naive
	if o.Semel {
		consume = guarded
	}
	err = consume(ctx, o, watched{src, d}, d)
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) { // the journal's
		err = errors.Join(err, cause)
	}
	return err
}
