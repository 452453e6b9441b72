//go:build unix

package httpclients

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// snippets are the clients of docs/clients.md: how to make each ready, and its command.
var snippets = map[string]func(t *testing.T) []string{
	"python": func(t *testing.T) []string { return []string{need(t, "python3"), snippet("pay.py")} },
	"curl":   func(t *testing.T) []string { need(t, "curl"); return []string{need(t, "bash"), snippet("pay.sh")} },
	"java": func(t *testing.T) []string {
		dir := t.TempDir()
		run(t, need(t, "javac"), "-d", dir, snippet("Pay.java"))
		return []string{need(t, "java"), "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", dir, "Pay"}
	},
	"typescript": func(t *testing.T) []string {
		node, modules, out := need(t, "node"), fetched(t, "typescript"), t.TempDir()
		run(t, filepath.Join(modules, ".bin", "tsc"), "--project", snippet("tsconfig.json"), "--typeRoots", filepath.Join(modules, "@types"), "--outDir", out)
		if err := os.WriteFile(filepath.Join(out, "package.json"), []byte(`{"type": "module"}`), 0o600); err != nil {
			t.Fatal(err)
		}
		return []string{node, filepath.Join(out, "pay.js")}
	},
}

func snippet(name string) string {
	return filepath.Join("..", "..", "examples", "clients", name)
}

// Each client gets the first answer, and the service has one effect: if the service answers
// after the client's time limit, if it answers 503 or cuts the connection before it has
// done anything, and if its answer is lost on the way.
func TestSnippets_ServiceLateBusyOrCutOff_OneEffect(t *testing.T) {
	t.Parallel()
	for name, prepare := range snippets {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report(t, name+" client of the docs: late, busy and broken answers, one effect")
			command := prepare(t)
			for _, fault := range []string{"late", "busy", "cut", "lost"} {
				t.Run(fault, func(t *testing.T) {
					t.Parallel()
					p := newPayments(t)
					out := strings.TrimSpace(run(t, command[0], append(command[1:len(command):len(command)], p.url+"/"+fault, "order-17", "2")...))
					p.mu.Lock()
					defer p.mu.Unlock()
					wantReplay := fault == "late" || fault == "lost"
					if out != fmt.Sprint("201 ", wantReplay, ` {"payment": 1}`) {
						t.Errorf("the client prints %q; replayed should be %v", out, wantReplay)
					}
					if p.effects != 1 || p.sent < 2 {
						t.Errorf("%d effects after %d requests of the client, want 1 after 2 or more", p.effects, p.sent)
					}
				})
			}
		})
	}
}

// payments is a service behind semel proxy, and a network before the proxy.
type payments struct {
	url string

	mu      sync.Mutex
	effects int
	asked   int           // requests that reached the service
	sent    int           // requests that the client has sent
	second  chan struct{} // closed when the client has sent its second request
}

func newPayments(t *testing.T) *payments {
	t.Helper()
	p := &payments{second: make(chan struct{})}
	service := httptest.NewServer(http.HandlerFunc(p.serve))
	t.Cleanup(service.Close)
	to, err := url.Parse(proxy(t, service.URL, "--on-doubt", "retry"))
	if err != nil {
		t.Fatal(err)
	}
	relay := httputil.NewSingleHostReverseProxy(to)
	relay.ErrorLog = log.New(io.Discard, "", 0) // a client that gives up is no error here
	network := httptest.NewServer(p.network(relay))
	t.Cleanup(network.Close)
	p.url = network.URL
	return p
}

// serve does the payment, after a fault that the path names.
func (p *payments) serve(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.asked++
	first := p.asked == 1
	p.mu.Unlock()
	switch {
	case r.URL.Path == "/busy" && first:
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	case r.URL.Path == "/cut" && first:
		panic(http.ErrAbortHandler)
	case r.URL.Path == "/late":
		<-p.second
	}
	p.mu.Lock()
	p.effects++
	n := p.effects
	p.mu.Unlock()
	w.WriteHeader(http.StatusCreated)
	_, _ = fmt.Fprintf(w, `{"payment": %d}`, n)
}

// network passes requests to the proxy. On the path "/lost" it cuts the connection instead
// of giving the first answer to the client.
func (p *payments) network(to http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.sent++
		n := p.sent
		p.mu.Unlock()
		if n == 2 {
			close(p.second)
		}
		if r.URL.Path == "/lost" && n == 1 {
			to.ServeHTTP(httptest.NewRecorder(), r.WithContext(context.WithoutCancel(r.Context())))
			panic(http.ErrAbortHandler)
		}
		to.ServeHTTP(w, r)
	})
}
