package dboscompare

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// call is what a process tells the ledger: that a step, or its compensation, has its
// effect now, or that a process got the result of a saga.
type call struct {
	Process, Saga, Step, Key string
	Undo, InDoubt            bool
	Returned                 string // the result, if that is what it tells
}

func (c *call) String() string {
	switch {
	case c.Returned != "":
		return "returned"
	case c.Undo:
		return "-" + c.Step
	}
	return c.Step
}

// answer is what the other system does.
type answer string

const (
	agrees  answer = ""
	refuses answer = "refused" // for good
	fails   answer = "failed"  // nobody knows whether it happened
)

// ledger is the other system of all steps, in the process of the test.
type ledger struct {
	url     string
	mu      sync.Mutex
	calls   []call
	changed chan struct{} // closed and replaced at each call
	// answer decides about a call, the nth of its step and saga. It may wait.
	answer func(c *call, n int) answer
}

func newLedger(t *testing.T) *ledger {
	l := &ledger{changed: make(chan struct{}), answer: func(*call, int) answer { return agrees }}
	server := httptest.NewServer(http.HandlerFunc(l.serve))
	l.url = server.URL
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return l
}

func (l *ledger) serve(w http.ResponseWriter, r *http.Request) {
	var c call
	if err := json.NewDecoder(r.Body).Decode(&c); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	l.mu.Lock()
	n := 1
	for i := range l.calls {
		if l.calls[i].Saga == c.Saga && l.calls[i].String() == c.String() {
			n++
		}
	}
	l.calls = append(l.calls, c)
	close(l.changed)
	l.changed = make(chan struct{})
	decide := l.answer
	l.mu.Unlock()
	if c.Returned != "" {
		return
	}
	switch decide(&c, n) {
	case refuses:
		w.WriteHeader(http.StatusConflict)
	case fails:
		w.WriteHeader(http.StatusInternalServerError)
	}
}

// answers sets how the ledger decides.
func (l *ledger) answers(decide func(c *call, n int) answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answer = decide
}

// trace is what happened to a saga, in the order of arrival: "hold charge -hold".
func (l *ledger) trace(saga string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var words []string
	for i := range l.calls {
		if c := &l.calls[i]; c.Saga == saga && c.Returned == "" {
			words = append(words, c.String())
		}
	}
	return strings.Join(words, " ")
}

// find returns the calls of one kind: "charge", "-charge" or "returned".
func (l *ledger) find(saga, kind string) (found []call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.calls {
		if c.Saga == saga && c.String() == kind {
			found = append(found, c)
		}
	}
	return found
}

// oneKey fails the test unless all calls of a kind had the same key.
func (l *ledger) oneKey(t *testing.T, saga, kind string) {
	t.Helper()
	for _, c := range l.find(saga, kind) {
		if first := l.find(saga, kind)[0]; c.Key != first.Key || c.Key == "" {
			t.Errorf("%s of %s has the keys %q and %q", kind, saga, first.Key, c.Key)
		}
	}
}

// limit is how long a test waits for an event. It only ends tests that hang.
const limit = 5 * time.Minute

// until waits until the nth call of a kind has arrived.
func (l *ledger) until(t *testing.T, saga, kind string, n int) call {
	t.Helper()
	over := time.After(limit)
	for {
		l.mu.Lock()
		changed := l.changed
		l.mu.Unlock()
		if found := l.find(saga, kind); len(found) >= n {
			return found[n-1]
		}
		select {
		case <-changed:
		case <-over:
			t.Fatalf("%s of %s did not arrive %d times: %s", kind, saga, n, l.trace(saga))
		}
	}
}

var errRefused = errors.New("refused")

// tell tells the ledger of a call. errRefused: it refuses for good.
func tell(ctx context.Context, url string, c *call) error {
	body, err := json.Marshal(c)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	switch res.StatusCode {
	case http.StatusOK:
		return nil
	case http.StatusConflict:
		return errRefused
	}
	return fmt.Errorf("the ledger answers %s", res.Status)
}
