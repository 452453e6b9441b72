//go:build unix

package cli

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// http.Transport sends a request with an Idempotency-Key again by itself when
// a connection that was used before dies: the proxy must not let it.
func TestProxy_UpstreamDropsConnection_OneEffect(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	effects := map[string]int{}
	b := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.URL.Path == "/warm" {
			return
		}
		mu.Lock()
		effects[r.Header.Get("Idempotency-Key")]++
		mu.Unlock()
		panic(http.ErrAbortHandler)
	}))
	defer b.Close()
	p := start(t, "--listen", "127.0.0.1:0", "--upstream", b.URL, "--scope", "single", "--store", "memory:", "--on-doubt", "park")
	tr := wire(t)
	for name, body := range map[string]func() io.Reader{
		"empty":    func() io.Reader { return nil },
		"fixed":    func() io.Reader { return strings.NewReader("amount=1") },
		"streamed": func() io.Reader { return struct{ io.Reader }{strings.NewReader("amount=1")} },
	} {
		for round := range 5 {
			if r, err := post(t.Context(), tr, p.Addr, "/warm", fmt.Sprint(name, "warm", round), ""); err != nil || r.status != 200 {
				t.Fatalf("warm: %+v, %v", r, err)
			}
			key := fmt.Sprint(name, round)
			req, err := http.NewRequest(http.MethodPost, "http://"+p.Addr+"/pay", body())
			if err != nil {
				t.Fatal(err)
			}
			req.GetBody = nil
			req.Header.Set("Idempotency-Key", key)
			res, err := tr.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = res.Body.Close()
			mu.Lock()
			if res.StatusCode != http.StatusBadGateway || effects[key] != 1 {
				t.Errorf("%s: %s, %d effects", key, res.Status, effects[key])
			}
			mu.Unlock()
		}
	}
}

// storm is how many keys, and how many duplicates of each, go through.
func storm() (keys, duplicates int) {
	switch {
	case testing.Short():
		return 200, 8
	case raceEnabled: // which makes it many times slower
		return 2000, 8
	}
	return 10000, 8
}

func TestCampaign_ProxyManyDuplicates_OneEffectEach(t *testing.T) {
	t.Parallel()
	l := newBank(t)
	p := start(t, "--listen", "127.0.0.1:0", "--upstream", l.URL, "--scope", "header:X-Tenant", "--wait", "60s",
		"--store", "sqlite:"+filepath.Join(t.TempDir(), "semel.db"))
	keys, duplicates := storm()
	tr := wire(t)
	work := make(chan int)
	var wg sync.WaitGroup
	var mu sync.Mutex
	answers := make([]string, keys)
	replays := 0
	for range 64 {
		wg.Go(func() {
			for i := range work {
				r, err := post(t.Context(), tr, p.Addr, "/pay", fmt.Sprint("k", i), `{"amount":1}`, "X-Tenant", fmt.Sprint("t", i%7))
				mu.Lock()
				if err != nil || r.status != http.StatusCreated {
					t.Errorf("k%d: %+v, %v", i, r, err)
				} else if answers[i] == "" {
					answers[i] = r.body
				} else if answers[i] != r.body {
					t.Errorf("k%d: %s and %s", i, answers[i], r.body)
				}
				if r.replayed() {
					replays++
				}
				mu.Unlock()
			}
		})
	}
	for from := 0; from < keys; from += 16 { // the duplicates of 16 keys at a time, in a mix
		for range duplicates {
			for i := from; i < min(from+16, keys); i++ {
				work <- i
			}
		}
	}
	close(work)
	wg.Wait()
	had, twice := l.count()
	t.Logf("%d keys × %d: %d effects, %d twice, %d replays", keys, duplicates, had, twice, replays)
	if had != keys || twice != 0 || replays != keys*(duplicates-1) {
		t.Errorf("%d keys had an effect, %d twice, %d replays", had, twice, replays)
	}
}
