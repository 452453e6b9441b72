//go:build unix

package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	semelcli "github.com/semel-go/semel/cmd/semel/internal/cli"
	"github.com/semel-go/semel/internal/proctest"
	"github.com/semel-go/semel/outbox"
)

// watched has the programs whose metrics a Prometheus server reads: the proxy, one that
// observes, the deliverer and the publisher. Each sends its requests to a service of the
// test.
type watched struct {
	targets map[string]string // the addresses of their metrics, by job
	proxies []string          // the URLs of the proxies
	deliver *delivering
	side    *side
	shop    *shop
	topic   string
}

const adminAddr = `msg="admin listening" addr=(\S+)`

func startWatched(t *testing.T) *watched {
	t.Helper()
	w := &watched{targets: map[string]string{}}
	dir := t.TempDir()

	upstream := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || strings.Contains(string(body), "crash") {
			panic(http.ErrAbortHandler) // the connection breaks off, which is doubt
		}
		rw.WriteHeader(http.StatusCreated)
	}))
	t.Cleanup(upstream.Close)
	for job, args := range map[string][]string{
		"proxy": {"--on-doubt", "park", "--store", "sqlite:" + filepath.Join(dir, "proxy.db"), "--sweep-every", "1s"}, "observe": {"--observe"},
	} {
		var front string
		front, w.targets[job] = startProxy(t, append(args, "--upstream", upstream.URL)...)
		w.proxies = append(w.proxies, front)
	}

	w.side = openNATS(t)
	w.deliver = startDelivery(t, append([]string{
		"--to", newEndpoint(t).URL, "--store", "sqlite:" + filepath.Join(dir, "deliver.db"), "--admin-listen", "127.0.0.1:0",
	}, w.side.args...)...)
	w.targets["deliver"] = w.deliver.find(t, adminAddr)

	w.shop = newShop(t)
	to := toWebhook(t)
	w.topic = to.topic
	publisher := startDelivery(t, append([]string{"publish", "--store", w.shop.url, "--admin-listen", "127.0.0.1:0"}, to.args...)...)
	w.targets["publish"] = publisher.find(t, adminAddr)
	return w
}

// startProxy starts a semel proxy in this process, and returns its two addresses.
func startProxy(t *testing.T, args ...string) (front, admin string) {
	t.Helper()
	log := &proctest.Log{}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan int, 1)
	go func() {
		ended <- semelcli.Run(ctx, append([]string{"proxy", "--scope", "single", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"}, args...),
			func(string) string { return "" }, strings.NewReader(""), &bytes.Buffer{}, log)
	}()
	t.Cleanup(func() {
		stop()
		<-ended
		if t.Failed() {
			t.Log(log.String())
		}
	})
	p := &delivering{log: log}
	return "http://" + p.find(t, `msg=listening addr=(\S+)`), p.find(t, adminAddr)
}

// load sends requests and messages until ctx ends: new ones, duplicates, keys with
// another payload, and some that end in doubt or in the dead letters.
func (w *watched) load(ctx context.Context, t *testing.T) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		key := fmt.Sprint("k", n)
		for _, body := range []string{"{}", "{}", `{"other": true}`} {
			w.post(ctx, t, key, body)
		}
		w.post(ctx, t, "", "{}")
		if n%20 == 0 {
			w.post(ctx, t, "crash"+key, `{"crash": true}`)
		}
		if ctx.Err() != nil {
			return
		}
		for range 2 {
			w.side.publish(t, key, "", "{}")
		}
		if n%10 == 0 {
			w.side.publish(t, "bad"+key, "", `{"status": 422}`)
			w.side.publish(t, "slow"+key, "", `{"first": 503}`)
		}
		w.shop.put(t, outbox.Message{Topic: w.topic, OrderKey: key, ID: key, Body: []byte("{}")})
	}
}

// post sends a request to the proxy. An empty key: without one.
func (w *watched) post(ctx context.Context, t *testing.T, key, body string) {
	for _, proxy := range w.proxies {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, proxy+"/payments", strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return
		}
		r.Header.Set("Content-Type", "application/json")
		if key != "" {
			r.Header.Set("Idempotency-Key", `"`+key+`"`)
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			if ctx.Err() == nil {
				t.Errorf("the proxy gives no answer: %v", err)
			}
			return
		}
		_ = res.Body.Close()
	}
}

// A counter that an alert watches is there before its first event, because rate does not
// see the event that makes a series.
func TestMetrics_AtStart_AlertedCountersAreZero(t *testing.T) {
	w := startWatched(t)
	for job, lines := range map[string][]string{
		"proxy": {
			`semel_calls_total\{operation="http",outcome="lease_lost",rule="/"\} 0`, `semel_calls_total\{operation="http",outcome="not_stored",rule="/"\} 0`,
			`semel_store_seconds_count\{answered="false",request="claim"\} 0`, `semel_in_doubt_records 0`, `semel_build_info\{go="go[^"]*",revision="[^"]*",version="[^"]+"\} 1`,
		},
		"deliver": {
			`semel_message_decisions_total\{action="dead-letter",reason="failed"\} 0`, `semel_message_decisions_total\{action="quarantine",reason="outcome_unknown"\} 0`,
			`semel_message_events_total\{event="settle_failed"\} 0`,
		},
		"publish": {`semel_outbox_sent_total 0`, `semel_build_info\{`},
	} {
		_, text := get(t, "http://"+w.targets[job]+"/metrics")
		for _, line := range lines {
			if !regexp.MustCompile("(?m)^" + line).MatchString(text) {
				t.Errorf("%s has no line %s in\n%s", job, line, text)
			}
		}
	}
}
