package main

import (
	"context"
	"database/sql"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
	_ "modernc.org/sqlite" // the driver "sqlite"
)

// rivalTables are the tables of the published patterns: a text key, the answer as JSON, an
// index on the expiry, and a table for the handler's write.
const rivalTables = `CREATE TABLE idempotency_keys (scope text, key text, state text NOT NULL, result jsonb, expires_at timestamptz NOT NULL, PRIMARY KEY (scope, key));
	CREATE INDEX ON idempotency_keys (expires_at);
	CREATE TABLE seen (key text PRIMARY KEY);
	CREATE TABLE business (key text, amount bigint)`

// rivalSQL are the published patterns for PostgreSQL, by database/sql, as the articles
// have them.
type rivalSQL struct{ db *sql.DB }

// uniqueViolation is PostgreSQL's code for a key that is there.
const uniqueViolation = "23505"

// insertOnly inserts the key and keeps no answer: the least that refuses a duplicate.
func (r rivalSQL) insertOnly(ctx context.Context, key string, isNew bool) error {
	res, err := r.db.ExecContext(ctx, "INSERT INTO seen VALUES ($1) ON CONFLICT DO NOTHING", key)
	if err != nil {
		return err
	}
	n, err := res.RowsAffected()
	return checked(err, answer, n == 1, isNew)
}

// twoTx locks and inserts the key in one transaction, and keeps the answer in another.
func (r rivalSQL) twoTx(ctx context.Context, key string, isNew bool) error {
	kept, run, err := r.claim(ctx, key)
	if err != nil || !run {
		return checked(err, kept, false, isNew)
	}
	return checked(r.inTx(ctx, func(tx *sql.Tx) error { return finish(ctx, tx, key) }), answer, true, isNew)
}

func (r rivalSQL) claim(ctx context.Context, key string) (kept string, run bool, err error) {
	err = r.inTx(ctx, func(tx *sql.Tx) error {
		kept, run, err = lock(ctx, tx, key)
		return err
	})
	return kept, run, err
}

// lock reads the key with a lock of its row, and inserts it if it is not there.
func lock(ctx context.Context, tx *sql.Tx, key string) (kept string, run bool, err error) {
	var state string
	var result sql.NullString
	err = tx.QueryRowContext(ctx, "SELECT state, result FROM idempotency_keys WHERE scope = $1 AND key = $2 FOR UPDATE", "charge", key).Scan(&state, &result)
	if errors.Is(err, sql.ErrNoRows) {
		_, err = tx.ExecContext(ctx, "INSERT INTO idempotency_keys VALUES ($1, $2, 'started', NULL, now() + interval '1 day')", "charge", key)
		run = true
	}
	if result.Valid { // as jsonb it has other spaces than the answer
		kept = answer
	}
	return kept, run, err
}

// finish keeps the answer.
func finish(ctx context.Context, tx *sql.Tx, key string) error {
	_, err := tx.ExecContext(ctx, "UPDATE idempotency_keys SET state = 'done', result = $3 WHERE scope = $1 AND key = $2", "charge", key, answer)
	return err
}

// oneTxLock locks, inserts, works and keeps the answer in one transaction.
func (r rivalSQL) oneTxLock(ctx context.Context, key string, isNew bool) error {
	kept, run := "", false
	err := r.inTx(ctx, func(tx *sql.Tx) (err error) {
		if kept, run, err = lock(ctx, tx, key); err != nil || !run {
			return err
		}
		kept = answer
		return workAndFinish(ctx, tx, key)
	})
	return checked(err, kept, run, isNew)
}

// oneTxInsert is the same, but inserts first, and reads only if the key is there.
func (r rivalSQL) oneTxInsert(ctx context.Context, key string, isNew bool) error {
	err := r.inTx(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "INSERT INTO idempotency_keys VALUES ($1, $2, 'started', NULL, now() + interval '1 day')", "charge", key); err != nil {
			return err
		}
		return workAndFinish(ctx, tx, key)
	})
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == uniqueViolation {
		kept, run, err := r.claim(ctx, key)
		return checked(err, kept, run, isNew)
	}
	return checked(err, answer, true, isNew)
}

func workAndFinish(ctx context.Context, tx *sql.Tx, key string) error {
	if _, err := tx.ExecContext(ctx, insertBusiness, key); err != nil {
		return err
	}
	return finish(ctx, tx, key)
}

func (r rivalSQL) inTx(ctx context.Context, fn func(tx *sql.Tx) error) error {
	tx, err := r.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	if err := fn(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// rivalSQLite is the code that one writes without a library: prepared statements, one
// connection for writers and four for readers, and each commit synced.
type rivalSQLite struct {
	writer                         *sql.DB
	seen, claim, find, work, store *sql.Stmt
}

func newRivalSQLite(ctx context.Context, file string) (*rivalSQLite, func() error, error) {
	dsn := "file:" + file + "?_txlock=immediate&_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=busy_timeout(5000)"
	writer, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, nil, err
	}
	reader, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, nil, errors.Join(err, writer.Close())
	}
	writer.SetMaxOpenConns(1)
	reader.SetMaxOpenConns(4)
	end := func() error { return errors.Join(reader.Close(), writer.Close()) }
	r := &rivalSQLite{writer: writer}
	_, err = writer.ExecContext(ctx, `CREATE TABLE idempotency (key TEXT PRIMARY KEY, state INTEGER NOT NULL, expires INTEGER NOT NULL, result BLOB) WITHOUT ROWID;
		CREATE TABLE seen (key TEXT PRIMARY KEY) WITHOUT ROWID; CREATE TABLE business (key TEXT, amount INTEGER)`)
	for _, s := range []struct {
		to    **sql.Stmt
		db    *sql.DB
		query string
	}{
		{&r.seen, writer, "INSERT INTO seen VALUES (?) ON CONFLICT DO NOTHING"},
		{&r.claim, writer, "INSERT INTO idempotency (key, state, expires) VALUES (?, 1, unixepoch() + 86400) ON CONFLICT DO NOTHING"},
		{&r.find, reader, "SELECT result FROM idempotency WHERE key = ?"},
		{&r.work, writer, insertBusiness},
		{&r.store, writer, "UPDATE idempotency SET state = 2, result = ? WHERE key = ? AND state = 1"},
	} {
		if err == nil {
			*s.to, err = s.db.PrepareContext(ctx, s.query) //nolint:sqlclosecheck // end closes the databases, with their statements
		}
	}
	if err != nil {
		return nil, nil, errors.Join(err, end())
	}
	return r, end, nil
}

// insertOnly inserts the key and keeps no answer.
func (r *rivalSQLite) insertOnly(ctx context.Context, key string, isNew bool) error {
	n, err := affected(r.seen.ExecContext(ctx, key))
	return checked(err, answer, n == 1, isNew)
}

// twoCommits claims in one commit and keeps the answer in another.
func (r *rivalSQLite) twoCommits(ctx context.Context, key string, isNew bool) error {
	n, err := affected(r.claim.ExecContext(ctx, key))
	if err != nil || n == 0 {
		var kept string
		err = errors.Join(err, r.find.QueryRowContext(ctx, key).Scan(&kept))
		return checked(err, kept, false, isNew)
	}
	_, err = r.store.ExecContext(ctx, answer, key)
	return checked(err, answer, true, isNew)
}

// oneTx claims, works and keeps the answer in one transaction.
func (r *rivalSQLite) oneTx(ctx context.Context, key string, isNew bool) error {
	var run bool
	err := rivalSQL{r.writer}.inTx(ctx, func(tx *sql.Tx) error {
		n, err := affected(tx.StmtContext(ctx, r.claim).ExecContext(ctx, key)) //nolint:sqlclosecheck // the transaction closes its statements
		if run = n == 1; err != nil || !run {
			return err
		}
		_, err = tx.StmtContext(ctx, r.work).ExecContext(ctx, key)            //nolint:sqlclosecheck // likewise
		_, err2 := tx.StmtContext(ctx, r.store).ExecContext(ctx, answer, key) //nolint:sqlclosecheck // likewise
		return errors.Join(err, err2)
	})
	kept := answer
	if err == nil && !run {
		err = r.find.QueryRowContext(ctx, key).Scan(&kept)
	}
	return checked(err, kept, run, isNew)
}

func affected(res sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}
