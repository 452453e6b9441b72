//go:build unix

package chaos

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/test/internal/faultproxy"
	"github.com/semel-go/semel/test/internal/figure"
)

// A client that repeats each request until it is answered gets one effect for
// each key, although the network loses requests and answers. Under park the
// network between the proxy and the server is as bad as the network between the
// client and the proxy.
func TestNetworkLosesRequestsAndAnswers_OneEffectPerKey(t *testing.T) {
	keys := map[semel.Policy]int{semel.Retry: 400, semel.Park: 250}
	if figure.Long() {
		keys = map[semel.Policy]int{semel.Retry: 14_000, semel.Park: 10_000}
	}
	for _, policy := range policies {
		t.Run(policy.String(), func(t *testing.T) {
			t.Parallel()
			badNetwork(t, policy, keys[policy])
		})
	}
}

// The faults between client and proxy (before) and between proxy and server
// (behind), within the first requests of a connection. There is no half close
// between proxy and server: a server answers half of a request with status 400,
// and that is then the recorded answer.
var (
	before = faultproxy.Mix{MaxAfter: 400, MaxDelay: 100 * time.Millisecond}
	behind = faultproxy.Mix{MaxAfter: 400, MaxDelay: time.Second, Kinds: []faultproxy.Kind{
		faultproxy.Refuse, faultproxy.CutRequest, faultproxy.CutReply, faultproxy.Swallow, faultproxy.Delay, faultproxy.Stall,
	}}
)

const seed = 20

func badNetwork(t *testing.T, policy semel.Policy, keys int) {
	l := newLedger()
	bank := newBank(t, l, true)
	args := []string{
		"--upstream", bank.URL, "--scope", "single", "--store", "sqlite:" + t.TempDir() + "/semel.db",
		"--on-doubt", policy.String(), "--wait", "1s",
	}
	var inside *faultproxy.Proxy
	if policy == semel.Park {
		inside = proxied(t, strings.TrimPrefix(bank.URL, "http://"), faultproxy.Chance(seed+1, 0.5, behind))
		args[1] = "http://" + inside.Addr()
		args = append(args, "--upstream-timeout", "400ms", "--reconcile-url", bank.URL+"/reconcile", "--reconcile-every", "500ms")
	}
	outside := proxied(t, startProxy(t, args...), faultproxy.Chance(seed, 0.6, before))
	c := &clients{t: t, url: "http://" + outside.Addr() + "/pay", ledger: l}
	c.run(keys)
	f := l.audit(semel.Park) // no process dies and no lease is lost: one effect under either policy
	report(t, f.wrong)
	lost := tallyOf(outside)
	for k := faultproxy.Refuse; k <= faultproxy.Stall; k++ {
		if outside.Count(k) == 0 || inside != nil && slices.Contains(behind.Kinds, k) && inside.Count(k) == 0 {
			t.Errorf("no %v: the test has not met what it is for", k)
		}
	}
	if policy == semel.Park {
		lost += "; behind the proxy: " + tallyOf(inside) + fmt.Sprintf("; %d asked about, %d refused by their fence", l.asked, l.refused)
		if l.asked == 0 || l.refused == 0 {
			t.Errorf("%d asked about, %d late ones refused: the test has not met what it is for", l.asked, l.refused)
		}
	}
	if f.keys != keys {
		t.Errorf("%d keys had an effect or were asked about, want %d", f.keys, keys)
	}
	figure.Report(t, figure.Figure{
		Claim: "a request that is sent until it is answered takes effect once, and all its answers are one, over a network that loses, cuts, delays and stalls",
		Where: "semel proxy, sqlite, " + policy.String(), Trials: int64(keys), Failures: int64(len(f.wrong)), Seeds: fmt.Sprint(seed),
		Detail: fmt.Sprintf("%d requests, %d without an answer, %d answers, %d of them replays; before the proxy: %s", c.sent.Load(), c.lost.Load(), f.answers, c.replays.Load(), lost),
	})
}

func proxied(t *testing.T, to string, plan faultproxy.Plan) *faultproxy.Proxy {
	t.Helper()
	p, err := faultproxy.New(to, plan)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// tallyOf is what a proxy did to its connections.
func tallyOf(p *faultproxy.Proxy) string {
	var parts []string
	for k := faultproxy.Refuse; k <= faultproxy.Stall; k++ {
		parts = append(parts, fmt.Sprintf("%d %v", p.Count(k), k))
	}
	return strings.Join(parts, ", ")
}

// clients send keys until they are answered.
type clients struct {
	t      *testing.T
	url    string
	ledger *ledger

	made, sent, lost, replays atomic.Int64
	last                      sync.Map // key → what a request without an answer came to
}

// run has each key sent, each third by two at once, and each fourth once more
// after its answer.
func (c *clients) run(keys int) {
	kept, fresh := &http.Transport{MaxIdleConnsPerHost: 32}, &http.Transport{DisableKeepAlives: true}
	defer kept.CloseIdleConnections()
	var all sync.WaitGroup
	for range 48 {
		all.Go(func() {
			for {
				tr := fresh
				n := int(c.made.Add(1))
				if n > keys {
					return
				}
				if n%4 == 1 {
					tr = kept
				}
				key := fmt.Sprint("k", n)
				var twin sync.WaitGroup
				if n%3 == 0 {
					twin.Go(func() { c.pay(tr, key) })
				}
				c.pay(tr, key)
				if n%4 == 0 {
					c.pay(tr, key)
				}
				twin.Wait()
			}
		})
	}
	all.Wait()
}

// pay sends a key until it is answered.
func (c *clients) pay(tr http.RoundTripper, key string) {
	for n := range 500 {
		// A busy machine may need longer for an answer than the first time-out.
		if c.once(tr, key, 200*time.Millisecond*time.Duration(1+n/8)) {
			return
		}
		if c.t.Context().Err() != nil {
			return
		}
		<-time.After(5 * time.Millisecond)
	}
	c.t.Errorf("%s: no answer; the last: %v", key, c.why(key))
}

func (c *clients) why(key string) any {
	v, _ := c.last.Load(key)
	return v
}

// once sends a key once, and reports whether it was answered in time.
func (c *clients) once(tr http.RoundTripper, key string, timeout time.Duration) bool {
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, c.url, strings.NewReader(payment))
	if err != nil {
		c.t.Error(err)
		return true
	}
	req.GetBody = nil // or net/http sends it again by itself
	req.Header.Set("Idempotency-Key", key)
	c.sent.Add(1)
	res, err := (&http.Client{Transport: tr, Timeout: timeout}).Do(req)
	if err != nil {
		c.last.Store(key, err.Error())
		c.lost.Add(1)
		return false
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	c.last.Store(key, fmt.Sprint(res.Status, " ", string(body)))
	if err != nil {
		c.lost.Add(1)
		return false
	}
	switch {
	case res.StatusCode == http.StatusCreated:
		c.ledger.answered(key, string(body))
		if res.Header.Get("Idempotent-Replayed") == "true" {
			c.replays.Add(1)
		}
		return true
	case res.StatusCode == http.StatusConflict, res.StatusCode >= 500:
		return false
	case strings.Contains(string(body), "body_unreadable"), string(body) == "400 Bad Request": // the request was cut short, and the answer was not
		return false
	}
	c.t.Errorf("%s: %d %s", key, res.StatusCode, body)
	return true
}
