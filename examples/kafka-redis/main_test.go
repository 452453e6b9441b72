package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/store/redisstore/redistest"
)

func waitFor(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(4 * time.Minute); !is(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("not within 4 minutes: %s", what)
		}
	}
}

// member serves until the test ends, or stop is called.
func member(t *testing.T, c *config) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.run(ctx, "serve") }()
	over := false
	stop = func() {
		if over {
			return
		}
		over = true
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
	}
	t.Cleanup(stop)
	return stop
}

// post is a provider that sends a mail for each key, and loses every other
// answer after it has sent one.
type post struct {
	mu     sync.Mutex
	mails  map[string]int    // how often each was sent
	of     map[string]string // the mail of each key
	repeat int               // requests whose mail had been sent
}

func (p *post) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var m mail
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	key := r.Header.Get("Idempotency-Key")
	if p.of[key] != "" {
		p.repeat++
		return
	}
	p.of[key] = m.ID
	if p.mails[m.ID]++; len(p.of)%2 == 0 {
		panic(http.ErrAbortHandler) // the connection breaks
	}
}

func (p *post) sent() (mails, repeated int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.mails), p.repeat
}

// broker is a Kafka in this process, with the topics.
func broker(t *testing.T, c *config) *kadm.Client {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	c.kafka = cluster.ListenAddrs()[0]
	if err := c.run(t.Context(), "topics"); err != nil {
		t.Fatal(err)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(c.kafka))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return kadm.NewClient(client)
}

// left is how many records the group is not done with.
func left(t *testing.T, a *kadm.Client) (n int64) {
	t.Helper()
	ends, err := a.ListEndOffsets(t.Context(), topic)
	if err = errors.Join(err, ends.Error()); err != nil {
		t.Fatal(err)
	}
	ends.Each(func(o kadm.ListedOffset) { n += o.Offset })
	done, err := a.FetchOffsets(t.Context(), group)
	if err != nil {
		return n // there is no group yet
	}
	done.Each(func(o kadm.OffsetResponse) { n -= max(0, o.At) })
	return n
}

func TestEachMailIsSentOnce(t *testing.T) {
	p := &post{mails: map[string]int{}, of: map[string]string{}}
	s := httptest.NewServer(p)
	defer s.Close()
	c := &config{redis: redistest.Start(t, redistest.Fast...).URL(), provider: s.URL}
	admin := broker(t, c)
	first := member(t, c)
	member(t, c) // shares the partitions
	var many []mail
	for n := range 40 {
		many = append(many, mail{fmt.Sprint("more-", n), fmt.Sprintf("%d@example.org", n%7), "hello"})
	}
	if err := errors.Join(c.run(t.Context(), "send"), send(t.Context(), c, append(many[:20:20], many...)...)); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "some are sent", func() bool { n, _ := p.sent(); return n > 5 })
	first() // the other takes over
	if err := errors.Join(c.run(t.Context(), "send"), send(t.Context(), c, many...)); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "all are handled", func() bool { return left(t, admin) == 0 })
	if n, repeated := p.sent(); n != 42 || repeated == 0 {
		t.Errorf("%d of 42 mails were sent; %d requests were repeated", n, repeated)
	}
	for id, n := range p.mails {
		if n != 1 {
			t.Errorf("%s was sent %d times", id, n)
		}
	}
	// More could not be repeated than attempts whose answer was lost: what was
	// handled is not even asked about.
	if _, repeated := p.sent(); repeated > 42 {
		t.Errorf("%d requests were repeated", repeated)
	}
}

func TestAVerbIsNeeded(t *testing.T) {
	if err := (&config{}).run(t.Context(), ""); err == nil {
		t.Error("nothing was done, and that was no error")
	}
}
