package address

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/semel-go/semel/consume/semelnats"
	"github.com/semel-go/semel/outbox"
)

// parseNATSSink reads nats://HOST:PORT,….
func parseNATSSink(a *address, _ *SinkOptions) (*Sink, error) {
	if len(a.path) > 0 {
		return nil, errors.New("names a stream or a subject, but messages name their own; end the address after the hosts, and rename topics by --topic OLD=NEW")
	}
	connect, err := a.natsClient("semel-outbox")
	if err != nil {
		return nil, err
	}
	return &Sink{open: func(ctx context.Context) (outbox.Sink, func() error, error) {
		conn, err := connect()
		if err != nil {
			return nil, nil, err
		}
		js, err := jetstream.New(conn)
		if err == nil {
			if _, aerr := js.AccountInfo(ctx); errors.Is(aerr, jetstream.ErrJetStreamNotEnabled) || errors.Is(aerr, jetstream.ErrJetStreamNotEnabledForAccount) {
				err = fmt.Errorf("%w; enable JetStream in the server, with: nats-server --jetstream", aerr)
			} // another error may be a missing permission that publishing does not need
		}
		if err != nil {
			conn.Close()
			return nil, nil, err
		}
		sink, err := semelnats.NewSink(js)
		return sink, func() error { conn.Close(); return nil }, err
	}}, nil
}
