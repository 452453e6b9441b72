package dboscompare

import (
	"context"
	"encoding/binary"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// wire is the way from this process to the server. It counts round trips, and makes each
// one longer.
type wire struct {
	delay time.Duration
	trips atomic.Int64
}

// pool makes a pool whose connections, and those of pools with a copy of its
// configuration, go over the wire.
func (w *wire) pool(t *testing.T, url string, connections int32) *pgxpool.Pool {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	cfg.MaxConns = connections
	dial := cfg.ConnConfig.DialFunc
	cfg.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &conn{Conn: c, wire: w}, nil
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// conn is a connection. The client writes once for each round trip, and the server ends
// each with the message ReadyForQuery.
type conn struct {
	net.Conn
	wire   *wire
	header []byte // of the message that is being read
	left   int    // bytes of its body
}

func (c *conn) Write(b []byte) (int, error) {
	if c.wire.delay > 0 {
		<-time.After(c.wire.delay)
	}
	return c.Conn.Write(b)
}

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	for rest := b[:n]; len(rest) > 0; {
		skip := min(c.left, len(rest))
		c.left, rest = c.left-skip, rest[skip:]
		take := min(5-len(c.header), len(rest))
		c.header, rest = append(c.header, rest[:take]...), rest[take:]
		if len(c.header) == 5 {
			if c.header[0] == 'Z' {
				c.wire.trips.Add(1)
			}
			c.left, c.header = int(binary.BigEndian.Uint32(c.header[1:]))-4, c.header[:0]
		}
	}
	return n, err
}
