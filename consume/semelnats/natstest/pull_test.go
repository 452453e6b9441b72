package natstest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelnats"
)

// ending is a consumer at whose first pull the context ends.
type ending struct {
	jetstream.Consumer
	end   context.CancelFunc
	pulls int
}

func (e *ending) Fetch(n int, o ...jetstream.FetchOpt) (jetstream.MessageBatch, error) {
	defer e.end()
	e.pulls++
	return e.Consumer.Fetch(n, o...)
}

// A Next whose context has ended does not begin to wait for a message, which
// nobody would run.
func TestNext_ContextEnded_DoesNotWait(t *testing.T) {
	b := open(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	e := &ending{Consumer: b.consumer, end: cancel}
	s, err := semelnats.New(b.js, e, &b.opt)
	if err != nil {
		t.Fatal(err)
	}
	if ds, err := s.Next(ctx, 1); len(ds) != 0 || e.pulls != 1 {
		t.Errorf("%d messages, %v, in %d pulls, want one", len(ds), err, e.pulls)
	}
}

// silent is a consumer about which the server gives no information.
type silent struct {
	jetstream.Consumer
	asked int
}

func (s *silent) Info(context.Context) (*jetstream.ConsumerInfo, error) {
	s.asked++
	return nil, errors.New("no answer")
}

// Next asks now and then whether the consumer was changed. Without an answer it must not wait
// for one each time.
func TestNext_NoAnswerAboutConsumer_AsksNowAndThen(t *testing.T) {
	t.Parallel()
	b := open(t, nil)
	b.opt.PollWait = 10 * time.Millisecond
	c := &silent{Consumer: b.consumer}
	s, err := semelnats.New(b.js, c, &b.opt)
	if err != nil {
		t.Fatal(err)
	}
	next := func() {
		if _, err := s.Next(t.Context(), 1); err != nil {
			t.Error(err)
		}
	}
	for c.asked == 0 && !t.Failed() {
		next()
	}
	for range 20 {
		next()
	}
	if c.asked > 2 {
		t.Errorf("it asked %d times in 20 pulls", c.asked)
	}
}

// While the client reconnects, Next returns an error. Pulls would pile up in
// its buffer, and nobody would read their answers.
func TestNext_NotConnected_SaysSo(t *testing.T) {
	srv, err := start(storeDir(t))
	if err != nil {
		t.Fatal(err)
	}
	nc, err := nats.Connect(srv.ClientURL(), nats.MaxReconnects(-1))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "in", Subjects: []string{"in"}}); err != nil {
		t.Fatal(err)
	}
	c, err := js.CreateConsumer(t.Context(), "in", jetstream.ConsumerConfig{Durable: "group", AckPolicy: jetstream.AckExplicitPolicy, MaxDeliver: -1})
	if err != nil {
		t.Fatal(err)
	}
	s, err := semelnats.New(js, c, &semelnats.Options{PollWait: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	srv.Shutdown()
	srv.WaitForShutdown()
	until(t, "the loss noticed", func() bool { return !nc.IsConnected() })
	if _, err := s.Next(t.Context(), 1); err == nil || errors.Is(err, driver.ErrClosed) {
		t.Errorf("Next: %v, want an error that passes", err)
	}
	nc.Close()
	if _, err := s.Next(t.Context(), 1); !errors.Is(err, driver.ErrClosed) {
		t.Errorf("Next of a connection that was closed: %v", err)
	}
}

// The consumer may have been changed since New saw it.
func TestServe_ConsumerChanged_IsRefused(t *testing.T) {
	b := open(t, nil)
	s := b.Connect(t)
	cfg := b.consumer.CachedInfo().Config
	cfg.MaxDeliver = 5
	if _, err := b.js.UpdateConsumer(t.Context(), b.name, cfg); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Info(t.Context()); err == nil || !strings.Contains(err.Error(), "MaxDeliver") {
		t.Errorf("Info: %v", err)
	}
}

// A producer sends a message whose headers look like the server's notice that the consumer
// was deleted. The client takes it for one, so only the server can say that it is none.
func TestNext_MessageLooksLikeANotice_ServeGoesOn(t *testing.T) {
	t.Parallel()
	b := open(t, nil)
	m := nats.NewMsg(b.name + ".in.x")
	m.Header.Set("Status", "409")
	m.Header.Set("Description", "Consumer Deleted")
	if _, err := b.js.PublishMsg(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 100)
	ran := make(chan struct{}, 1)
	c := consumer(t, func(context.Context, *semel.Execution, *consume.Message) error {
		ran <- struct{}{}
		return nil
	}, &consume.Options{Observe: func(_ context.Context, e consume.Event) {
		if e.Kind == consume.EventReceiveFailed {
			failed <- e.Err
		}
	}})
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { ended <- c.Serve(ctx, b.Connect(t)) }()
	defer func() {
		cancel()
		<-ended
	}()
	for range 2 { // at each delivery
		select {
		case err := <-failed:
			if errors.Is(err, driver.ErrClosed) || !strings.Contains(err.Error(), "nats stream rmm "+b.name) {
				t.Fatalf("got %v, want an error that names the way out", err)
			}
		case err := <-ended:
			ended <- err
			t.Fatalf("Serve ended: %v", err)
		}
	}
	b.Publish(t, keyed("k"))
	select {
	case <-ran:
	case err := <-ended:
		ended <- err
		t.Fatalf("Serve ended: %v", err)
	}
}
