package sqliteoutbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/sqlitestore"
)

// Outbox writes and publishes messages in the file of a store. Make it with [New], and
// close it before the store. Safe for concurrent use.
type Outbox struct {
	store         *sqlitestore.Store
	reads, writes *sql.DB
}

var (
	_ outbox.Store     = (*Outbox)(nil)
	_ outbox.Inspector = (*Outbox)(nil)
)

// New makes an outbox in the file of a store, with connections of its own.
func New(st *sqlitestore.Store) (*Outbox, error) {
	if st == nil {
		return nil, errors.New("sqliteoutbox: New: the store is nil; pass one that sqlitestore.Open returned")
	}
	// Relaxed: a commit that a loss of power takes back lets a message be sent again.
	writes, err := open(st.Path(), "immediate", "journal_mode(wal)", "synchronous(normal)", "secure_delete(1)")
	if err != nil {
		return nil, err
	}
	reads, err := open(st.Path(), "deferred", "query_only(1)")
	if err != nil {
		return nil, errors.Join(err, writes.Close())
	}
	return &Outbox{store: st, reads: reads, writes: writes}, nil
}

func open(path, lock string, pragmas ...string) (*sql.DB, error) {
	q := url.Values{"_pragma": append([]string{"busy_timeout(5000)"}, pragmas...), "_txlock": {lock}}
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // a drive letter
	}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: path, RawQuery: q.Encode()}).String())
	if err == nil {
		db.SetMaxOpenConns(1)
	}
	return db, err
}

// Close closes the connections of the outbox.
func (b *Outbox) Close() error { return errors.Join(b.reads.Close(), b.writes.Close()) }

// Woken implements outbox.Store: there are no notifications.
func (b *Outbox) Woken() <-chan struct{} { return nil }

const (
	next   = `UPDATE semel_outbox_last SET position = position + 1 RETURNING position`
	insert = `INSERT INTO semel_outbox (position, written, order_hash, lane, topic, order_key, id, call_hash, headers, body) VALUES (?, ?, ?, ?, ?, ?, ?, nullif(?, ''), ?, ?)`
)

// Put writes messages in a transaction on the file of the outbox. They are published
// after the transaction has committed. If ctx is that of a handler, the messages belong to
// its call: see outbox.Entry.Call.
func (b *Outbox) Put(ctx context.Context, tx *sql.Tx, messages ...outbox.Message) error {
	if err := b.store.CheckFile(); err != nil {
		return fmt.Errorf("sqliteoutbox: put: %w", err)
	}
	call := outbox.CallOf(ctx)
	for i := range messages {
		m, err := messages[i].Prepare()
		if err != nil {
			return err
		}
		headers, err := store.EncodeHeader(m.Headers)
		if err != nil {
			return err
		}
		body := m.Body
		if body == nil {
			body = []byte{}
		}
		order, position := m.Order(), int64(0)
		if err := tx.QueryRowContext(ctx, next).Scan(&position); err != nil {
			return fmt.Errorf("sqliteoutbox: put: %w", err)
		}
		if _, err := tx.ExecContext(ctx, insert, position, time.Now().UnixMicro(), order, outbox.LaneOf(order), m.Topic, m.OrderKey, m.ID, call, string(headers), body); err != nil {
			return fmt.Errorf("sqliteoutbox: put: %w", err)
		}
	}
	return nil
}

// write runs fn in a write transaction.
func (b *Outbox) write(ctx context.Context, what string, fn func(tx *sql.Tx) error) error {
	return b.inTx(ctx, b.writes, what, fn)
}

// read runs fn in a transaction that reads one snapshot.
func (b *Outbox) read(ctx context.Context, what string, fn func(tx *sql.Tx) error) error {
	return b.inTx(ctx, b.reads, what, fn)
}

// inTx runs fn in a transaction. Its connection goes on with a file that was removed or replaced,
// in which no other process writes messages, so the file is checked before and after fn.
func (b *Outbox) inTx(ctx context.Context, db *sql.DB, what string, fn func(tx *sql.Tx) error) error {
	err := b.store.CheckFile()
	var tx *sql.Tx
	if err == nil {
		tx, err = db.BeginTx(ctx, nil)
	}
	if err == nil {
		if err = fn(tx); err == nil {
			err = b.store.CheckFile()
		}
		if err == nil {
			err = tx.Commit()
		} else {
			_ = tx.Rollback() // err says what failed
		}
	}
	if err == nil || errors.Is(err, outbox.ErrNotFound) || errors.Is(err, outbox.ErrState) {
		return err
	}
	return fmt.Errorf("sqliteoutbox: %s: %w", what, err)
}
