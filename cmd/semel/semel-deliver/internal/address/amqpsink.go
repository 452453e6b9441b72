package address

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/semel-go/semel/consume/semelamqp"
	"github.com/semel-go/semel/outbox"
)

// parseAMQPSink reads amqp://USER:PASSWORD@HOST/VHOST.
func parseAMQPSink(a *address, _ *SinkOptions) (*Sink, error) {
	exchange := a.take("exchange")
	address, config, err := a.amqpClient("semel-outbox")
	if err != nil {
		return nil, err
	}
	if _, err := amqp.ParseURI(address); err != nil {
		return nil, errors.New("cannot be read; write amqp://USER:PASSWORD@HOST:5672/VHOST, with special characters as %XX")
	}
	return &Sink{open: func(ctx context.Context) (outbox.Sink, func() error, error) {
		if err := tryAMQP(ctx, address, config, exchange); err != nil {
			return nil, nil, err
		}
		s, err := semelamqp.NewSink(address, &semelamqp.SinkOptions{Exchange: exchange, Config: config})
		if err != nil {
			return nil, nil, err
		}
		return s, s.Close, nil
	}}, nil
}

// tryAMQP connects once, and looks whether the exchange exists.
func tryAMQP(ctx context.Context, address string, config amqp.Config, exchange string) error {
	config.Dial = func(network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err == nil {
			err = conn.SetDeadline(time.Now().Add(openTime)) // of the handshake; the client sets its own later
		}
		return conn, err
	}
	conn, err := amqp.DialConfig(address, config)
	if err != nil {
		return fmt.Errorf("no connection: %w; see whether it runs with: rabbitmqctl await_startup, and check the user, the password, the vhost and tls", err)
	}
	defer func() { _ = conn.CloseDeadline(time.Now().Add(openTime)) }() // it was for the check only
	ch, err := conn.Channel()
	if err == nil && exchange != "" {
		if err = ch.ExchangeDeclarePassive(exchange, amqp.ExchangeTopic, true, false, false, false, nil); err != nil {
			return fmt.Errorf("exchange %q: %w; create it with: rabbitmqadmin declare exchange name=%s type=topic durable=true", exchange, err, exchange)
		}
	}
	return err
}
