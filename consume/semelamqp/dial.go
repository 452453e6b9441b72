package semelamqp

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"runtime/debug"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

const (
	// connectTimeout is how long a connection may take to be made.
	connectTimeout = 30 * time.Second
	// writeTimeout is how long one write may wait for a broker that does not
	// read, as it does to publishers when its memory or disk runs out.
	writeTimeout = 10 * time.Second
	// closeTimeout is how long a broker has to answer the end of a connection.
	closeTimeout = 10 * time.Second
)

// dialer makes connections, and pauses after failures.
type dialer struct {
	url    string
	config amqp.Config

	mu       sync.Mutex
	failures int // since the last success
}

func (d *dialer) dial(ctx context.Context) (*amqp.Connection, error) {
	if err := d.pause(ctx); err != nil {
		return nil, err
	}
	conn, err := d.connect(ctx)
	if err != nil {
		d.ended(false)
		return nil, fmt.Errorf("semelamqp: no connection to the broker: %w", err)
	}
	return conn, nil
}

// ended notes the success or failure of a connection, or of its first use.
func (d *dialer) ended(succeeded bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failures++; succeeded {
		d.failures = 0
	}
}

// The longest random pause after the first failure, and after many.
const (
	firstPause = 100 * time.Millisecond
	lastPause  = 5 * time.Second
)

// pause waits for a random part of a limit that doubles with each failure, so
// that members do not reconnect all at once.
func (d *dialer) pause(ctx context.Context) error {
	d.mu.Lock()
	n := d.failures
	d.mu.Unlock()
	if n == 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(rand.N(min(firstPause<<min(n-1, 10), lastPause)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// connect makes a connection. It returns a panic of a function of Config, such as Dial, as an
// error, because on a goroutine of this package the panic would end the process.
func (d *dialer) connect(ctx context.Context) (conn *amqp.Connection, err error) {
	defer func() {
		if p := recover(); p != nil {
			slog.ErrorContext(ctx, "semelamqp: a function of Config panicked", "panic", p, "stack", string(debug.Stack()))
			conn, err = nil, fmt.Errorf("a function of Config panicked: %v", p)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	c := d.config
	c.Properties, c.TLSClientConfig = maps.Clone(c.Properties), c.TLSClientConfig.Clone() // because the library writes into them
	base := c.Dial
	if base == nil {
		base = func(network, addr string) (net.Conn, error) { return new(net.Dialer).DialContext(ctx, network, addr) }
	}
	stop := func() bool { return true }
	c.Dial = func(network, addr string) (net.Conn, error) {
		conn, err := base(network, addr)
		if err != nil {
			return nil, err
		}
		stop = context.AfterFunc(ctx, func() { _ = conn.Close() }) // so that the handshake fails
		return limited{conn}, nil
	}
	conn, err = amqp.DialConfig(d.url, c)
	if !stop() && err == nil { // it was closed during the handshake
		err = ctx.Err()
	}
	if err != nil {
		if conn != nil {
			_ = conn.CloseDeadline(time.Now()) // it is of no use
		}
		return nil, err
	}
	return conn, nil
}

// limited is a connection whose writes time out.
type limited struct{ net.Conn }

func (c limited) Write(b []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}
