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

// stormNode is a server with Guards of its own, over the store that all share.
type stormNode struct {
	s      *storm
	srv    *httptest.Server
	plain  *http.Client
	resend *http.Client // with the client transport
	fault  *storetest.Fault
	dead   atomic.Bool
	// How many hold it so that the store does not answer at all, or not to
	// renewals, or not to settlements.
	down, stale, mute atomic.Int64
}

func (s *storm) start(http2 bool) {
	n := &stormNode{s: s}
	n.fault = storetest.NewFault(s.store, n.fate)
	mux := http.NewServeMux()
	for policy := range semel.Park + 1 {
		g := newGuard(s.t, &stormStore{n.fault, s}, &semel.Options{
			OnDoubt: policy, Lease: stormLease, SettleTimeout: 300 * time.Millisecond, MaxOutcome: 12 << 10,
		})
		for i := range stormForms {
			if f := &stormForms[i]; f.policy == policy {
				mux.Handle(f.path, s.door(g, f))
			}
		}
	}
	n.srv = httptest.NewUnstartedServer(mux)
	n.srv.Config.ErrorLog = quiet
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

// door protects the handler of a route.
func (s *storm) door(g *semel.Guard, f *stormForm) http.Handler {
	o := &semelhttp.Options{
		Methods: []string{f.method}, MaxResponse: 16 << 10, TempDir: s.dir, Wait: f.wait, Detach: f.detach, HoldFlush: f.hold,
	}
	if f.path == "/accept" {
		h, err := semelhttp.Accept(g, byAccount, func(w http.ResponseWriter, r *http.Request, t semel.Ticket) { s.accept(g, w, r, t) }, payments(o))
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

// kill ends the server as a crash does for all but its handlers, which do not
// know of it yet, and reach the store no more.
func (n *stormNode) kill() {
	n.dead.Store(true)
	n.srv.CloseClientConnections()
	n.srv.Close()
}

// shutdown ends the server as it should be done, but with little patience.
func (n *stormNode) shutdown() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	_ = n.srv.Config.Shutdown(ctx) // of those that take longer the connections break
	n.srv.CloseClientConnections()
	n.srv.Close()
}

// hold has the store be down, stale or mute for a while.
func (n *stormNode) hold(what *atomic.Int64, d time.Duration) {
	what.Add(1)
	n.s.left.Go(func() {
		<-time.After(d)
		what.Add(-1)
	})
}

// fate is what becomes of one call of the store.
func (n *stormNode) fate(op storetest.Op, _ int) storetest.Mode {
	switch {
	case n.dead.Load(), n.down.Load() > 0, n.stale.Load() > 0 && op == storetest.OpRenew, n.mute.Load() > 0 && op == storetest.OpSettle:
		return storetest.Before
	case n.s.calm.Load() || !n.s.oneIn(12):
		return storetest.None
	}
	return [...]storetest.Mode{storetest.Before, storetest.LostReply, storetest.Twice, storetest.Late, storetest.Stall}[n.s.upTo(5)]
}

// stormStore is a slow store.
type stormStore struct {
	store.Store
	s *storm
}

// Unwrap is for store.As.
func (f *stormStore) Unwrap() store.Store { return f.Store }

func (f *stormStore) slow() {
	if !f.s.calm.Load() && f.s.oneIn(6) {
		<-time.After(time.Duration(f.s.upTo(15)) * time.Millisecond)
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
