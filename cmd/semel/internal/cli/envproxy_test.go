//go:build unix

package cli

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// besideLoopback is the address of s as one that leads to loopback, but that
// net/http does not take for it: net/http never uses a proxy for loopback.
func besideLoopback(s *httptest.Server) string {
	return strings.Replace(s.URL, "127.0.0.1", "0.0.0.0", 1)
}

// Requests to the service and to hooks contain data of clients, so they ignore
// HTTP_PROXY. Only the key set, which can be on another network, uses it.
func TestProxy_HTTPProxyVariable_OnlyForKeySet(t *testing.T) {
	t.Parallel()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var asked []string
	forward := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, r.URL.String())
		mu.Unlock()
		fmt.Fprintf(w, `{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"1","x":%q}]}`, base64.RawURLEncoding.EncodeToString(public))
	}))
	defer forward.Close()
	hooks := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost { // the reconciler
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"happened":true,"response":{"status":201,"body":"found"}}`)
		}
	}))
	defer hooks.Close()
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
	}))
	defer service.Close()

	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	built.Store(true)
	cmd := exec.Command(path, "proxy", "--listen", "127.0.0.1:0", "--store", "memory:", "--on-doubt", "park", "--scope", "jwt:sub",
		"--jwks", "http://id.invalid/keys", "--upstream", besideLoopback(service),
		"--reconcile-url", besideLoopback(hooks), "--reconcile-every", "0", "--authorize-url", besideLoopback(hooks))
	cmd.Env = append(os.Environ(), "HTTP_PROXY="+forward.URL, "http_proxy="+forward.URL, "NO_PROXY=", "no_proxy=")
	p := launch(t, cmd)
	p.waitLog(listening)
	addr := listening.FindStringSubmatch(p.Log())[1]
	bearer := token(private, fmt.Sprintf(`{"sub":"ann","exp":%d}`, time.Now().Add(time.Hour).Unix()))
	if r, err := post(t.Context(), wire(t), addr, "/pay", "k", "{}", "Authorization", bearer); err != nil || r.status != http.StatusInternalServerError {
		t.Fatalf("the service: %+v, %v", r, err)
	}
	if r, err := post(t.Context(), wire(t), addr, "/pay", "k", "{}", "Authorization", bearer); err != nil || r.body != "found" {
		t.Errorf("the hooks: %+v, %v", r, err)
	}
	mu.Lock()
	defer mu.Unlock()
	if got := strings.Join(asked, ", "); got != "http://id.invalid/keys" {
		t.Errorf("by the proxy of the environment went %s", got)
	}
}
