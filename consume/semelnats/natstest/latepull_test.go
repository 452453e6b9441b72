package natstest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/semelnats"
)

// late is a consumer whose first pulls with a limit of time are over before the server comes
// to them, as on a slow machine: the limit is one nanosecond.
type late struct {
	jetstream.Consumer
	pulls int
}

func (l *late) Fetch(n int, o ...jetstream.FetchOpt) (jetstream.MessageBatch, error) {
	if l.pulls++; l.pulls <= 2 {
		o = []jetstream.FetchOpt{jetstream.FetchMaxWait(1)}
	}
	return l.Consumer.Fetch(n, o...)
}

// The server takes a message that it must deliver again from the front of its queue, finds
// that the only pull is over, and puts the message after the others. After an orderly stop
// the order of an order key must hold nevertheless.
func TestOrder_PullsAreOverBeforeServerComes_IsKept(t *testing.T) {
	t.Parallel()
	b := open(t, nil)
	var want []string
	for i := range 5 {
		m := keyed(fmt.Sprint("k", i))
		m.OrderKey = "lane"
		want = append(want, m.Headers[0].Value)
		b.Publish(t, m)
	}
	failed, ran := make(chan struct{}, 1), make(chan string, len(want))
	stopped := false
	h := func(_ context.Context, _ *semel.Execution, m *consume.Message) error {
		if !stopped {
			failed <- struct{}{}
			return semel.NoEffect(errors.New("not ready"))
		}
		ran <- m.Key
		return nil
	}
	c := consumer(t, h, &consume.Options{ // so few in flight that they need several pulls
		Concurrency: 1, InFlight: 2, Backoff: func(int) time.Duration { return time.Hour },
	})
	stop := serve(t, c, b.Connect(t))
	<-failed
	until(t, "all taken", func() bool {
		info, err := b.consumer.Info(t.Context())
		return err == nil && info.NumPending == 0
	})
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	stopped = true
	s, err := semelnats.New(b.js, &late{Consumer: b.consumer}, &b.opt)
	if err != nil {
		t.Fatal(err)
	}
	serve(t, c, s)
	var got []string
	for range want {
		select {
		case key := <-ran:
			got = append(got, key)
		case <-time.After(patience):
			t.Fatalf("only %v ran", got)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("they ran in the order %v", got)
	}
}
