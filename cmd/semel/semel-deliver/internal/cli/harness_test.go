package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel/internal/proctest"
)

// delivering is a command that runs in this process.
type delivering struct {
	stop func() (code int) // as SIGTERM does
	log  *proctest.Log
}

// startDelivery starts the command.
func startDelivery(t *testing.T, args ...string) *delivering {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	d := &delivering{log: &proctest.Log{}}
	ended := make(chan int, 1)
	go func() {
		ended <- Run(ctx, args, func(string) string { return "" }, &bytes.Buffer{}, d.log)
	}()
	stopped := false
	d.stop = func() (code int) {
		if !stopped {
			stopped = true
			cancel()
			code = <-ended
		}
		return code
	}
	t.Cleanup(func() {
		_ = d.stop()
		if t.Failed() {
			t.Log(d.log.String())
		}
	})
	return d
}

// find waits for a line in the log and returns what its group matches.
func (d *delivering) find(t *testing.T, pattern string) string {
	t.Helper()
	re := regexp.MustCompile(pattern)
	eventually(t, "the log has "+pattern, func() bool { return re.MatchString(d.log.String()) })
	return re.FindStringSubmatch(d.log.String())[1]
}

// eventually waits until something has happened.
func eventually(t testing.TB, event string, happened func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(3 * time.Minute); !happened(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("not within 3 minutes: %s", event)
		}
	}
}

// get is the answer to a GET.
func get(t *testing.T, address string) (int, string) {
	t.Helper()
	res, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// endpoint is a service that answers with the status that the body names: "first" for
// the first request of a key, "status" for each, and else 200.
type endpoint struct {
	*httptest.Server
	mu    sync.Mutex
	order []string       // the keys of all requests
	final map[string]int // final answers by key
}

func newEndpoint(t *testing.T) *endpoint {
	e := &endpoint{final: map[string]int{}}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct{ First, Status int }
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		key, err := strconv.Unquote(r.Header.Get("Idempotency-Key"))
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		e.order = append(e.order, key)
		if body.First != 0 && r.Header.Get("Semel-Attempt") == "1" {
			w.WriteHeader(body.First)
			return
		}
		if e.final[key]++; body.Status != 0 {
			w.WriteHeader(body.Status)
		}
	}))
	t.Cleanup(e.Close)
	return e
}

// effects is how many final answers were given.
func (e *endpoint) effects() (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, count := range e.final {
		n += count
	}
	return n
}

// of are the requests of a key.
func (e *endpoint) of(key string) []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(e.order), func(k string) bool { return k != key })
}

// check checks that each key of each lane had one effect, in its order.
func (e *endpoint) check(t *testing.T, lanes, each int) {
	t.Helper()
	for lane := range lanes {
		last := -1
		for n := range each {
			key := fmt.Sprintf("k%d-%d", lane, n)
			if got := len(e.of(key)); got != 1 {
				t.Errorf("%s was sent %d times", key, got)
			}
			e.mu.Lock()
			at := slices.Index(e.order, key)
			e.mu.Unlock()
			if at < last {
				t.Errorf("%s overtook an earlier message", key)
			}
			last = at
		}
	}
}
