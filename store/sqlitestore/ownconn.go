package sqlitestore

import (
	"database/sql"

	"modernc.org/sqlite"
)

// connect begins the transaction, on a connection that commits nothing else.
//
// SQLite rolls a transaction back by itself when a statement that writes is
// interrupted, because its context has ended, and when the disk is full. The
// *sql.Tx does not notice. What a handler then executes on it, for it may go on
// behind such an error, is a transaction each, and would be committed without
// the record.
func (t *ownTx) connect() (*sql.Conn, *sql.Tx, error) {
	conn, err := t.s.txs.Conn(t.life)
	if err != nil {
		return nil, nil, err
	}
	err = onCommit(conn, func() int32 {
		if t.committing.Load() {
			return 0
		}
		return 1 // it becomes a rollback
	})
	var tx *sql.Tx
	if err == nil {
		tx, err = conn.BeginTx(t.life, nil)
	}
	if err != nil {
		_ = conn.Close()
	}
	return conn, tx, err
}

// onCommit has the connection ask fn before each commit; nil: no more.
func onCommit(conn *sql.Conn, fn sqlite.CommitHookFn) error {
	return conn.Raw(func(c any) error {
		c.(sqlite.HookRegisterer).RegisterCommitHook(fn)
		return nil
	})
}
