package main

import (
	"context"
	"net/http"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/semelkafka"
	"github.com/semel-go/semel/store/redisstore"
)

// serve sends mails until ctx ends.
func serve(ctx context.Context, c *config) error {
	store, err := redisstore.Open(ctx, c.redis, nil)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }() // Serve has settled all messages
	// Outcomes are kept as long as the topic keeps records. A call that failed or was
	// interrupted runs again after Backoff: the policy semel.Retry, the default.
	guard, err := semel.New(store, &semel.Options{Retention: consume.DefaultRetention, Backoff: backoff})
	if err != nil {
		return err
	}
	source, err := semelkafka.New(group, []string{topic}, &semelkafka.Options{Client: []kgo.Opt{kgo.SeedBrokers(c.kafka)}})
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }() // Serve has settled all messages
	p := &provider{url: c.provider, client: &http.Client{Timeout: 10 * time.Second}}
	notifications, err := consume.New(guard, consume.Keyed("notifications", consume.FromHeader(consume.KeyHeader)), p.notify, &consume.Options{
		Concurrency: 16, Backoff: backoff,
	})
	if err != nil {
		return err
	}
	return notifications.Serve(ctx, source)
}

// backoff is the pause after the n-th failed attempt. Here it is short; the
// default, consume.Backoff, is for providers that are down for minutes.
func backoff(n int) time.Duration { return min(200*time.Millisecond<<min(n, 10), time.Minute) }
