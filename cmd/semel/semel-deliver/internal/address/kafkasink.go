package address

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/consume/semelkafka"
	"github.com/semel-go/semel/outbox"
)

// recordTime is how long the client tries to send a record before the publisher reports
// a failed attempt.
const recordTime = 30 * time.Second

// parseKafkaSink reads kafka://HOST:PORT,….
func parseKafkaSink(a *address, _ *SinkOptions) (*Sink, error) {
	if len(a.path) > 0 {
		return nil, errors.New("names a topic, but messages name their own; end the address after the hosts, and rename topics by --topic OLD=NEW")
	}
	opts, err := a.kafkaClient()
	if err != nil {
		return nil, err
	}
	opts = append(opts, kgo.ClientID("semel-outbox"), kgo.ProducerLinger(0), kgo.RecordDeliveryTimeout(recordTime), kgo.AllowIdempotentProduceCancellation())
	return &Sink{open: func(ctx context.Context) (outbox.Sink, func() error, error) {
		client, err := kgo.NewClient(opts...)
		if err != nil {
			return nil, nil, err
		}
		sink, err := semelkafka.NewSink(client)
		if err == nil {
			if err = client.Ping(ctx); err != nil {
				err = fmt.Errorf("no connection: %w; see whether it answers with: kcat -b %s -L, and check the user, the password, sasl and tls", err, strings.Join(a.hosts, ","))
			}
		}
		if err != nil {
			client.Close()
			return nil, nil, err
		}
		return sink, func() error { client.Close(); return nil }, nil
	}}, nil
}
