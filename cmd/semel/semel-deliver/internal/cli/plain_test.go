//go:build unix

package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/consume"
)

// plainConsumer posts each message, 64 at once, until ctx ends. Its arguments are --from,
// the address of a broker, --to, and the URL of the service.
func plainConsumer(ctx context.Context, args []string) error {
	from, err := url.Parse(args[1])
	if err != nil {
		return err
	}
	p := &poster{to: args[3], web: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}, places: make(chan struct{}, 64)}
	if from.Scheme == "nats" {
		return plainNATS(ctx, from, p)
	}
	return plainKafka(ctx, from, p)
}

// poster posts messages.
type poster struct {
	to     string
	web    *http.Client
	places chan struct{}
	all    sync.WaitGroup
}

// post begins a request. Done gets whether the service has taken the message.
func (p *poster) post(key string, body []byte, done func(ok bool)) {
	p.places <- struct{}{}
	p.all.Go(func() {
		defer func() { <-p.places }()
		done(p.send(key, body) == nil)
	})
}

func (p *poster) send(key string, body []byte) error {
	r, err := http.NewRequest(http.MethodPost, p.to, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", `"`+key+`"`)
	res, err := p.web.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return err
	}
	if res.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("the service answered %d", res.StatusCode)
	}
	return nil
}

// plainKafka commits after each poll.
func plainKafka(ctx context.Context, from *url.URL, p *poster) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(from.Host), kgo.ConsumerGroup("plain"), kgo.ConsumeTopics("orders"), kgo.DisableAutoCommit())
	if err != nil {
		return err
	}
	defer client.Close()
	for ctx.Err() == nil {
		client.PollRecords(ctx, 1000).EachRecord(func(r *kgo.Record) { p.post("", r.Value, func(bool) {}) })
		p.all.Wait()
		_ = client.CommitUncommittedOffsets(ctx)
	}
	return nil
}

// plainNATS acknowledges a message when the service has taken it.
func plainNATS(ctx context.Context, from *url.URL, p *poster) error {
	conn, err := nats.Connect(from.Host)
	if err != nil {
		return err
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	stream, durable, _ := strings.Cut(strings.Trim(from.Path, "/"), "/")
	c, err := js.Consumer(ctx, stream, durable)
	if err != nil {
		return err
	}
	consuming, err := c.Consume(func(m jetstream.Msg) {
		p.post(m.Headers().Get(consume.KeyHeader), m.Data(), func(ok bool) {
			if ok {
				_ = m.Ack() // without it, the broker delivers the message again
			} else {
				_ = m.Nak()
			}
		})
	}, jetstream.PullMaxMessages(64))
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "msg=delivering") // as semel deliver logs it
	<-ctx.Done()
	consuming.Stop()
	p.all.Wait()
	return nil
}
