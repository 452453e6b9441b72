package redisstore

import (
	"context"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"testing"
)

// proxy stands between a client and the server, and cuts connections as it is
// told: before a request goes on, after it and before its answer, or in the
// middle of the answer.
type proxy struct {
	addr   string
	to     string
	chance atomic.Uint64 // that the fate of an answer is a cut, in 2^-32
	cuts   [3]atomic.Int64
}

// The fates.
const (
	cutRequest = iota
	cutAnswer
	cutWithin
)

func newProxy(t *testing.T, to string) *proxy {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	p := &proxy{addr: l.Addr().String(), to: to}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go p.carry(client)
		}
	}()
	return p
}

func (p *proxy) carry(client net.Conn) {
	defer client.Close()
	server, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", p.to)
	if err != nil {
		return
	}
	defer server.Close()
	go p.requests(client, server)
	buf := make([]byte, 64<<10)
	for {
		n, err := server.Read(buf)
		if err != nil {
			return
		}
		switch {
		case p.hit(cutAnswer): // the server has done it, and nobody is told
			return
		case n > 1 && p.hit(cutWithin):
			_, _ = client.Write(buf[:1+rand.IntN(n-1)])
			return
		}
		if _, err := client.Write(buf[:n]); err != nil {
			return
		}
	}
}

func (p *proxy) requests(client, server net.Conn) {
	defer func() { _ = server.(*net.TCPConn).CloseWrite() }()
	buf := make([]byte, 64<<10)
	for {
		n, err := client.Read(buf)
		if err != nil {
			return
		}
		if p.hit(cutRequest) {
			_, _ = server.Write(buf[:rand.IntN(n)]) // a part of it
			_ = client.Close()
			return
		}
		if _, err := server.Write(buf[:n]); err != nil {
			return
		}
	}
}

func (p *proxy) hit(fate int) bool {
	if uint64(rand.Uint32()) >= p.chance.Load() {
		return false
	}
	p.cuts[fate].Add(1)
	return true
}

// often sets how many of 1000 pieces meet each fate.
func (p *proxy) often(perMille uint64) { p.chance.Store(perMille << 32 / 1000) }
