package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Limits for the connections of clients.
const (
	headerTimeout = 5 * time.Second
	idleTimeout   = 60 * time.Second
	maxHeader     = 16 << 10
	// settleTime is how long requests that a stop cuts off may take to store
	// their outcome.
	settleTime = 2 * time.Second
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
// admin may be nil. Serve returns an error if a listener failed, or if requests
// were still in flight at the end of the drain time.
func (p *Proxy) Serve(ctx context.Context, clients, admin net.Listener) error {
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
	clientServer := p.server(p.count(p.Handler()))
	go serve(clientServer, clients)
	var adminServer *http.Server
	if admin != nil {
		adminServer = p.server(p.Admin())
		go serve(adminServer, admin)
	}

	var err error
	select {
	case <-ctx.Done():
	case err = <-ended:
	}
	p.draining.Store(true)
	p.Log.Info("stopping", "in_flight", p.inFlight.Load(), "limit", p.Config.Drain)
	err = errors.Join(err, p.drain(clientServer))
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
		ErrorLog: slog.NewLogLogger(p.Log.Handler(), slog.LevelDebug),
	}
}

// drain waits for the requests in flight.
func (p *Proxy) drain(s *http.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), p.Config.Drain)
	defer cancel()
	if s.Shutdown(ctx) == nil {
		return nil
	}
	left := p.inFlight.Load()
	_ = s.Close() // Shutdown has closed the listeners
	for end := time.Now().Add(settleTime); p.inFlight.Load() > 0 && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("drain: %d requests were still in flight after %v; they are in doubt once their leases lapse", left, p.Config.Drain)
}
