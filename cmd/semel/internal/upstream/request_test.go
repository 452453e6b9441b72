package upstream_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/upstream"
)

// seeing keeps the last request that the backend got.
func seeing(t *testing.T) (address string, last func() *http.Request, body func() string) {
	var r *http.Request
	var b []byte
	s := backend(t, func(w http.ResponseWriter, req *http.Request) {
		b, _ = io.ReadAll(req.Body)
		r = req.Clone(req.Context())
	})
	return s.URL, func() *http.Request { return r }, func() string { return string(b) }
}

func TestKeyed_UpstreamGetsFenceAttemptDigest(t *testing.T) {
	address, last, body := seeing(t)
	f := newFront(t, address, nil, time.Minute, nil)
	f.send(t, "POST", "/a%2Fb/c?x=1;y=2&z", `"k 1";p=1`, "the body", "Semel-Fence", "999", "Semel-Admin", "yes", "X-Forwarded-For", "6.6.6.6", "Expect", "100-continue")
	r, h := last(), last().Header
	rec, err := f.guard.Get(t.Context(), semel.Call{Operation: operation, Tenant: semel.Shared, Key: "k 1"})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"Idempotency-Key": `"k 1";p=1`, "Semel-Fence": strconv.FormatUint(rec.Fence, 10), "Semel-Attempt": "1", "Semel-Admin": "",
		"X-Forwarded-For": "127.0.0.1", "X-Forwarded-Host": strings.TrimPrefix(f.URL, "http://"), "X-Forwarded-Proto": "http", "Expect": "",
	} {
		if got := strings.Join(h[name], ","); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	if d := h.Get("Semel-Request-Digest"); len(d) != 64 {
		t.Errorf("the digest is %q", d)
	}
	if r.RequestURI != "/a%2Fb/c?x=1;y=2&z" || body() != "the body" || "http://"+r.Host != address {
		t.Errorf("got %s, %q, host %s", r.RequestURI, body(), r.Host)
	}
}

func TestRetry_FenceGrowsAttemptCounts(t *testing.T) {
	var fences []uint64
	var attempts []string
	b := backend(t, func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.ParseUint(r.Header.Get("Semel-Fence"), 10, 64)
		fences, attempts = append(fences, n), append(attempts, r.Header.Get("Semel-Attempt"))
		w.WriteHeader(500)
	})
	f := newFront(t, b.URL, &semel.Options{OnDoubt: semel.Retry}, time.Minute, nil)
	for range 3 {
		f.send(t, "POST", "/", "k", "")
	}
	if len(fences) != 3 || fences[0] >= fences[1] || fences[1] >= fences[2] || strings.Join(attempts, " ") != "1 2 3" {
		t.Errorf("fences %v, attempts %v", fences, attempts)
	}
}

func TestUnkeyed_ForgedHeadersRemoved(t *testing.T) {
	address, last, _ := seeing(t)
	f := newFront(t, address, nil, time.Minute, nil)
	for _, method := range []string{"GET", "POST", "PUT"} {
		f.send(t, method, "/", "", "", "Semel-Fence", "999")
		for name := range last().Header {
			if strings.HasPrefix(name, "Semel-") {
				t.Errorf("%s: the upstream got %s", method, name)
			}
		}
	}
}

func TestHostHeader_UpstreamOrClient(t *testing.T) {
	address, last, _ := seeing(t)
	f := newFront(t, address, nil, time.Minute, func(o *upstream.Options) { o.ClientHost = true })
	f.send(t, "POST", "/", "k", "")
	if got := "http://" + last().Host; got != f.URL {
		t.Errorf("got %s, want %s", got, f.URL)
	}
}

func TestUpstreamPath_IsPrefix(t *testing.T) {
	address, last, _ := seeing(t)
	f := newFront(t, address+"/base", nil, time.Minute, nil)
	f.send(t, "POST", "/pay", "k", "")
	if got := last().URL.Path; got != "/base/pay" {
		t.Errorf("got %s", got)
	}
}

func TestEmptyBody_StaysEmpty(t *testing.T) {
	address, last, body := seeing(t)
	f := newFront(t, address, nil, time.Minute, nil)
	f.send(t, "POST", "/", "k", "")
	if r := last(); r.ContentLength != 0 || len(r.TransferEncoding) != 0 || body() != "" {
		t.Errorf("the upstream got the length %d, %q, %q", r.ContentLength, r.TransferEncoding, body())
	}
}

func TestTrustForwarded_HeadersPassedOn(t *testing.T) {
	address, last, _ := seeing(t)
	f := newFront(t, address, nil, time.Minute, func(o *upstream.Options) { o.TrustForwarded = true })
	f.send(t, "POST", "/", "k", "", "X-Forwarded-For", "192.0.2.7", "X-Forwarded-Host", "pay.example", "X-Forwarded-Proto", "https")
	h := last().Header
	if h.Get("X-Forwarded-For") != "192.0.2.7, 127.0.0.1" || h.Get("X-Forwarded-Host") != "pay.example" || h.Get("X-Forwarded-Proto") != "https" {
		t.Errorf("got %v", h)
	}
	f.send(t, "POST", "/", "k2", "")
	h = last().Header
	if h.Get("X-Forwarded-For") != "127.0.0.1" || "http://"+h.Get("X-Forwarded-Host") != f.URL || h.Get("X-Forwarded-Proto") != "http" {
		t.Errorf("with none: got %v", h)
	}
}

// The peer of a Unix socket has no address to add. The addresses that the gateway has sent stay.
func TestTrustForwarded_UnixSocket_ForPassedOn(t *testing.T) {
	address, last, _ := seeing(t)
	for _, trust := range []bool{true, false} {
		f := newFront(t, address, nil, time.Minute, func(o *upstream.Options) { o.TrustForwarded = trust })
		path := filepath.Join(t.TempDir(), "s")
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		onSocket := &http.Server{Handler: f.Config.Handler}
		defer onSocket.Close()
		go func() { _ = onSocket.Serve(l) }()
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		}}}
		for _, key := range []string{"k", ""} {
			req, err := http.NewRequest("POST", "http://shop.example/", nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header = http.Header{"X-Forwarded-For": {"192.0.2.7", "192.0.2.8"}, "X-Forwarded-Host": {"pay.example"}, "Idempotency-Key": {key}}
			if key == "" {
				req.Header.Del("Idempotency-Key")
			}
			res, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = res.Body.Close()
			var want []string
			if trust {
				want = []string{"192.0.2.7", "192.0.2.8"}
			}
			if got := last().Header["X-Forwarded-For"]; !slices.Equal(got, want) {
				t.Errorf("trust %v, key %q: the service got %q, want %q", trust, key, got, want)
			}
		}
	}
}
