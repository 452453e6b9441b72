package outage

import (
	"net"
	"sync/atomic"
	"testing"
)

// relay forwards connections until it is cut. Then it goes on to accept them, and
// forwards nothing in either direction, as a network does that loses all packets.
type relay struct {
	listener net.Listener
	to       string
	cut      atomic.Bool
	ended    chan struct{}
}

func newRelay(t *testing.T, to string) *relay {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{listener: l, to: to, ended: make(chan struct{})}
	t.Cleanup(func() {
		close(r.ended)
		_ = l.Close()
	})
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go r.carry(t, c)
		}
	}()
	return r
}

func (r *relay) addr() string { return r.listener.Addr().String() }

func (r *relay) carry(t *testing.T, client net.Conn) {
	defer client.Close()
	server, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", r.to)
	if err != nil {
		return
	}
	defer server.Close()
	go r.copy(client, server)
	r.copy(server, client)
}

func (r *relay) copy(to, from net.Conn) {
	defer to.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if r.cut.Load() {
			<-r.ended // not even the end of the connection is forwarded
			return
		}
		if err != nil {
			return
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}
