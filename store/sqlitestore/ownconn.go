package sqlitestore

import (
	"database/sql"

	"modernc.org/sqlite"
)

// connect begins the transaction on a connection that commits nothing else.
//
// SQLite itself rolls a transaction back when the disk is full, or when a context
// ends while a statement writes. The *sql.Tx does not notice. If the handler
// continues after such an error, each further statement is a transaction of its
// own and would be committed without the record, so the connection turns those
// commits into rollbacks.
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

// onCommit makes the connection call fn before each commit. Nil: no longer.
func onCommit(conn *sql.Conn, fn sqlite.CommitHookFn) error {
	return conn.Raw(func(c any) error {
		c.(sqlite.HookRegisterer).RegisterCommitHook(fn)
		return nil
	})
}
