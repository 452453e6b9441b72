package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/outbox/webhook"
	"github.com/semel-go/semel/semelhttp"
	"github.com/semel-go/semel/store/sqlitestore"
	"github.com/semel-go/semel/store/sqlitestore/sqliteoutbox"
)

// shop takes orders. Its tables, Semel's records and the outbox are in one file.
type shop struct {
	store *sqlitestore.Store
	box   *sqliteoutbox.Outbox
	http.Handler
}

func openShop(ctx context.Context, path string) (_ *shop, err error) {
	s := &shop{}
	if s.store, err = sqlitestore.Open(ctx, path, nil); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	db, err := sql.Open("sqlite", path) // the driver that sqlitestore uses
	if err != nil {
		return nil, err
	}
	_, err = db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS purchase (id INTEGER PRIMARY KEY, customer TEXT NOT NULL, item TEXT NOT NULL)")
	if err = errors.Join(err, db.Close()); err != nil {
		return nil, err
	}
	if s.box, err = sqliteoutbox.New(s.store); err != nil {
		return nil, err
	}
	atomic, err := sqlitestore.NewAtomic(s.store, nil)
	if err != nil {
		return nil, err
	}
	once, err := semelhttp.Middleware(atomic, customer, nil)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("POST /orders", once(http.HandlerFunc(s.order)))
	s.Handler = mux
	return s, nil
}

func (s *shop) close() {
	if s.box != nil {
		_ = s.box.Close() // every message is committed
	}
	_ = s.store.Close() // every order is committed
}

// customer names the authenticated customer. Replace basic authentication by your own.
func customer(r *http.Request) (string, error) {
	name, _, ok := r.BasicAuth()
	if !ok {
		return "", errors.New("not authenticated")
	}
	return name, nil
}

// order answers a request that comes for the first time. The order, the message and the
// answer commit together. If the status is 500, nothing is committed, and the same request
// runs again.
func (s *shop) order(w http.ResponseWriter, r *http.Request) {
	var o struct {
		Item string `json:"item"`
	}
	if err := json.NewDecoder(r.Body).Decode(&o); err != nil || o.Item == "" {
		http.Error(w, `send {"item": NAME}`, http.StatusBadRequest)
		return
	}
	id, err := s.book(r.Context(), o.Item)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.WriteHeader(http.StatusCreated)
	_, _ = fmt.Fprintf(w, "order %d\n", id) // the answer is in memory until the commit
}

// book writes an order and the message about it in the transaction of the request.
func (s *shop) book(ctx context.Context, item string) (int64, error) {
	x, _ := semel.FromContext(ctx)
	tx, ok := sqlitestore.TxFrom(ctx)
	if !ok {
		return 0, errors.New("an order needs a transaction")
	}
	done, err := tx.ExecContext(ctx, "INSERT INTO purchase (customer, item) VALUES (?, ?)", x.Tenant(), item)
	if err != nil {
		return 0, err
	}
	id, err := done.LastInsertId()
	if err != nil {
		return 0, err
	}
	return id, s.box.Put(ctx, tx, outbox.Message{
		Topic: "webhook", OrderKey: x.Tenant(), ID: x.DownstreamKey("placed"), Body: fmt.Appendf(nil, `{"order": %d, "item": %q}`, id, item),
	})
}

// publish sends the webhooks until ctx ends.
func (s *shop) publish(ctx context.Context, endpoints map[string]webhook.Endpoint) error {
	sink, err := webhook.New(func(_ context.Context, m *outbox.Message) (webhook.Endpoint, error) {
		to, ok := endpoints[m.OrderKey]
		if !ok {
			return to, fmt.Errorf("customer %q has no endpoint", m.OrderKey)
		}
		return to, nil
	}, nil)
	if err != nil {
		return err
	}
	publisher, err := outbox.New(s.box, sink, &outbox.Options{Observe: outbox.LogEvents(nil)})
	if err != nil {
		return err
	}
	return publisher.Run(ctx)
}

// serveShop takes orders and sends webhooks until ctx ends.
func serveShop(ctx context.Context, path, address string, endpoints map[string]webhook.Endpoint) error {
	s, err := openShop(ctx, path)
	if err != nil {
		return err
	}
	defer s.close()
	ctx, stop := context.WithCancel(ctx)
	published := make(chan error, 1)
	go func() { published <- s.publish(ctx, endpoints) }()
	err = serve(ctx, address, s)
	stop()
	return errors.Join(err, <-published)
}
