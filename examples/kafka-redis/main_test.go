package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/semel-go/semel/examples/internal/exampletest"
	"github.com/semel-go/semel/store/redisstore/redistest"
)

// post is a provider that sends a mail for each key, and loses every other
// answer after it has sent one.
type post struct {
	mu      sync.Mutex
	mails   map[string]int    // how often each was sent
	mailOf  map[string]string // the mail of each key
	repeats int               // requests whose mail had been sent
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
	if p.mailOf[key] != "" {
		p.repeats++
		return
	}
	p.mailOf[key] = m.ID
	if p.mails[m.ID]++; len(p.mailOf)%2 == 0 {
		panic(http.ErrAbortHandler) // the connection breaks
	}
}

func (p *post) sent() (mails, repeated int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.mails), p.repeats
}

func TestServe_NotificationSentAgain_MailIsSentOnce(t *testing.T) {
	p := &post{mails: map[string]int{}, mailOf: map[string]string{}}
	s := httptest.NewServer(p)
	defer s.Close()
	c := &config{redis: redistest.Start(t, redistest.Fast...).URL(), provider: s.URL}
	broker := exampletest.StartKafka(t)
	c.kafka = broker.Addr
	for range 2 { // the second time the topics exist
		if err := c.run(t.Context(), "topics"); err != nil {
			t.Fatal(err)
		}
	}
	first := exampletest.Serve(t, c.run)
	exampletest.Serve(t, c.run) // shares the partitions
	var many []mail
	for n := range 40 {
		many = append(many, mail{fmt.Sprint("more-", n), fmt.Sprintf("%d@example.org", n%7), "hello"})
	}
	if err := errors.Join(c.run(t.Context(), "send"), send(t.Context(), c, append(many[:20:20], many...)...)); err != nil {
		t.Fatal(err)
	}
	exampletest.WaitFor(t, "some are sent", func() bool { n, _ := p.sent(); return n > 5 })
	first() // the other member takes over
	if err := errors.Join(c.run(t.Context(), "send"), send(t.Context(), c, many...)); err != nil {
		t.Fatal(err)
	}
	exampletest.WaitFor(t, "all are handled", func() bool { return broker.Committed(t, group) == broker.Records(t, topic) })
	if n, repeated := p.sent(); n != 42 || repeated == 0 {
		t.Errorf("%d of 42 mails were sent; %d requests were repeated", n, repeated)
	}
	for id, n := range p.mails {
		if n != 1 {
			t.Errorf("%s was sent %d times", id, n)
		}
	}
	// Only attempts whose answer was lost are repeated. A notification that was
	// handled causes no request.
	if _, repeated := p.sent(); repeated > 42 {
		t.Errorf("%d requests were repeated", repeated)
	}
}

func TestRun_NoVerb_Error(t *testing.T) {
	if err := (&config{}).run(t.Context(), ""); err == nil {
		t.Error("run without a verb returned no error")
	}
}
