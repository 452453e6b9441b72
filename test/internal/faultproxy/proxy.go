package faultproxy

import (
	"context"
	"fmt"
	"net"
	"sync"
)

// Proxy listens on a port of its own and forwards to one address. Safe for
// concurrent use.
type Proxy struct {
	to   string
	plan Plan
	ln   net.Listener

	ctx  context.Context //nolint:containedctx // it ends with Close, and with it all that waits
	stop context.CancelFunc
	all  sync.WaitGroup

	mu     sync.Mutex
	n      int
	struck [kinds]int
	conns  map[*net.TCPConn]bool // nil: closed
}

// New listens on the loopback, and forwards to an address such as
// "127.0.0.1:5432". A nil plan lets everything pass. Close it.
func New(to string, plan Plan) (*Proxy, error) {
	ctx, stop := context.WithCancel(context.Background())
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		stop()
		return nil, fmt.Errorf("faultproxy: %w", err)
	}
	if plan == nil {
		plan = func(int) Fault { return Fault{} }
	}
	p := &Proxy{to: to, plan: plan, ln: ln, ctx: ctx, stop: stop, conns: map[*net.TCPConn]bool{}}
	p.all.Go(p.accept)
	return p, nil
}

// Addr is where clients connect.
func (p *Proxy) Addr() string { return p.ln.Addr().String() }

// Conns is how many connections there were.
func (p *Proxy) Conns() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.n
}

// Count is how often a fault of a kind has struck: a connection that ended
// before its After does not count. None counts the connections without one.
func (p *Proxy) Count(k Kind) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.struck[k]
}

// Close ends all connections, and returns when nothing runs any more.
// Harmless when repeated.
func (p *Proxy) Close() {
	p.stop()
	_ = p.ln.Close() // closed is what it shall be
	p.mu.Lock()
	for c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
	p.mu.Unlock()
	p.all.Wait()
}

func (p *Proxy) accept() {
	for {
		c, err := p.ln.Accept()
		if err != nil {
			return // closed
		}
		client := c.(*net.TCPConn)
		if !p.hold(client) {
			return
		}
		p.mu.Lock()
		p.n++
		n := p.n
		p.mu.Unlock()
		p.all.Go(func() {
			defer p.drop(client)
			p.serve(client, p.plan(n))
		})
	}
}

// hold keeps a connection for Close. It reports false if that has come, and
// the connection is closed.
func (p *Proxy) hold(c *net.TCPConn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conns == nil {
		_ = c.Close()
		return false
	}
	p.conns[c] = true
	return true
}

func (p *Proxy) drop(c *net.TCPConn) {
	p.mu.Lock()
	delete(p.conns, c)
	p.mu.Unlock()
	_ = c.Close()
}

func (p *Proxy) strike(k Kind) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.struck[k]++
}

// serve forwards one connection until both sides have ended, or its fault has.
func (p *Proxy) serve(client *net.TCPConn, f Fault) {
	if f.Kind == Refuse {
		turnAway(client, func() { p.strike(Refuse) })
		return
	}
	if f.Kind == None {
		p.strike(None)
	}
	c, err := new(net.Dialer).DialContext(p.ctx, "tcp", p.to)
	if err != nil {
		turnAway(client, func() {})
		return
	}
	server := c.(*net.TCPConn)
	if !p.hold(server) {
		return
	}
	defer p.drop(server)
	l := &link{p: p, fault: f, client: client, server: server, cut: make(chan struct{})}
	var both sync.WaitGroup
	both.Go(l.requests)
	both.Go(l.replies)
	both.Wait()
}

// turnAway resets a connection as soon as the client has something to lose,
// and calls lost before.
func turnAway(client *net.TCPConn, lost func()) {
	if _, err := client.Read(make([]byte, 1)); err == nil {
		lost()
	}
	reset(client)
}

// reset ends a connection without the goodbye that would tell the other side
// that everything has arrived.
func reset(c *net.TCPConn) {
	_ = c.SetLinger(0)
	_ = c.Close()
}
