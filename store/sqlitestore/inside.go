package sqlitestore

import (
	"context"
	"database/sql"
	"sync/atomic"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

type txKey struct{}

// txIn is the transaction of a running handler, and its store.
type txIn struct {
	s     *Store
	tx    *sql.Tx
	outer *txIn       // the transaction around it; nil: none
	over  atomic.Bool // the handler has returned, though its context may still be used
}

// lend runs fn with a context that carries the transaction until fn returns.
func (s *Store) lend(ctx context.Context, tx *sql.Tx, x *semel.Execution, fn semel.Handler) (store.Outcome, error) {
	in := &txIn{s: s, tx: tx}
	in.outer, _ = ctx.Value(txKey{}).(*txIn)
	defer in.over.Store(true)
	return fn(context.WithValue(ctx, txKey{}, in), x)
}

// inside returns the transaction of this store whose handler uses ctx.
func (s *Store) inside(ctx context.Context) (*sql.Tx, bool) {
	in, _ := ctx.Value(txKey{}).(*txIn)
	for ; in != nil; in = in.outer {
		if in.s == s && !in.over.Load() {
			return in.tx, true
		}
	}
	return nil, false
}

// TxFrom returns the transaction of the Atomic whose handler got ctx, for
// http.Handlers and message handlers. Outside of a handler ok is false.
func TxFrom(ctx context.Context) (*sql.Tx, bool) {
	in, ok := ctx.Value(txKey{}).(*txIn)
	if !ok {
		return nil, false
	}
	return in.tx, true
}
