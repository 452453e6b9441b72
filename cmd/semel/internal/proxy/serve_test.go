package proxy_test

import (
	"context"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
)

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestNothingIsLeftRunningAfterAStop(t *testing.T) {
	s := play(t, created(), "scope: single\nsweep-every: 100ms\non-doubt: park\nreconcile-url: http://127.0.0.1:1\nreconcile-every: 100ms\n")
	before := runtime.NumGoroutine()
	clients, admin := listen(t), listen(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.proxy.Serve(ctx, clients, admin) }()
	if r := fetch(t, "POST", "http://"+clients.Addr().String()+"/", "", "Idempotency-Key", "k"); r.status != http.StatusCreated {
		t.Errorf("%+v", r)
	}
	if r := fetch(t, "GET", "http://"+admin.Addr().String()+"/readyz", ""); r.status != http.StatusOK {
		t.Errorf("%+v", r)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("a clean stop is no error: %v", err)
	}
	if err := s.proxy.Ready(t.Context()); err == nil {
		t.Error("it is ready after a stop")
	}
	s.proxy.Close()
	s.backend.CloseClientConnections()
	eventually(t, "as few goroutines as before", func() bool { return runtime.NumGoroutine() <= before })
}

func TestAListenerThatFailsEndsTheServing(t *testing.T) {
	s := play(t, created(), "scope: single\n")
	clients := listen(t)
	_ = clients.Close()
	if err := s.proxy.Serve(t.Context(), clients, nil); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("got %v", err)
	}
}
