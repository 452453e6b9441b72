package storeurl

import (
	"errors"
	"io"

	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore"
	"github.com/semel-go/semel/store/pgstore/pgoutbox"
	"github.com/semel-go/semel/store/sqlitestore"
	"github.com/semel-go/semel/store/sqlitestore/sqliteoutbox"
)

// Outbox is the outbox of an open store. Close it before the store.
type Outbox interface {
	outbox.Store
	outbox.Inspector
	io.Closer
}

// OutboxOf opens the outbox of a store. Listen is for a publisher: its outbox waits for
// notifications of PostgreSQL on a connection of its own.
func OutboxOf(h Handle, listen bool) (Outbox, error) {
	if st, ok := store.As[*pgstore.Store](h); ok {
		return pgoutbox.New(st, &pgoutbox.Options{NoListen: !listen})
	}
	if st, ok := store.As[*sqlitestore.Store](h); ok {
		return sqliteoutbox.New(st)
	}
	return nil, errors.New("this store has no outbox; there are outboxes in sqlite:PATH and postgres://USER@HOST/DATABASE")
}
