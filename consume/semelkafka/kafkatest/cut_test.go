package kafkatest

import (
	"bytes"
	"io"
	"net"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/store/pgstore"
)

// cutter stands between a pool and PostgreSQL, and cuts the connection when a
// request has a certain text: before it goes on, or before its answer does.
type cutter struct {
	to    string
	text  atomic.Pointer[string]
	after bool // the request goes on, the answer does not
	// silent keeps both sides of the connection open instead, and passes nothing any more,
	// as a network does that loses all packets.
	silent bool
	cuts   atomic.Int64
	ended  <-chan struct{} // closed at the end of the test
}

// behindCutter gives a bank's pool a cutter. The store's own connections have
// none.
func (b *bank) behindCutter(t testing.TB, after bool) (*bank, *cutter) {
	t.Helper()
	u, err := url.Parse(b.url)
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{to: u.Host, after: after, ended: t.Context().Done()}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go c.carry(client)
		}
	}()
	u.Host = l.Addr().String()
	u.RawQuery = "sslmode=disable&default_query_exec_mode=exec" // so that each request has its text
	pool, err := pgxpool.New(t.Context(), u.String())
	if err != nil {
		t.Fatal(err)
	}
	st, err := pgstore.New(t.Context(), pool, &pgstore.Options{Schema: b.schema, Connections: 4, MaxIdleTx: idleTx, StoreTimeout: b.limit})
	if err != nil {
		t.Fatal(err)
	}
	through := &bank{url: b.url, schema: b.schema, pool: pool, st: st, limit: b.limit}
	t.Cleanup(through.close)
	return through, c
}

func (c *cutter) carry(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", c.to)
	if err != nil {
		return
	}
	defer server.Close()
	var cut atomic.Bool
	go func() {
		buf := make([]byte, 64<<10)
		for {
			n, err := server.Read(buf)
			if cut.Load() && c.silent {
				return
			}
			if err != nil || cut.Load() {
				_ = client.Close()
				return
			}
			if _, err := client.Write(buf[:n]); err != nil {
				return
			}
		}
	}()
	buf := make([]byte, 64<<10)
	for {
		n, err := client.Read(buf)
		if err != nil {
			return
		}
		if text := c.text.Load(); text != nil && bytes.Contains(buf[:n], []byte(*text)) {
			c.text.Store(nil)
			c.cuts.Add(1)
			cut.Store(true)
			if c.silent && c.after {
				_, _ = server.Write(buf[:n])
			}
			if c.silent {
				<-c.ended
			}
			if !c.after || c.silent {
				return
			}
		}
		if _, err := server.Write(buf[:n]); err != nil {
			return
		}
		if cut.Load() { // until the server has carried it out
			_, _ = io.Copy(io.Discard, client)
			return
		}
	}
}

func (c *cutter) at(text string) { c.text.Store(&text) }
