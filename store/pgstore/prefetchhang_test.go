package pgstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// hangingProxy stands between a pool and the server. From a connection that hangs
// nothing comes back any more, and nobody is told.
type hangingProxy struct {
	next, to atomic.Bool // the next connection that asks something is to hang; before its request goes on
	hung     atomic.Int64
}

// newHangingProxy listens, and is a URL for it.
func newHangingProxy(t *testing.T) (*hangingProxy, string) {
	t.Helper()
	u, err := url.Parse(pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	server := u.Host
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	h := &hangingProxy{}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go h.carry(t.Context(), client, server)
		}
	}()
	u.Host = l.Addr().String()
	return h, u.String()
}

// carry carries a connection. The server sees its end when the test ends: a
// network that is gone tells nobody.
func (h *hangingProxy) carry(ctx context.Context, client net.Conn, to string) {
	defer client.Close()
	server, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", to)
	if err != nil {
		return
	}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	var hangs atomic.Bool
	go func() {
		buf := make([]byte, 64<<10)
		for {
			n, err := server.Read(buf)
			if err == nil && hangs.Load() {
				continue
			}
			if err == nil {
				_, err = client.Write(buf[:n])
			}
			if err != nil {
				_ = client.Close()
				return
			}
		}
	}()
	buf := make([]byte, 64<<10)
	for {
		n, err := client.Read(buf)
		if err != nil {
			if !hangs.Load() {
				_ = server.Close()
			}
			return
		}
		if h.next.CompareAndSwap(true, false) {
			hangs.Store(true)
			h.hung.Add(1)
		}
		if hangs.Load() && !h.to.Load() {
			_, _ = io.Copy(io.Discard, client)
			return
		}
		if _, err := server.Write(buf[:n]); err != nil {
			return
		}
	}
}

// The connection of a look hangs: before the server has it, before its answer
// comes, or when it is to be rolled back. The batch is done all the same, and
// once, as soon as the server has given the keys back.
func TestPrefetch_Hangs_OnlyDelays(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ asked, came bool }{
		"its request is lost": {}, "its answer is lost": {asked: true}, "its end is lost": {came: true},
	} {
		t.Run(name, func(t *testing.T) {
			first := openNew(t, nil)
			h, through := newHangingProxy(t)
			app, err := pgxpool.New(t.Context(), through)
			if err != nil {
				t.Fatal(err)
			}
			defer app.Close()
			s, err := open(t.Context(), first.ownPool.Config(), app, &Options{Schema: first.options.Schema, MaxIdleTx: 2 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			p := newShop(t, s, nil)
			w, q := newWorker(p), p.a.Prefetcher()
			calls, second, third := poll("a", "b"), poll("c", "d"), poll("d", "e")
			n := q.Prefetch(t.Context(), calls)
			if !n.waitPrefetched() {
				t.Fatal("there was no look")
			}
			h.to.Store(c.asked)
			if !c.came { // the prefetch hangs, and the batch waits no longer for it
				p.a.prefetchTimeout = time.Second
			}
			h.next.Store(!c.came)
			var behind *PrefetchedBatch
			wantDone(t, n.Run(t.Context(), func(ctx context.Context, newCalls []*PendingCall) error {
				behind = q.Prefetch(t.Context(), second)
				if c.came {
					if !behind.waitPrefetched() {
						t.Error("there was no look ahead")
					}
				} else {
					waitFor(t, "it hangs", func() bool { return h.hung.Load() == 1 })
				}
				return w.rows(calls)(ctx, newCalls)
			}), false, false)
			if c.came {
				h.next.Store(true)
				behind.Drop()
				behind = q.Prefetch(t.Context(), second)
			}
			todo := []struct {
				n     *PrefetchedBatch
				calls []semel.Call
			}{{behind, second}, {q.Prefetch(t.Context(), third), third}}
			for _, b := range todo {
				ends := b.n.Run(t.Context(), w.rows(b.calls))
				waitFor(t, fmt.Sprint("the server has given the keys back of ", b.calls[0].Key), func() bool {
					for _, e := range ends {
						if e.Err != nil && !errors.Is(e.Err, semel.ErrInProgress) {
							t.Fatalf("it ended with %v", e.Err)
						}
					}
					if ends[0].Err == nil && ends[1].Err == nil {
						return true
					}
					ends = q.Prefetch(t.Context(), b.calls).Run(t.Context(), w.rows(b.calls))
					return false
				})
			}
			if h.hung.Load() != 1 {
				t.Errorf("%d connections hung", h.hung.Load())
			}
			p.want(t, "a", "b", "c", "d", "e")
		})
	}
}

// A handler of a prefetched batch commits the transaction itself, and the records of the
// batch with it. Others may have got their results, so the records stay as they are.
func TestPrefetch_HandlerCommits_RecordsStay(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), nil)
	keys := []string{"a", "b"}
	batch := p.a.Prefetcher().Prefetch(t.Context(), poll(keys...))
	if !batch.waitPrefetched() {
		t.Fatal("the batch was not prefetched: this test shows nothing")
	}
	ends := batch.Run(t.Context(), func(ctx context.Context, _ []*PendingCall) error {
		tx, _ := TxFrom(ctx)
		return tx.Conn().PgConn().Exec(ctx, "COMMIT").Close()
	})
	for i, e := range ends {
		if !errors.Is(e.Err, semel.ErrInDoubt) {
			t.Errorf("%s: %v; want ErrInDoubt", keys[i], e.Err)
		}
		if r, err := p.record(t, keys[i]); err != nil || r.State != store.Completed {
			t.Errorf("the record of %s is %v, %v; want completed", keys[i], r.State, err)
		}
	}
}
