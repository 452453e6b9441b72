package upstream_test

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/upstream"
	"github.com/semel-go/semel/store"
)

// An upstream that dies or stalls inside its body has given no answer.
func TestAnswer_BodyBreaksOff_IsDoubt(t *testing.T) {
	for name, c := range map[string]struct {
		answer  http.HandlerFunc
		timeout time.Duration
		status  int
	}{
		"dies, length known":   {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "100"); half(w) }, time.Minute, 502},
		"dies, length unknown": {func(w http.ResponseWriter, _ *http.Request) { half(w) }, time.Minute, 502},
		"stalls":               {func(w http.ResponseWriter, r *http.Request) { part(w); <-r.Context().Done() }, 200 * time.Millisecond, 504},
		"said that it is final": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Semel-Result", "final")
			half(w)
		}, time.Minute, 502},
	} {
		for _, policy := range []semel.Policy{semel.Retry, semel.Park} {
			t.Run(name+" "+policy.String(), func(t *testing.T) {
				t.Parallel()
				b := backend(t, c.answer)
				var log logged
				f := newFront(t, b.URL, &semel.Options{OnDoubt: policy}, c.timeout, func(o *upstream.Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
				res := f.send(t, "POST", "/", "k", "")
				body, err := io.ReadAll(res.Body)
				if err != nil || res.StatusCode != c.status || !strings.Contains(string(body), "upstream_") || res.Header.Get("X-Half") != "" {
					t.Errorf("got %s %q, %v, %v", res.Status, body, err, res.Header)
				}
				if unknown := res.Header.Get("Semel-Outcome") == "unknown"; unknown != (policy == semel.Park) {
					t.Errorf("headers %v", res.Header)
				}
				want := map[semel.Policy]store.State{semel.Retry: store.Released, semel.Park: store.Unknown}[policy]
				if state, _ := f.state(t, "k"); state != want {
					t.Errorf("the record is %v, want %v", state, want)
				}
				if strings.Contains(log.String(), "panic") {
					t.Errorf("the log says %s", log.String())
				}
			})
		}
	}
}

// half writes a part of an answer and breaks off.
func half(w http.ResponseWriter) {
	part(w)
	panic(http.ErrAbortHandler)
}

func part(w http.ResponseWriter) {
	w.Header().Set("X-Half", "1")
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, "half of it")
	_ = http.NewResponseController(w).Flush()
}

// logged keeps what is logged.
type logged struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestStop_RequestsInFlight_AreGivenUp(t *testing.T) {
	arrived := make(chan struct{}, 1)
	b := backend(t, func(_ http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-r.Context().Done()
	})
	var up *upstream.Upstream
	for _, policy := range []semel.Policy{semel.Retry, semel.Park} {
		f := newFront(t, b.URL, &semel.Options{OnDoubt: policy}, time.Minute, nil)
		up = f.up
		answered := make(chan *http.Response)
		go func() { answered <- f.send(t, "POST", "/", "k", "") }()
		<-arrived
		up.Stop()
		if res := <-answered; res.StatusCode != http.StatusBadGateway || (res.Header.Get("Semel-Outcome") == "unknown") != (policy == semel.Park) {
			t.Errorf("%v: got %s, %v", policy, res.Status, res.Header)
		}
		want := map[semel.Policy]store.State{semel.Retry: store.Released, semel.Park: store.Unknown}[policy]
		if state, _ := f.state(t, "k"); state != want {
			t.Errorf("the record is %v, want %v", state, want)
		}
	}
}

func TestLocation_NamesUpstream_IsRenamed(t *testing.T) {
	location := ""
	b := backend(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", location)
		w.WriteHeader(http.StatusCreated)
	})
	at, _ := url.Parse(b.URL)
	_, port, _ := net.SplitHostPort(at.Host)
	for i, c := range []struct {
		base, location, want string // CLIENT is the name that the client used
		change               func(*upstream.Options)
	}{
		{"", b.URL + "/pay/?a=1#b", "CLIENT/pay/?a=1#b", nil},
		{"", strings.Replace(b.URL, "http:", "https:", 1) + "/pay", "CLIENT/pay", nil},
		{"", "//" + at.Host + "/pay", "CLIENT/pay", nil},
		{"", "http://127.0.0.1/pay", "CLIENT/pay", nil}, // the port got lost
		{"", "http://127.0.0.1:1/pay", "http://127.0.0.1:1/pay", nil},
		{"", "https://other.example/pay", "https://other.example/pay", nil},
		{"", "/pay/", "/pay/", nil},
		{"", "pay/", "pay/", nil},
		{"", "mailto:a@b", "mailto:a@b", nil},
		{"", "http://127.0.0.1:" + port + "/a%2Fb", "CLIENT/a%2Fb", nil},
		{"", ":", ":", nil},
		{"", "", "", nil},
		{"/api", b.URL + "/api/pay", "CLIENT/pay", nil},
		{"/api", b.URL + "/api", "CLIENT/", nil},
		{"/api", b.URL + "/apis", b.URL + "/apis", nil},
		{"/api", "/api/pay?x", "/pay?x", nil},
		{"/api", "/elsewhere", "/elsewhere", nil},
		{"", b.URL + "/pay", "https://shop.example/pay", func(o *upstream.Options) { o.TrustForwarded = true }},
	} {
		location = c.location
		f := newFront(t, b.URL+c.base, nil, time.Minute, c.change)
		headers := []string{}
		if c.change != nil {
			headers = []string{"X-Forwarded-Host", "shop.example", "X-Forwarded-Proto", "https"}
		}
		for range 2 {
			res := f.send(t, "POST", "/x", fmt.Sprint("k", i), "", headers...)
			if got, want := res.Header.Get("Location"), strings.Replace(c.want, "CLIENT", f.URL, 1); got != want {
				t.Errorf("%q became %q, want %q", c.location, got, want)
			}
		}
	}
}

// An answer that ends with its connection looks whole, even if the service has died inside it.
func TestAnswer_EndsWithConnection_IsWarnedAboutOnce(t *testing.T) {
	b := backend(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, buf, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = buf.WriteString("HTTP/1.1 201 Created\r\nConnection: close\r\n\r\nhalf of it")
		_ = buf.Flush()
		_ = conn.Close()
	})
	var log logged
	f := newFront(t, b.URL, nil, time.Minute, func(o *upstream.Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	for _, key := range []string{"a", "b"} {
		res := f.send(t, "POST", "/", key, "")
		if body, err := io.ReadAll(res.Body); err != nil || string(body) != "half of it" {
			t.Errorf("%s %q, %v", res.Status, body, err)
		}
	}
	if n := strings.Count(log.String(), "let the service send Content-Length"); n != 1 {
		t.Errorf("%d warnings: %s", n, log.String())
	}
}
