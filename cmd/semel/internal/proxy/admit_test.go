package proxy_test

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
)

// Java's client offers h2c with each request. The offer is ignored, and the upstream
// never sees it, because in a tunnel no rule would apply.
func TestUpgrade_H2COffered_Ignored(t *testing.T) {
	s := play(t, created(), "scope: single\n")
	offer := []string{"Connection", "Upgrade, HTTP2-Settings, X-Gone", "Upgrade", "h2c", "Http2-Settings", "AAMAAABkAAQAoAAAAAIAAAAA", "X-Gone", "1"}
	if r := s.pay("k", offer...); r.status != 201 {
		t.Fatalf("with a key: %+v", r)
	}
	if r := s.pay("k", offer...); !r.replayed() {
		t.Errorf("again: %+v", r)
	}
	if r := s.send("GET", "/page", "", offer...); r.status != 201 {
		t.Errorf("without a key: %+v", r)
	}
	for _, names := range []string{"foo", "h2c, websocket", "WebSocket, h2c"} {
		s.send("GET", "/page", "", "Connection", "upgrade", "Upgrade", names)
	}
	for _, r := range s.backend.seen {
		if r.Header.Get("Upgrade") != "" || r.Header.Get("Http2-Settings") != "" || r.Header.Get("X-Gone") != "" {
			t.Errorf("the service got %v", r.Header)
		}
	}
	if r := s.send("GET", "/chat", "", "Connection", "Upgrade", "Upgrade", "WebSocket"); r.status != 201 ||
		s.backend.seen[s.backend.count()-1].Header.Get("Upgrade") != "WebSocket" {
		t.Errorf("a WebSocket is not offered to the service: %+v", r)
	}
}

func TestUpgrade_NamedProtocol_Passes(t *testing.T) {
	s := play(t, created(), "scope: single\nupgrades: [foo]\n")
	s.send("GET", "/", "", "Connection", "Upgrade", "Upgrade", "foo")
	s.send("GET", "/", "", "Connection", "Upgrade", "Upgrade", "websocket")
	if a, b := s.backend.seen[0].Header.Get("Upgrade"), s.backend.seen[1].Header.Get("Upgrade"); a != "foo" || b != "" {
		t.Errorf("the service got %q and %q", a, b)
	}
}

func TestKey_ReservedPrefix_Refused(t *testing.T) {
	s := play(t, created(), "scope: single\nkey-from: [id]\n")
	s.send("POST", "/pay", `{"id":1}`)
	for _, key := range []string{"semel-fields:abc", `"semel-fields:abc"`, "\t semel-fields:abc", `"semel-fields:x";p=1`} {
		if r := s.pay(key); r.status != 400 || !strings.Contains(r.body, `"key_reserved"`) {
			t.Errorf("%q: %+v", key, r)
		}
	}
	if r := s.pay("semel-field"); r.status != 201 {
		t.Errorf("another key: %+v", r)
	}
}

func TestPeer_NotTrusted_403(t *testing.T) {
	s := play(t, created(), byTenant+"trusted-gateways: [10.0.0.0/8, \"fd00::/8\"]\n")
	for _, r := range []reply{s.pay("k", "X-Tenant", "ann"), s.send("GET", "/page", "", "X-Tenant", "ann")} {
		if r.status != 403 || !strings.Contains(r.body, `"peer_refused"`) {
			t.Errorf("%+v", r)
		}
	}
	if n := s.backend.count(); n != 0 {
		t.Errorf("the service was asked %d times", n)
	}
	s = play(t, created(), byTenant+"trusted-gateways: [127.0.0.1]\n")
	if r := s.pay("k", "X-Tenant", "ann"); r.status != 201 {
		t.Errorf("a trusted one: %+v", r)
	}
}

// A gateway's header must reach the service, although the client's Connection header
// names it.
func TestProtectedHeaders_RemovalOrLookalike_Refused(t *testing.T) {
	s := play(t, created(), "scope: single\nprotected-headers: [x-user]\n")
	if r := s.pay("k", "X-User", "ann", "Connection", "x-user"); r.status != 400 || !strings.Contains(r.body, "protected_header") {
		t.Errorf("%+v", r)
	}
	if r := s.pay("k", "X-User", "ann", "X_User", "bob"); r.status != 400 || !strings.Contains(r.body, "ambiguous_header") {
		t.Errorf("%+v", r)
	}
	if r := s.pay("k", "X-User", "ann"); r.status != 201 {
		t.Errorf("%+v", r)
	}
}

// The tenant is the value that the service gets: HTTP trims only space and tab.
func TestTenant_OtherSpace_IsAnotherTenant(t *testing.T) {
	s := play(t, created(), byTenant)
	for _, tenant := range []string{"ann", "ann\u00a0", "\u2003ann", "ann\u0085"} {
		if r := s.pay("k", "X-Tenant", tenant); r.status != 201 || r.replayed() {
			t.Errorf("%q: %+v", tenant, r)
		}
	}
	if r := s.pay("k", "X-Tenant", " ann\t"); !r.replayed() {
		t.Errorf("space and tab: %+v", r)
	}
}

// A client that reads nothing is cut off; a connection that is only idle is not.
func TestWrite_ClientReadsNothing_CutOff(t *testing.T) {
	const size = 64 << 20
	ended := make(chan error, 1)
	s := play(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/page" {
			return
		}
		part, n := make([]byte, 1<<20), 0
		for n < size {
			m, err := w.Write(part)
			if n += m; err != nil {
				ended <- err
				return
			}
		}
		ended <- nil
	}, "scope: single\nwrite-timeout: 200ms\n")
	c, answers := s.half("GET /page HTTP/1.1\r\nHost: a\r\n\r\n")
	for range 2 {
		res, err := http.ReadResponse(answers, nil)
		if err != nil || res.StatusCode != 200 {
			t.Fatalf("%+v, %v", res, err)
		}
		<-time.After(300 * time.Millisecond) // longer than the limit
		if _, err := fmt.Fprint(c, "POST /page HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\nContent-Length: 1\r\n\r\nx"); err != nil {
			t.Fatal(err)
		}
	}
	silent, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	if _, err := fmt.Fprint(silent, "GET /large HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err == nil {
			t.Error("the whole answer was taken")
		}
	case <-time.After(time.Minute):
		t.Error("the service still writes to a client that reads nothing")
	}
}

func TestReady_NoTempFolder_NotReady(t *testing.T) {
	s := play(t, created(), "scope: single\n")
	if r := fetch(t, "GET", s.admin.URL+"/readyz", ""); r.status != 200 {
		t.Fatalf("%+v", r)
	}
	t.Setenv("TMPDIR", t.TempDir()+"/none")
	if r := fetch(t, "GET", s.admin.URL+"/readyz", ""); r.status != 503 || !strings.Contains(r.body, "TMPDIR") {
		t.Errorf("%+v", r)
	}
}

func TestRecord_ClaimedOrRunAgain_NamesMethodAndPath(t *testing.T) {
	var runs atomic.Int64
	s := play(t, func(w http.ResponseWriter, _ *http.Request) {
		if runs.Add(1) == 1 {
			w.WriteHeader(http.StatusBadGateway) // so that the next request runs it again
		}
	}, "scope: single\non-doubt: retry\n")
	for n := range int64(2) {
		s.send("POST", "/pay/1?secret=canary", "", "Idempotency-Key", "k")
		f, err := s.store.Get(t.Context(), store.Key{Operation: "http", Value: "k"})
		if err != nil || runs.Load() != n+1 {
			t.Fatalf("%d runs, %v", runs.Load(), err)
		}
		if h := f.Record.Holder; !strings.HasSuffix(h, " POST /pay/1") {
			t.Errorf("after run %d the holder is %q", n+1, h)
		}
	}
}
