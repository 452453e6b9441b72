package proxy_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A replay is in memory until its client has taken it. Clients that do not read must not fill
// the memory, and one tenant's must not keep others from theirs.
func TestReplay_ClientsDoNotRead_FurtherOnesAreRefused(t *testing.T) {
	const size = 12 << 20
	large := func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(make([]byte, size)) // the proxy reads all
	}
	for name, c := range map[string]struct {
		doc    string
		others bool
	}{
		"all":      {"scope: single\nmax-spool: 100MiB\n", false},
		"a tenant": {byTenant + "tenant-spool: 100MiB\nrefusal-pause: 0s\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			s := play(t, large, c.doc+"max-outcome: 16MiB\n")
			for _, tenant := range []string{"ann", "bob"} {
				if r := s.pay("k", "X-Tenant", tenant); r.status != 201 {
					t.Fatalf("%d %.200s", r.status, r.body)
				}
			}
			var silent []net.Conn
			for range 2 { // they hold 24 MiB of the 25
				conn, err := net.Dial("tcp", s.Listener.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
				if _, err := fmt.Fprint(conn, "POST /pay HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Tenant: ann\r\nIdempotency-Key: k\r\nContent-Length: 4\r\n\r\nbody"); err != nil {
					t.Fatal(err)
				}
				status := make([]byte, len("HTTP/1.1 201"))
				if _, err := io.ReadFull(conn, status); err != nil || string(status) != "HTTP/1.1 201" {
					t.Fatalf("%q, %v", status, err)
				}
				silent = append(silent, conn)
			}
			r := s.pay("k", "X-Tenant", "ann")
			if r.status != 503 || !strings.Contains(r.body, `"replays_full"`) || r.header.Get("Retry-After") == "" || r.replayed() {
				t.Errorf("%d %v %.300s", r.status, r.header, r.body)
			}
			if c.others {
				if r := s.pay("k", "X-Tenant", "bob"); !r.replayed() || len(r.body) != size {
					t.Errorf("another tenant got %d, %d bytes", r.status, len(r.body))
				}
			}
			for _, conn := range silent {
				_ = conn.Close()
			}
			eventually(t, "the bytes are free again", func() bool { r = s.pay("k", "X-Tenant", "ann"); return r.replayed() })
			if len(r.body) != size || s.backend.count() > 2 {
				t.Errorf("%d bytes after %d runs", len(r.body), s.backend.count())
			}
		})
	}
}

// A replay is in memory while the authorize hook is asked, too, and a flood makes the hook slow.
func TestReplay_HookIsSlow_FurtherOnesAreRefused(t *testing.T) {
	const size = 12 << 20
	large := func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(make([]byte, size))
	}
	var asked atomic.Int64
	allow := make(chan struct{})
	auth := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		select {
		case <-allow:
		case <-r.Context().Done():
		}
	}))
	defer auth.Close()
	s := play(t, large, byTenant+"tenant-spool: 100MiB\ntenant-bytes: 0\nrefusal-pause: 10s\nmax-outcome: 16MiB\nauthorize-timeout: 20s\nauthorize-url: "+auth.URL+"\n")
	if r := s.pay("k", "X-Tenant", "ann"); r.status != 201 {
		t.Fatalf("%d %.200s", r.status, r.body)
	}
	replies := make(chan reply, 6)
	for range cap(replies) {
		go func() { replies <- s.pay("k", "X-Tenant", "ann") }()
	}
	for range cap(replies) - 2 { // two hold 24 MiB of the 25
		select {
		case r := <-replies:
			if r.status != 503 || r.header.Get("Semel-Refusal") != "authorizer_unavailable" || r.header.Get("Retry-After") == "" || strings.Contains(r.body, "done, and") {
				t.Errorf("%d %v %.300s; want a refusal that does not tell that the operation is done", r.status, r.header, r.body)
			}
		case <-time.After(8 * time.Second): // refusals of tenants wait for longer, but not these
			t.Error("a replay waits for the hook, although two others do")
		}
	}
	if n := asked.Load(); n > 2 {
		t.Errorf("the hook was asked about %d replays at a time", n)
	}
	close(allow)
	for range 2 {
		if r := <-replies; !r.replayed() || len(r.body) != size {
			t.Errorf("%d %v, %d bytes", r.status, r.header, len(r.body))
		}
	}
	eventually(t, "the bytes are free again", func() bool { return s.pay("k", "X-Tenant", "ann").replayed() })
}
