package sqlitestore

import (
	"context"
	"database/sql"
	"sync/atomic"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

type txKey struct{}

// txIn is a transaction that a handler has, and the store that it belongs to.
type txIn struct {
	s     *Store
	tx    *sql.Tx
	outer *txIn       // of the handler within which this one runs; nil: there is none
	over  atomic.Bool // the handler has returned, and left its context to others
}

// lend runs fn with a context that has the transaction until fn returns.
func (s *Store) lend(ctx context.Context, tx *sql.Tx, x *semel.Execution, fn semel.Handler) (store.Outcome, error) {
	in := &txIn{s: s, tx: tx}
	in.outer, _ = ctx.Value(txKey{}).(*txIn)
	defer in.over.Store(true)
	return fn(context.WithValue(ctx, txKey{}, in), x)
}

// inside is the transaction of this store in whose handler ctx is used.
func (s *Store) inside(ctx context.Context) (*sql.Tx, bool) {
	in, _ := ctx.Value(txKey{}).(*txIn)
	for ; in != nil; in = in.outer {
		if in.s == s && !in.over.Load() {
			return in.tx, true
		}
	}
	return nil, false
}

// TxFrom is the transaction of the Atomic whose handler was given ctx: for
// http.Handlers and message handlers. False outside of one.
func TxFrom(ctx context.Context) (*sql.Tx, bool) {
	in, ok := ctx.Value(txKey{}).(*txIn)
	if !ok {
		return nil, false
	}
	return in.tx, true
}
