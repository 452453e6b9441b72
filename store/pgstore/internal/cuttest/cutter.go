// Package cuttest cuts the connections of tests.
package cuttest

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"slices"
	"sync/atomic"
	"testing"
)

// Cutter stands between a client and the server. It cuts the connection when a
// request has a certain text: before it passes the request on, or before it passes
// the answer back.
type Cutter struct {
	to    string
	text  atomic.Pointer[string]
	after bool            // the request goes on, the answer does not
	ended <-chan struct{} // closed at the end of the test
	// Until is a text in the answer at which the connection is cut; empty: the first
	// answer. Set it before At.
	Until string
	// Last is the end of the answer that the client gets before the connection is cut,
	// after the answer up to Until; nil: the client gets no answer. Set it before At.
	Last []byte
	// Freeze keeps the connection open instead, and passes nothing any more in either
	// direction, not even its end, for this request and each later one with the text. Set
	// it before At.
	Freeze bool
	// AtOnce: the client is cut off when the server has got the request, and a request to
	// cancel it is lost, so that the server goes on. Set it before At.
	AtOnce bool
	// Cuts counts the cuts.
	Cuts atomic.Int64

	noCancel atomic.Bool // a request to cancel is lost
}

// New starts a Cutter before the server at address, and returns its own URL. If after,
// the server gets the request, and the client gets no answer.
func New(t *testing.T, address string, after bool) (*Cutter, string) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	c := &Cutter{to: u.Host, after: after, ended: t.Context().Done()}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
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
	return c, u.String()
}

func (c *Cutter) carry(client net.Conn) {
	defer func() { _ = client.Close() }()
	server, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", c.to)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	var cut, frozen atomic.Bool
	answered := make(chan struct{})
	go func() {
		var answer []byte
		defer close(answered)
		buf := make([]byte, 64<<10)
		for {
			n, err := server.Read(buf)
			if frozen.Load() {
				return
			}
			if cut.Load() {
				answer = append(answer, buf[:n]...)
				before, _, found := bytes.Cut(answer, []byte(c.Until))
				if found && c.Last != nil {
					_, _ = client.Write(slices.Concat(before, []byte(c.Until), c.Last))
				}
				if err == nil && !found {
					continue
				}
				err = io.EOF
			}
			if err != nil {
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
			frozen.Store(c.Freeze)
			c.Cuts.Add(1)
			if c.Freeze {
				<-c.ended
				return
			}
			c.text.Store(nil)
			c.noCancel.Store(c.AtOnce)
			cut.Store(true)
			if !c.after {
				_, _ = client.Write(c.Last)
				return
			}
		}
		if c.noCancel.Load() && isCancel(buf[:n]) {
			return
		}
		if _, err := server.Write(buf[:n]); err != nil {
			return
		}
		if cut.Load() && c.noCancel.Load() {
			_ = client.Close()
			<-answered
			return
		}
		if cut.Load() { // until the server has carried it out
			_, _ = io.Copy(server, client)
			return
		}
	}
}

// isCancel reports whether a client asks to cancel what another connection does.
func isCancel(request []byte) bool {
	const code = 80877102
	return len(request) == 16 && binary.BigEndian.Uint32(request[4:]) == code
}

// At sets the text at which the next request is cut.
func (c *Cutter) At(text string) { c.text.Store(&text) }
