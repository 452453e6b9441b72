package redisstore

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
)

// lateProxy stands between clients and the server. It holds requests back for
// longer than the client waits and delivers them all the same, and it delivers
// copies of requests later, on connections of their own.
type lateProxy struct {
	addr, to      string
	held, doubled atomic.Int64
	copies        sync.WaitGroup
}

func newLateProxy(t *testing.T, to string) *lateProxy {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &lateProxy{addr: l.Addr().String(), to: to}
	t.Cleanup(func() {
		_ = l.Close()
		p.copies.Wait()
	})
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

func (p *lateProxy) dial() (net.Conn, error) {
	return (&net.Dialer{}).DialContext(context.Background(), "tcp", p.to)
}

func (p *lateProxy) carry(client net.Conn) {
	defer client.Close()
	server, err := p.dial()
	if err != nil {
		return
	}
	go func() {
		defer client.Close()
		buf := make([]byte, 64<<10)
		for {
			n, err := server.Read(buf)
			if err != nil {
				return
			}
			_, _ = client.Write(buf[:n]) // the client may have given up; the server goes on
		}
	}()
	defer server.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := client.Read(buf)
		if err != nil {
			return
		}
		switch rand.IntN(20) {
		case 0:
			p.held.Add(1)
			<-time.After(rand.N(1200 * time.Millisecond))
		case 1, 2:
			p.doubled.Add(1)
			again := slices.Clone(buf[:n])
			p.copies.Go(func() { p.deliver(again) })
		}
		if _, err := server.Write(buf[:n]); err != nil {
			return
		}
	}
}

// deliver sends a copy of a request after a while.
func (p *lateProxy) deliver(request []byte) {
	<-time.After(rand.N(3 * time.Second))
	server, err := p.dial()
	if err != nil {
		return
	}
	defer server.Close()
	_ = server.SetDeadline(time.Now().Add(time.Second))
	if _, err := server.Write(request); err == nil {
		_, _ = server.Read(make([]byte, 1))
	}
}

// witness counts the claims that too few acknowledged, and records until when claims hold.
type witness struct {
	store.Store
	w *lateWorld
}

func (s witness) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
	f, err := s.Store.Claim(ctx, p)
	if errors.Is(err, ErrNotAcknowledged) {
		s.w.refused.Add(1)
	}
	s.see(&f, err)
	return f, err
}

func (s witness) Swap(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
	f, err := s.Store.Swap(ctx, seen, p)
	s.see(&f, err)
	return f, err
}

func (s witness) see(f *store.Found, err error) {
	if err == nil && f.Won && f.Record.State == store.Processing {
		s.w.holds(f.Record.Key, f.Record.Fence, f.Record.Until)
		s.w.granted.Add(1)
	}
}

func (s witness) Renew(ctx context.Context, held []store.Lease, d time.Duration) ([]error, error) {
	end := time.Now().Add(d).Round(0)
	errs, err := s.Store.Renew(ctx, held, d)
	for i := range errs {
		if err == nil && errs[i] == nil {
			s.w.holds(held[i].Key, held[i].Fence, end)
		}
	}
	return errs, err
}
