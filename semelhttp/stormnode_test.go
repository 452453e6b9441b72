package semelhttp_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/semelhttp"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/storetest"
)

// stormNode is a server with its own Guards over the shared store.
type stormNode struct {
	s      *storm
	srv    *httptest.Server
	plain  *http.Client
	resend *http.Client // with the client transport
	fault  *storetest.Fault
	dead   atomic.Bool
	// The number of active faults: the store does not answer at all, or not to
	// renewals, or not to settlements.
	down, renewDown, settleDown atomic.Int64
}

func (s *storm) start(http2 bool) {
	n := &stormNode{s: s}
	n.fault = storetest.NewFault(s.store, n.behaviour)
	mux := http.NewServeMux()
	for policy := range semel.Park + 1 {
		g := newGuard(s.t, &stormStore{n.fault, s}, &semel.Options{
			OnDoubt: policy, Lease: stormLease, SettleTimeout: 300 * time.Millisecond, MaxOutcome: 12 << 10,
		})
		for i := range stormForms {
			if f := &stormForms[i]; f.policy == policy {
				mux.Handle(f.path, s.protect(g, f))
			}
		}
	}
	n.srv = httptest.NewUnstartedServer(mux)
	n.srv.Config.ErrorLog = discardLog
	if n.srv.EnableHTTP2 = http2; http2 {
		n.srv.StartTLS()
	} else {
		n.srv.Start()
	}
	n.plain = n.srv.Client()
	n.plain.Transport.(*http.Transport).ExpectContinueTimeout = 20 * time.Millisecond //nolint:forcetypeassert // it is
	n.plain.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	t, err := semelhttp.NewTransport(n.plain.Transport, &semelhttp.TransportOptions{Backoff: 3 * time.Millisecond, MaxRetryAfter: 300 * time.Millisecond})
	if err != nil {
		s.t.Fatal(err)
	}
	n.resend = &http.Client{Transport: t, CheckRedirect: n.plain.CheckRedirect}
	s.mu.Lock()
	s.nodes = append(s.nodes, n)
	s.mu.Unlock()
}

// protect makes the protected handler of a route.
func (s *storm) protect(g *semel.Guard, f *stormForm) http.Handler {
	o := &semelhttp.Options{
		Methods: []string{f.method}, MaxResponse: 16 << 10, TempDir: s.dir, Wait: f.wait, Detach: f.detach, HoldFlush: f.holdFlush,
	}
	if f.path == "/accept" {
		h, err := semelhttp.Accept(g, byAccount, func(w http.ResponseWriter, r *http.Request, t semel.Ticket) { s.acceptWork(g, w, r, t) }, o)
		if err != nil {
			s.t.Fatal(err)
		}
		return h
	}
	once, err := semelhttp.Middleware(g, byHeader, o)
	if err != nil {
		s.t.Fatal(err)
	}
	return once(http.HandlerFunc(s.handle))
}

// kill ends the server like a crash. Its handlers go on, but cannot reach the store.
func (n *stormNode) kill() {
	n.dead.Store(true)
	n.srv.CloseClientConnections()
	n.srv.Close()
}

// shutdown ends the server gracefully, with a short limit.
func (n *stormNode) shutdown() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	_ = n.srv.Config.Shutdown(ctx) // requests that take longer are cut off
	n.srv.CloseClientConnections()
	n.srv.Close()
}

// failFor keeps a fault active for a while.
func (n *stormNode) failFor(what *atomic.Int64, d time.Duration) {
	what.Add(1)
	n.s.background.Go(func() {
		<-time.After(d)
		what.Add(-1)
	})
}

// behaviour chooses the fault of one store call.
func (n *stormNode) behaviour(op storetest.Op, _ int) storetest.Mode {
	switch {
	case n.dead.Load(), n.down.Load() > 0, n.renewDown.Load() > 0 && op == storetest.OpRenew, n.settleDown.Load() > 0 && op == storetest.OpSettle:
		return storetest.Before
	case n.s.faultsOff.Load() || !n.s.oneIn(12):
		return storetest.None
	}
	return [...]storetest.Mode{storetest.Before, storetest.LostReply, storetest.Twice, storetest.Late, storetest.Stall}[n.s.randN(5)]
}

// stormStore delays some calls of a store.
type stormStore struct {
	store.Store
	s *storm
}

// Unwrap implements the interface that store.As uses.
func (f *stormStore) Unwrap() store.Store { return f.Store }

func (f *stormStore) slow() {
	if !f.s.faultsOff.Load() && f.s.oneIn(6) {
		<-time.After(time.Duration(f.s.randN(15)) * time.Millisecond)
	}
}

func (f *stormStore) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
	f.slow()
	defer f.slow()
	return f.Store.Claim(ctx, p)
}

func (f *stormStore) Swap(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
	f.slow()
	defer f.slow()
	return f.Store.Swap(ctx, seen, p)
}

func (f *stormStore) Settle(ctx context.Context, l store.Lease, s store.Settlement) error {
	f.slow()
	defer f.slow()
	return f.Store.Settle(ctx, l, s)
}
