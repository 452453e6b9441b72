package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/semel-go/semel/examples/internal/exampletest"
	"github.com/semel-go/semel/outbox/webhook"
)

// inbox is the file of a customer's server.
type inbox string

// messages is what the server has stored.
func (i inbox) messages(t *testing.T) (bodies []string) {
	t.Helper()
	db, err := sql.Open("sqlite", string(i))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.QueryContext(t.Context(), "SELECT body FROM received ORDER BY n")
	if err != nil {
		return nil // nothing has come yet, and there is no table
	}
	defer rows.Close()
	for rows.Next() {
		var body string
		if err := rows.Scan(&body); err != nil {
			t.Fatal(err)
		}
		bodies = append(bodies, body)
	}
	return bodies
}

// startCustomer starts the server of a customer. Until up is set, it stores messages and
// its answers are lost.
func startCustomer(t *testing.T, name string, up *atomic.Bool) (webhook.Endpoint, inbox) {
	t.Helper()
	path := filepath.Join(t.TempDir(), name+".db")
	secret := []byte("a secret of 32 bytes for " + name + " ...")
	r, err := newReceiver(t.Context(), path, secret, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.close)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if up.Load() {
			r.ServeHTTP(w, q)
			return
		}
		r.ServeHTTP(httptest.NewRecorder(), q)
		http.Error(w, "the gateway is down", http.StatusServiceUnavailable)
	}))
	t.Cleanup(server.Close)
	return webhook.Endpoint{URL: server.URL, Secret: secret}, inbox(path)
}

// place sends a request, twice, as a client does that got no answer, and returns the body.
func place(t *testing.T, url, customer, key, item string) string {
	t.Helper()
	var answers [2]string
	for i := range answers {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/orders", strings.NewReader(fmt.Sprintf(`{"item": %q}`, item)))
		if err != nil {
			t.Fatal(err)
		}
		r.SetBasicAuth(customer, "password")
		r.Header.Set("Idempotency-Key", key)
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		if err = errors.Join(err, res.Body.Close()); err != nil || res.StatusCode != http.StatusCreated {
			t.Fatalf("status %d, %s, error %v", res.StatusCode, body, err)
		}
		answers[i] = string(body)
	}
	if answers[0] != answers[1] {
		t.Errorf("the request that came again got %q, and the first %q", answers[1], answers[0])
	}
	return answers[0]
}

// The server of ann loses its answers, and the shop is restarted meanwhile. Each order
// reaches its customer once and in order, and bob does not wait for ann.
func TestShop_CustomerFailsAndShopRestarts_EachWebhookOnceInOrder(t *testing.T) {
	var annUp, bobUp atomic.Bool
	bobUp.Store(true)
	ann, annGot := startCustomer(t, "ann", &annUp)
	bob, bobGot := startCustomer(t, "bob", &bobUp)
	endpoints := map[string]webhook.Endpoint{"ann": ann, "bob": bob}
	path := filepath.Join(t.TempDir(), "shop.db")

	first := startShop(t, path, endpoints)
	for i := range 3 {
		place(t, first.url, "ann", fmt.Sprint("a", i), fmt.Sprint("book", i))
		place(t, first.url, "bob", fmt.Sprint("b", i), fmt.Sprint("lamp", i))
	}
	exampletest.WaitFor(t, "bob has three orders, and ann the first", func() bool {
		return len(bobGot.messages(t)) == 3 && len(annGot.messages(t)) == 1
	})
	first.stop()
	second := startShop(t, path, endpoints)
	if answer := place(t, second.url, "ann", "a1", "book1"); answer != "order 3\n" {
		t.Errorf("after the restart the client of order 3 gets %q", answer)
	}
	annUp.Store(true)
	exampletest.WaitFor(t, "ann has three orders", func() bool { return len(annGot.messages(t)) >= 3 })
	second.stop()
	check(t, "ann", annGot, "book")
	check(t, "bob", bobGot, "lamp")
}

// running is a shop with its publisher.
type running struct {
	url  string
	stop func()
}

func startShop(t *testing.T, path string, endpoints map[string]webhook.Endpoint) *running {
	t.Helper()
	s, err := openShop(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s)
	ctx, cancel := context.WithCancel(t.Context())
	published := make(chan error, 1)
	go func() { published <- s.publish(ctx, endpoints) }()
	stop := sync.OnceFunc(func() {
		server.Close()
		cancel()
		if err := <-published; err != nil {
			t.Error(err)
		}
		s.close()
	})
	t.Cleanup(stop)
	return &running{server.URL, stop}
}

// check compares the messages that a customer has stored with the orders that it placed.
func check(t *testing.T, name string, got inbox, item string) {
	t.Helper()
	messages := got.messages(t)
	for i, body := range messages {
		if len(messages) != 3 || !strings.HasSuffix(body, fmt.Sprintf(`"item": "%s%d"}`, item, i)) {
			t.Errorf("%s has stored %q, want three messages, of %s0 to %s2", name, messages, item, item)
			return
		}
	}
}

func TestReceiver_WrongSignature_Unauthorized(t *testing.T) {
	var up atomic.Bool
	up.Store(true)
	ann, got := startCustomer(t, "ann", &up)
	res, err := http.Post(ann.URL, "application/json", strings.NewReader(`{"order": 1}`))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusUnauthorized || len(got.messages(t)) > 0 {
		t.Errorf("a webhook without a signature got the status %d, and the receiver stored %q", res.StatusCode, got.messages(t))
	}
}

func TestRun_UnknownCommand_Error(t *testing.T) {
	for _, args := range [][2]string{{"", ""}, {"receive", "nobody"}} {
		if err := run(t.Context(), "", args[0], args[1], io.Discard); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
}
