package failover

import (
	"context"
	"net"
	"sync"
	"testing"
)

// link is a network connection between clients and one server, which can be cut.
type link struct {
	listener net.Listener

	mu     sync.Mutex
	thawed sync.Cond
	to     string // the server's address; empty: connections are refused
	frozen bool   // data stays where it is
	conns  map[*net.TCPConn]bool
}

func newLink(t *testing.T, to string) *link {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &link{listener: listener, to: to, conns: map[*net.TCPConn]bool{}}
	l.thawed.L = &l.mu
	t.Cleanup(func() {
		_ = listener.Close()
		l.connect("")
	})
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go l.carry(conn.(*net.TCPConn))
		}
	}()
	return l
}

func (l *link) port() int { return l.listener.Addr().(*net.TCPAddr).Port }

// connect resets all connections. New ones go to an address.
func (l *link) connect(to string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.to, l.frozen = to, false
	l.resetLocked()
}

// reset resets all connections.
func (l *link) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.resetLocked()
}

func (l *link) resetLocked() {
	for conn := range l.conns {
		_ = conn.SetLinger(0)
		_ = conn.Close()
	}
	clear(l.conns)
	l.thawed.Broadcast()
}

// freeze holds all data from now on.
func (l *link) freeze() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.frozen = true
}

func (l *link) carry(client *net.TCPConn) {
	l.mu.Lock()
	to := l.to
	l.mu.Unlock()
	conn, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", to)
	if err != nil {
		_ = client.Close()
		return
	}
	server := conn.(*net.TCPConn)
	l.mu.Lock()
	if l.to != to {
		l.mu.Unlock()
		_, _ = client.Close(), server.Close()
		return
	}
	l.conns[client], l.conns[server] = true, true
	l.mu.Unlock()
	go l.pump(server, client)
	l.pump(client, server)
}

func (l *link) pump(to, from *net.TCPConn) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil || !l.passes(from) {
			break
		}
		if _, err := to.Write(buf[:n]); err != nil {
			break
		}
	}
	_, _ = to.Close(), from.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, to)
	delete(l.conns, from)
}

// passes waits while the link is frozen. It reports false if the connection was reset.
func (l *link) passes(conn *net.TCPConn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.frozen && l.conns[conn] {
		l.thawed.Wait()
	}
	return l.conns[conn]
}
