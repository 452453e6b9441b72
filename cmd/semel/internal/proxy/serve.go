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

// Limits of what a client can make us hold.
const (
	headerTimeout = 5 * time.Second
	idleTimeout   = 60 * time.Second
	maxHeader     = 16 << 10
	// settleTime is how long requests that a stop has cut off may take to
	// store how they ended.
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

// Serve serves until ctx ends, and then stops: it turns not ready, accepts no
// more connections, and waits for the requests in flight. Admin may be nil. It
// closes the listeners. An error is what ended it early, or that requests
// were still running when the time for them was over.
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
	front := p.server(p.count(p.Handler()))
	go serve(front, clients)
	var side *http.Server
	if admin != nil {
		side = p.server(p.Admin())
		go serve(side, admin)
	}

	var err error
	select {
	case <-ctx.Done():
	case err = <-ended:
	}
	p.draining.Store(true)
	p.Log.Info("stopping", "in_flight", p.inFlight.Load(), "limit", p.Config.Drain)
	err = errors.Join(err, p.drain(front))
	if side != nil {
		_ = side.Close() // a prober that is cut off asks again
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
	_ = s.Close() // what it reports is what Shutdown did
	for end := time.Now().Add(settleTime); p.inFlight.Load() > 0 && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("drain: %d requests were still in flight after %v; what they did is in doubt until their leases lapse", left, p.Config.Drain)
}
