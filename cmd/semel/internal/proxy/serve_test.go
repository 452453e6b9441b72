package proxy_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestServe_Stop_LeavesNoGoroutine(t *testing.T) {
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

// The caller of Serve closes the store after Serve returns.
func TestServe_StopDuringSweep_Waits(t *testing.T) {
	s := play(t, created(), "scope: single\nsweep-every: 100ms\n")
	sweeps, served := make(chan struct{}), make(chan struct{})
	var begun sync.Once
	s.store.sweep = func(ctx context.Context) {
		begun.Do(func() { close(sweeps) })
		<-ctx.Done()
		select {
		case <-served:
			t.Error("a sweep ran on")
		case <-time.After(100 * time.Millisecond):
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer close(served)
		if err := s.proxy.Serve(ctx, listen(t), nil); err != nil {
			t.Error(err)
		}
	}()
	<-sweeps
	cancel()
	<-served
}

// A panic outside of a protected call closes the connection, and has no other trace.
func TestServe_HandlerPanics_IsLoggedAsError(t *testing.T) {
	s := play(t, created(), "scope: single\n")
	server := httptest.NewUnstartedServer(nil)
	server.Config = s.proxy.Server(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("the map is nil") }))
	server.Start()
	if res, err := http.Get(server.URL); err == nil {
		res.Body.Close()
		t.Errorf("the client got %d", res.StatusCode)
	}
	server.Close() // waits for the connection
	if log := s.log.String(); !strings.Contains(log, "ERROR") || !strings.Contains(log, "the map is nil") {
		t.Errorf("the log has: %s", log)
	}
}

// A client that connects and sends nothing must not hold a connection for ever.
func TestServe_SilentClient_CutOff(t *testing.T) {
	s := play(t, created(), "scope: single\n")
	clients := listen(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.proxy.Serve(ctx, clients, nil) }()
	c, err := net.Dial("tcp", clients.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = io.WriteString(c, "POST /pay HTTP/1.1\r\nHost: a\r\n")
	_ = c.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := io.ReadAll(c); err != nil {
		t.Errorf("it is not cut off: %v", err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestServe_ClientHangsUp_OutcomeKept(t *testing.T) {
	arrived := make(chan struct{})
	s := play(t, func(w http.ResponseWriter, r *http.Request) {
		close(arrived)
		select {
		case <-r.Context().Done():
			t.Error("the request was given up")
		case <-time.After(200 * time.Millisecond):
		}
		w.WriteHeader(http.StatusCreated)
	}, "scope: single\non-doubt: park\n")
	c, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(c, "POST /pay HTTP/1.1\r\nHost: "+s.Listener.Addr().String()+"\r\nIdempotency-Key: k\r\nContent-Length: 4\r\n\r\nbody")
	<-arrived
	_ = c.Close()
	eventually(t, "the answer is kept", func() bool { return s.pay("k").replayed() })
}

func TestServe_ListenerFails_ReturnsError(t *testing.T) {
	s := play(t, created(), "scope: single\n")
	clients := listen(t)
	_ = clients.Close()
	if err := s.proxy.Serve(t.Context(), clients, nil); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("got %v", err)
	}
}

// A refusal that waits must not take the drain time, and is not in doubt.
func TestServe_StopDuringPause_RefusalSentAtOnce(t *testing.T) {
	s := play(t, created(), byTenant+"refusal-pause: 10s\ntenant-keys: 1\ndrain: 1m\nsweep-every: 0s\n")
	clients := listen(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.proxy.Serve(ctx, clients, nil) }()
	url := "http://" + clients.Addr().String() + "/pay"
	if r := fetch(t, "POST", url, "", "Idempotency-Key", "1", "X-Tenant", "ann"); r.status != http.StatusCreated {
		t.Fatalf("%+v", r)
	}
	refused := make(chan reply)
	go func() { refused <- fetch(t, "POST", url, "", "Idempotency-Key", "2", "X-Tenant", "ann") }()
	eventually(t, "the refusal waits", func() bool { return strings.Contains(s.log.String(), "a limit refuses requests of a tenant") })
	begun := time.Now()
	cancel()
	if r := <-refused; r.status != http.StatusTooManyRequests {
		t.Errorf("%+v", r)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if took := time.Since(begun); took > 8*time.Second {
		t.Errorf("the stop took %v", took)
	}
}

// A connection without a request holds nothing that could be in doubt.
func TestServe_StopWithSilentConnection_NoError(t *testing.T) {
	s := play(t, created(), "scope: single\ndrain: 200ms\nsweep-every: 0s\n")
	clients := listen(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.proxy.Serve(ctx, clients, nil) }()
	c, err := net.Dial("tcp", clients.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	// Connections are accepted in order, so this request comes after the silent one.
	if r := fetch(t, "POST", "http://"+clients.Addr().String()+"/pay", "", "Idempotency-Key", "k"); r.status != http.StatusCreated {
		t.Errorf("%+v", r)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// The body of a request is read before its key is claimed. So a client that is silent in the
// middle of it leaves nothing in doubt.
func TestServe_StopDuringBody_RequestIsRefused(t *testing.T) {
	for name, key := range map[string]string{"with a key": "Idempotency-Key: k\r\n", "key in the body": ""} {
		t.Run(name, func(t *testing.T) {
			s := play(t, created(), "scope: single\non-doubt: park\ndrain: 400ms\nsweep-every: 0s\nkey-from: [id]\n")
			clients := listen(t)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error)
			go func() { done <- s.proxy.Serve(ctx, clients, nil) }()
			c, err := net.Dial("tcp", clients.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			_, _ = io.WriteString(c, "POST /pay HTTP/1.1\r\nHost: a\r\n"+key+"Content-Length: 100\r\n\r\n{\"id\":")
			eventually(t, "the request is in flight", func() bool { return s.proxy.InFlight() == 1 })
			cancel()
			answer, err := io.ReadAll(c)
			if err != nil || !strings.Contains(string(answer), "408 Request Timeout") || !strings.Contains(string(answer), "body_timeout") {
				t.Errorf("got %q, %v", answer, err)
			}
			if err := <-done; err == nil || !strings.HasSuffix(err.Error(), "1 request still in flight after 400ms given up; released or in doubt, as the policy says") {
				t.Errorf("the stop ends with %v", err)
			}
			if n := s.backend.count(); n != 0 {
				t.Errorf("the service got %d requests", n)
			}
		})
	}
}
