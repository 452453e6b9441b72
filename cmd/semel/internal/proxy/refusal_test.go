package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// A refusal comes after a pause, in which the request takes no place of others. It ends
// when the client hangs up.
func TestLimits_TenantRefused_RefusalComesAfterPause(t *testing.T) {
	release := make(chan struct{})
	s := play(t, held(release), byTenant+"tenant-requests: 1\nmax-requests: 2\nrefusal-pause: 10s\n")
	free := sync.OnceFunc(func() { close(release) })
	t.Cleanup(free) // the servers wait for the first request
	first := make(chan reply, 1)
	go func() { first <- s.pay("a", "X-Tenant", "ann") }()
	eventually(t, "a request is upstream", func() bool { return s.backend.count() == 1 })
	ctx, hangUp := context.WithCancel(t.Context())
	refused := make(chan error, 1)
	go func() {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/pay", nil)
		if err != nil {
			refused <- err
			return
		}
		r.Header.Set("X-Tenant", "ann")
		r.Header.Set("Idempotency-Key", "b")
		res, err := http.DefaultClient.Do(r)
		if err == nil {
			err = fmt.Errorf("answered %s", res.Status)
			_ = res.Body.Close()
		}
		refused <- err
	}()
	eventually(t, "a limit has refused", func() bool {
		return strings.Contains(fetch(t, "GET", s.admin.URL+"/metrics", "").body, "semel_limit_tenant_requests_refused_total 1\n")
	})
	for i := range 20 { // they need the place of the refused request
		if r := s.pay(fmt.Sprint("b", i), "X-Tenant", "bob"); r.status != 201 {
			t.Fatalf("of another tenant: %+v", r)
		}
	}
	hangUp()
	if err := <-refused; !errors.Is(err, context.Canceled) {
		t.Errorf("the refused request: %v", err)
	}
	free()
	if r := <-first; r.status != 201 {
		t.Errorf("the first request: %+v", r)
	}
}

// The answer to a client that has ended its side of the connection would only take the
// processor from others.
func TestLimits_RefusedClientEnds_NothingIsWritten(t *testing.T) {
	s := play(t, created(), byTenant+"tenant-keys: 1\nrefusal-pause: 10s\n")
	if r := s.pay("a", "X-Tenant", "ann"); r.status != 201 {
		t.Fatalf("%+v", r)
	}
	c, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := fmt.Fprint(c, "POST /pay HTTP/1.1\r\nHost: a\r\nX-Tenant: ann\r\nIdempotency-Key: b\r\nContent-Length: 0\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if answer, _ := io.ReadAll(c); len(answer) > 0 {
		t.Errorf("it wrote %q", answer)
	}
}
