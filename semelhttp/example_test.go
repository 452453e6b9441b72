package semelhttp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/semelhttp"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// accountKey is the context key under which the authentication puts the account.
type accountKey struct{}

func authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		account := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer token-of-")
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), accountKey{}, account)))
	})
}

// account returns the tenant of a request.
func account(r *http.Request) (string, error) {
	name, _ := r.Context().Value(accountKey{}).(string)
	return name, nil
}

// send is a client that prints the answer.
func send(url, key, body string) {
	r, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		log.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer token-of-ann")
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		log.Fatal(err)
	}
	if resp.Header.Get("Content-Type") == "application/problem+json" {
		var p struct{ Title string }
		if err := json.Unmarshal(answer, &p); err != nil {
			log.Fatal(err)
		}
		answer = []byte(p.Title)
	}
	fmt.Printf("%d %s (replayed: %v)\n", resp.StatusCode, answer, semelhttp.Replayed(resp))
}

func ExampleMiddleware() {
	guard, err := semel.New(memstore.New(nil), nil)
	if err != nil {
		log.Fatal(err)
	}
	once, err := semelhttp.Middleware(guard, account, nil)
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("POST /payments", once(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x, _ := semel.FromContext(r.Context())
		fmt.Println("charging, with a key for the bank:", x.DownstreamKey("bank") != "")
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, "payment 4711")
	})))
	server := httptest.NewServer(authenticate(mux))
	defer server.Close()

	send(server.URL+"/payments", "k1", "10 EUR")
	send(server.URL+"/payments", "k1", "10 EUR")
	send(server.URL+"/payments", "k1", "99 EUR")
	send(server.URL+"/payments", "", "10 EUR")
	// Output:
	// charging, with a key for the bank: true
	// 201 payment 4711 (replayed: false)
	// 201 payment 4711 (replayed: true)
	// 422 Idempotency-Key is already used (replayed: false)
	// 400 Idempotency-Key is missing (replayed: false)
}

// If clients send no key, KeyFrom makes it from the fields that identify the order.
func ExampleOptions_keyFrom() {
	guard, err := semel.New(memstore.New(nil), nil)
	if err != nil {
		log.Fatal(err)
	}
	once, err := semelhttp.Middleware(guard, account, &semelhttp.Options{
		KeyFrom: func(r *http.Request, body io.Reader) (string, error) {
			var order struct{ ID string }
			if err := json.NewDecoder(body).Decode(&order); err != nil || order.ID == "" {
				return "", err
			}
			return "order:" + order.ID, nil
		},
		Payload: func(r *http.Request, body io.Reader) (semel.Payload, error) {
			doc, err := io.ReadAll(body)
			return semel.Fields(doc, "id", "total"), err // the time of sending does not count
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("POST /orders", once(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "ordered") })))
	server := httptest.NewServer(authenticate(mux))
	defer server.Close()

	send(server.URL+"/orders", "", `{"id": "17", "total": 5, "sent": "12:00"}`)
	send(server.URL+"/orders", "", `{"id": "17", "total": 5, "sent": "12:01"}`)
	send(server.URL+"/orders", "", `{"total": 5}`)
	// Output:
	// 200 ordered (replayed: false)
	// 200 ordered (replayed: true)
	// 400 Idempotency-Key is missing (replayed: false)
}

// A long report is accepted now and made by a worker.
func ExampleAccept() {
	guard, err := semel.New(memstore.New(nil), nil)
	if err != nil {
		log.Fatal(err)
	}
	queue := make(chan string, 10) // stands for a queue that delivers at least once
	reports, err := semelhttp.Accept(guard, account, func(w http.ResponseWriter, r *http.Request, t semel.Ticket) {
		if t.Result == nil {
			queue <- t.Token // each time, because sending it twice is harmless
			w.WriteHeader(http.StatusAccepted)
			fmt.Fprint(w, "wait")
			return
		}
		fmt.Fprintf(w, "%s", t.Result.Body)
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("POST /reports", reports)
	server := httptest.NewServer(authenticate(mux))
	defer server.Close()

	send(server.URL+"/reports", "k1", "2026")
	send(server.URL+"/reports", "k1", "2026")
	for range 2 { // the worker
		call, err := guard.Redeem(<-queue)
		if err != nil {
			log.Fatal(err)
		}
		if _, err := guard.Run(context.Background(), call, func(context.Context, *semel.Execution) (store.Outcome, error) {
			fmt.Println("working")
			return store.Outcome{Body: []byte("all is well")}, nil
		}); err != nil {
			log.Fatal(err)
		}
	}
	send(server.URL+"/reports", "k1", "2026")
	// Output:
	// 202 wait (replayed: false)
	// 202 wait (replayed: true)
	// working
	// 200 all is well (replayed: true)
}

func ExampleTransport() {
	attempts := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if attempts++; attempts < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s, with a key: %v", body, r.Header.Get("Idempotency-Key") != "")
	}))
	defer server.Close()

	transport, err := semelhttp.NewTransport(nil, nil)
	if err != nil {
		log.Fatal(err)
	}
	client := &http.Client{Transport: transport}
	resp, err := client.Post(server.URL, "text/plain", strings.NewReader("hello"))
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(resp.Body)
	fmt.Printf("%d attempts: %s\n", attempts, answer)
	// Output: 3 attempts: hello, with a key: true
}

// The requests of a handler need keys that are the same in each attempt.
func ExampleWithKey() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println("the webhook is called")
	}))
	defer server.Close()
	transport, err := semelhttp.NewTransport(nil, nil)
	if err != nil {
		log.Fatal(err)
	}
	client := &http.Client{Transport: transport}
	guard, err := semel.New(memstore.New(nil), nil)
	if err != nil {
		log.Fatal(err)
	}
	notify := func(ctx context.Context) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(r)
		if err != nil {
			return err
		}
		return resp.Body.Close()
	}
	call := semel.Call{Operation: "notify", Tenant: semel.Shared, Key: "k1", Payload: semel.NoPayload()}
	err = semel.Once(context.Background(), guard, call, func(ctx context.Context, x *semel.Execution) error {
		fmt.Println("without a key it is refused:", errors.Is(notify(ctx), semelhttp.ErrNoKey))
		return notify(semelhttp.WithKey(ctx, x.DownstreamKey("webhook")))
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// without a key it is refused: true
	// the webhook is called
}
