package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/admin"
	"github.com/semel-go/semel/cmd/semel/internal/input"
)

// Limits for the connections of clients.
const (
	headerTimeout = 5 * time.Second
	// idleTimeout is longer than the 60 s for which nginx and AWS keep idle connections. A
	// gateway that keeps them for longer than the proxy can send a request on a connection
	// that the proxy closes at the same time, and then answers 502.
	idleTimeout = 75 * time.Second
	maxHeader   = 16 << 10 // bytes; net/http adds 4 KiB, and answers 431 to more
	// settleTime is the largest part of the drain time that is left to requests
	// that a stop gives up, to give their claims back. It is a quarter of the
	// drain time, but not less than leastSettleTime.
	settleTime      = 2 * time.Second
	leastSettleTime = 100 * time.Millisecond
	// lateSettleTime is how much longer they may take if the store is slow. They have
	// leastSettleTime and lateSettleTime even if the process stood still until after the
	// end of the drain time.
	lateSettleTime = 500 * time.Millisecond
)

// count counts the requests in flight.
func (p *Proxy) count(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.inFlight.Add(1)
		defer p.inFlight.Add(-1)
		next.ServeHTTP(w, r)
	})
}

// Serve serves until ctx ends. It then reports that it is not ready, accepts no
// more connections, waits for the requests in flight, and closes the listeners.
// adminListener may be nil. Serve returns an error if a listener failed, or if requests
// were still in flight at the end of the drain time. Call it once.
func (p *Proxy) Serve(ctx context.Context, clients, adminListener net.Listener) error {
	work, stopWork := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWork()
	ended := make(chan error, 3)
	worked := make(chan struct{})
	go func() {
		defer close(worked)
		if err := p.Run(work); err != nil {
			ended <- err
		}
	}()
	serve := func(s *http.Server, l net.Listener) {
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			ended <- err
		}
	}
	giveUp, gaveUp := context.WithCancel(work)
	defer gaveUp()
	clientServer := p.server(p.count(p.Handler()))
	clientServer.BaseContext = func(net.Listener) context.Context { return giveUp }
	go serve(clientServer, clients)
	var adminServer *http.Server
	if adminListener != nil {
		adminServer = admin.Server(p.Admin(), p.Log)
		go serve(adminServer, adminListener)
	}

	var err error
	select {
	case <-ctx.Done():
	case err = <-ended:
	}
	close(p.draining)
	p.Log.Info("stopping", "in_flight", p.inFlight.Load(), "limit", p.Config.Drain)
	err = errors.Join(err, p.drain(clientServer, func() {
		gaveUp()
		p.up.Stop()
	}))
	if p.observer != nil {
		p.observer.close()
	}
	if adminServer != nil {
		_ = adminServer.Close() // a prober asks again
	}
	stopWork()
	<-worked
	return err
}

func (p *Proxy) server(h http.Handler) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		ErrorLog: admin.ErrorLog(p.Log),
	}
}

// drain waits for the requests in flight. Near the end of the drain time it gives up
// the remaining ones. Each then gives its claim back, released or in doubt by its policy. A request of which nothing was sent to the upstream had no effect.
func (p *Proxy) drain(s *http.Server, giveUp func()) error {
	end := time.Now().Add(p.Config.Drain)
	ctx, cancel := context.WithDeadline(context.Background(), end.Add(-max(leastSettleTime, min(settleTime, p.Config.Drain/4))))
	defer cancel()
	if s.Shutdown(ctx) == nil {
		return nil
	}
	left := p.inFlight.Load()
	giveUp()
	// If the host stood still, the drain time may be over by now. The requests have had no
	// time to give their claims back, so their time begins here.
	ctx, cancel = context.WithTimeout(context.Background(), max(time.Until(end), leastSettleTime)+lateSettleTime)
	defer cancel()
	if s.Shutdown(ctx) != nil { // it has closed the listeners
		_ = s.Close()
	}
	late := p.inFlight.Load()
	if left == 0 && late == 0 {
		return nil // only connections without a request were open
	}
	err := fmt.Errorf("drain: %s still in flight after %v given up; released or in doubt, as the policy says", input.Count(left, "request"), p.Config.Drain)
	if late > 0 {
		err = fmt.Errorf("%w; %d did not settle in time, and are in doubt once their leases lapse", err, late)
	}
	return err
}
