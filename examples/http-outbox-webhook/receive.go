package main

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/outbox/webhook"
	"github.com/semel-go/semel/store/sqlitestore"
)

// receiver is the server of a customer. It checks the signature of a webhook, and keeps
// each message once.
type receiver struct {
	store  *sqlitestore.Store
	once   *sqlitestore.Atomic
	secret []byte
	out    io.Writer
}

func newReceiver(ctx context.Context, path string, secret []byte, out io.Writer) (*receiver, error) {
	store, err := sqlitestore.Open(ctx, path, nil)
	if err != nil {
		return nil, err
	}
	once, err := sqlitestore.NewAtomic(store, nil)
	if err != nil {
		_ = store.Close() // nothing is written
		return nil, err
	}
	return &receiver{store, once, secret, out}, nil
}

func (c *receiver) close() { _ = c.store.Close() } // every message is committed

const largestBody = 1 << 20

// ServeHTTP answers 2xx after the message is stored, and never before. After any other
// answer the shop sends it again.
func (c *receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, largestBody))
	if err == nil {
		err = webhook.Verify(c.secret, r.Header, body, time.Now())
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return
	}
	call := semel.Call{Operation: "webhook", Tenant: semel.Shared, Key: r.Header.Get("Webhook-Id"), Payload: semel.Bytes(body)}
	err = sqlitestore.Once(r.Context(), c.once, call, func(ctx context.Context, _ *semel.Execution, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS received (n INTEGER PRIMARY KEY, body TEXT NOT NULL)"); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, "INSERT INTO received (body) VALUES (?)", string(body))
		return err
	})
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	_, _ = fmt.Fprintf(c.out, "received %s\n", body) // for people
	w.WriteHeader(http.StatusNoContent)
}
