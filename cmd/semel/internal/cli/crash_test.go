//go:build unix

package cli

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// kills is how often the proxy is killed in each mode.
func kills() int {
	switch {
	case os.Getenv("SEMEL_EVIDENCE") == "1":
		return 110
	case testing.Short():
		return 8
	}
	return 25
}

const crashLease = 500 * time.Millisecond

// payers send requests through a proxy that keeps dying. Each key is sent
// again until it is answered.
type payers struct {
	t    *testing.T
	addr string
	tr   *http.Transport

	next  atomic.Int64
	acks  atomic.Int64
	mu    sync.Mutex
	acked map[string]string // key → body
	open  []string          // keys without an answer
}

// work sends new keys, and now and then an open one, until stop.
func (p *payers) work(stop <-chan struct{}) {
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		default:
		}
		if i%4 == 3 {
			p.again()
		}
		p.pay(fmt.Sprint("k", p.next.Add(1)))
	}
}

// again sends an open key, if there is one.
func (p *payers) again() (sent bool) {
	key, sent := p.take()
	if sent && !p.pay(key) {
		<-time.After(10 * time.Millisecond) // its lease may hold yet
	}
	return sent
}

// take picks an open key.
func (p *payers) take() (string, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.open) == 0 {
		return "", false
	}
	key := p.open[0]
	p.open = p.open[1:]
	return key, true
}

// pay sends a key once, and notes what came of it.
func (p *payers) pay(key string) bool {
	r, err := post(p.t.Context(), p.tr, p.addr, "/pay", key, `{"amount":1}`)
	for errors.Is(err, syscall.ECONNREFUSED) { // it is dead at the moment, and has seen nothing
		<-time.After(5 * time.Millisecond)
		r, err = post(p.t.Context(), p.tr, p.addr, "/pay", key, `{"amount":1}`)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil || r.status != http.StatusCreated {
		p.open = append(p.open, key)
		if err == nil && r.status < 500 && r.status != http.StatusConflict {
			p.t.Errorf("%s: %d %s", key, r.status, r.body)
		}
		return false
	}
	p.acked[key] = r.body
	p.acks.Add(1)
	return true
}

func TestCampaign_ProxyKilled_EachKeyTakesEffectOnce(t *testing.T) {
	for _, policy := range []string{"retry", "park"} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			testKills(t, policy)
		})
	}
}

func testKills(t *testing.T, policy string) {
	l := newBank(t)
	l.slow, l.lag = 3*time.Millisecond, 5*crashLease // some requests are on their way when all others think them dead
	addr := freeAddr(t)
	args := []string{"--listen", addr, "--upstream", l.URL, "--scope", "single", "--store", "sqlite:" + filepath.Join(t.TempDir(), "semel.db"),
		"--on-doubt", policy, "--lease", crashLease.String(), "--sweep-every", "200ms", "--wait", "200ms"}
	if policy == "park" {
		args = append(args, "--reconcile-url", l.URL+"/reconcile", "--reconcile-every", "200ms")
	}
	p := &payers{t: t, addr: addr, tr: wire(t), acked: map[string]string{}}
	proxy := start(t, args...)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() { p.work(stop) })
	}
	n := kills()
	for range n {
		before := p.acks.Load()
		eventually(t, 3*time.Minute, "acknowledgements between two kills", func() bool { return p.acks.Load() > before+20 })
		proxy.kill()
		proxy = start(t, args...)
	}
	close(stop)
	wg.Wait()

	// No key is stuck: once the last lease is over, each is answered.
	open := len(p.open)
	const patience = crashLease + time.Minute // without a single answer: there may be a thousand keys, and a slow disk
	for seen, end := p.acks.Load(), time.Now().Add(patience); time.Now().Before(end) && p.again(); {
		if n := p.acks.Load(); n > seen {
			seen, end = n, time.Now().Add(patience)
		}
	}
	if key, ok := p.take(); ok {
		t.Errorf("%s, and %d more, are stuck", key, len(p.open))
	}
	l.busy.Wait()
	p.tr.CloseIdleConnections() // connections to the killed proxy, which the client may not have noticed
	// Every duplicate gets the acknowledged answer.
	for key, body := range p.acked {
		r, err := post(t.Context(), p.tr, addr, "/pay", key, `{"amount":1}`)
		if err != nil || r.status != http.StatusCreated || r.body != body || !r.replayed() || r.header.Get("Location") != "/pay/"+key {
			t.Errorf("%s was acknowledged with %s, and is replayed with %d %s %v, %v", key, body, r.status, r.body, r.header, err)
		}
	}
	keys, twice := l.count()
	t.Logf("%s: %d kills, %d keys sent, %d acknowledged and replayed alike, %d with an effect, %d with more than one, %d asked, %d refused by their fence, %d open after the last kill",
		policy, n, p.next.Load(), len(p.acked), keys, twice, l.asked, l.refused, open)
	evidence := func(claim string, trials, failures int) {
		t.Logf(`evidence: {"claim":%q,"where":"proxy on SQLite, %s","trials":%d,"failures":%d,"detail":"%d kills, %d keys without an answer after the last"}`,
			claim, policy, trials, failures, n, open)
	}
	evidence("what a killed proxy had acknowledged is replayed alike, and no key is stuck", int(p.next.Load()), int(p.next.Load())-len(p.acked))
	if policy == "park" { // retry promises one recorded outcome, not one effect
		evidence("a key takes effect once, though the proxy is killed", keys, twice)
	}
	if policy == "park" && twice > 0 {
		t.Errorf("%d keys took effect twice", twice)
	}
	// A late effect is met about once in eight kills: in few of them perhaps not at all.
	if policy == "park" && n >= 25 && (l.asked == 0 || n >= 100 && l.refused == 0) {
		t.Errorf("%d asked, %d refused by their fence: the test has not met what it is for", l.asked, l.refused)
	}
	if int(p.next.Load()) != len(p.acked) || keys != len(p.acked) {
		t.Errorf("%d keys were sent, %d acknowledged, %d had an effect", p.next.Load(), len(p.acked), keys)
	}
}
