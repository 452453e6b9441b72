package pgstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
)

// session is where single statements are sent to: a pool, or a transaction.
type session struct {
	db     pgwire.Execer
	sql    *statements
	strict *statements
	wait   *string // for a lock, as the server takes it; nil: as it is set
	inTx   bool    // a statement that fails ends the transaction
}

// newSession is one on the store's own connections.
func (s *Store) newSession(wait string) *session {
	return &session{db: s.own, sql: s.sql, strict: s.txSQL, wait: &wait}
}

// retry sends a statement again that the server refused, whole, for what
// another did at the same time: it was not carried out.
func (s *session) retry(fn func() error) error {
	if s.inTx {
		return fn() // only the whole transaction can be run again
	}
	return pgwire.Retry(fn)
}

// get reads a record.
func (s *session) get(ctx context.Context, key store.Key) (store.Found, error) {
	var now int64
	var w row
	err := s.db.QueryRow(ctx, s.sql.get, idOf(key)).Scan(w.fields(&now)...)
	if errors.Is(err, pgx.ErrNoRows) {
		return store.Found{}, store.ErrNotFound
	}
	if err != nil {
		return store.Found{}, err
	}
	return w.found(key, now)
}

// found is the row as it was read for key at now.
func (w *row) found(key store.Key, now int64) (store.Found, error) {
	r, err := w.record()
	if err == nil && r.Key != key {
		err = errCollision
	}
	if err != nil {
		return store.Found{}, err
	}
	return store.Found{Record: r, Now: store.Time(now)}, nil
}

// errCollision: fails closed. Nobody finds such a pair by chance; who looks for one
// on purpose gets no further with it, and stops nobody else.
var errCollision = fmt.Errorf("%w: another key has the same id; use another key", store.ErrCorrupt)
