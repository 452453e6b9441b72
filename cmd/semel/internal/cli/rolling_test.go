//go:build unix

package cli

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/semel-go/semel/semelhttp"
)

// inTurn sends each request to the next of several addresses, as a balancer does that
// does not know which of them are stopping.
type inTurn struct {
	base  http.RoundTripper
	addrs []string
	next  atomic.Int64
}

func (i *inTurn) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Host = i.addrs[int(i.next.Add(1))%len(i.addrs)]
	return i.base.RoundTrip(r)
}

// A rolling restart: two proxies over one store stop and start in turn while clients that
// retry send requests. No call fails, each proxy stops cleanly, and each key takes effect
// once.
func TestProxy_RollingRestart_NoCallFails(t *testing.T) {
	t.Parallel()
	const restarts, clients = 6, 8
	b := newBank(t)
	b.slow = 5 * time.Millisecond // so that each stop meets requests in flight
	store := "sqlite:" + filepath.Join(t.TempDir(), "semel.db")
	balancer := &inTurn{base: wire(t)}
	proxies, args := make([]*proc, 2), make([][]string, 2)
	for i := range proxies {
		addr := freeAddr(t)
		balancer.addrs = append(balancer.addrs, addr)
		args[i] = []string{"--listen", addr, "--admin-listen", "127.0.0.1:0", "--upstream", b.URL, "--scope", "single", "--store", store, "--on-doubt", "park"}
		proxies[i] = start(t, args[i]...)
	}
	transport, err := semelhttp.NewTransport(balancer, &semelhttp.TransportOptions{MaxAttempts: 12, Backoff: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: transport}
	var sent, answered atomic.Int64
	stop := make(chan struct{})
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				key := fmt.Sprint("k", sent.Add(1))
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://balancer/pay", strings.NewReader(`{"amount":1}`))
				if err != nil {
					t.Error(err)
					return
				}
				r.Header.Set("Idempotency-Key", `"`+key+`"`)
				res, err := client.Do(r)
				if err != nil {
					t.Errorf("%s: %v", key, err)
					return
				}
				_ = res.Body.Close()
				if res.StatusCode != http.StatusCreated {
					t.Errorf("%s: %s", key, res.Status)
					return
				}
				answered.Add(1)
			}
		})
	}
	for n := range restarts {
		i := n % len(proxies)
		before := answered.Load()
		eventually(t, time.Minute, "answers between two restarts", func() bool { return t.Failed() || answered.Load() >= before+50 })
		proxies[i].signal(syscall.SIGTERM)
		if code := proxies[i].exit(time.Minute); code != 0 {
			t.Errorf("restart %d: exit code %d", n, code)
		}
		proxies[i] = start(t, args[i]...)
		eventually(t, time.Minute, "the new process is ready", func() bool { status, _ := get(t, proxies[i].Admin+"/readyz"); return status == http.StatusOK })
	}
	close(stop)
	all.Wait()
	keys, twice := b.count()
	if answered.Load() != sent.Load() || int64(keys) != sent.Load() || twice != 0 {
		t.Errorf("%d calls, %d answered; %d effects, %d more than once", sent.Load(), answered.Load(), keys, twice)
	}
	t.Logf("%d restarts: %d calls, each answered, with one effect each", restarts, sent.Load())
}
