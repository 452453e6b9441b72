package pgstore

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
)

// result is what each operation keeps.
var result = `{"id":"pay_0123456789","amount":4200,"currency":"EUR","status":"succeeded","created":"2026-11-20T17:00:00Z","customer":"cus_0123456789","description":"one of many","metadata":{"order":"0123456789"}}`

// published are the patterns that people copy: a table with a text key, jsonb
// and an index on the expiry, by database/sql, which prepares its statements.
type published struct {
	db   *sql.DB
	work time.Duration // additional work of the handler
}

func newPublished(t *testing.T, s *Store) *published {
	mustExec(t, s.appPool, `CREATE TABLE idempotency_keys (scope text, key text, state text NOT NULL, result jsonb, expires_at timestamptz NOT NULL, PRIMARY KEY (scope, key));
		CREATE INDEX ON idempotency_keys (expires_at); CREATE TABLE business (key text, amount bigint)`)
	db := stdlib.OpenDBFromPool(s.appPool)
	t.Cleanup(func() { _ = db.Close() })
	return &published{db: db}
}

// twoTx claims in one transaction, runs the handler, and completes in another.
func (p *published) twoTx(ctx context.Context, key string) error {
	run, err := p.claim(ctx, key)
	if err != nil || !run {
		return err
	}
	sleepBusy(p.work)
	tx, err := p.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(ctx, `UPDATE idempotency_keys SET state = 'done', result = $3 WHERE scope = $1 AND key = $2`, "s", key, result); err != nil {
		return err
	}
	return tx.Commit()
}

func (p *published) claim(ctx context.Context, key string) (run bool, err error) {
	tx, err := p.db.BeginTx(ctx, nil)
	if err != nil {
		return false, err
	}
	defer func() { _ = tx.Rollback() }()
	var state string
	var kept sql.NullString
	err = tx.QueryRowContext(ctx, `SELECT state, result FROM idempotency_keys WHERE scope = $1 AND key = $2 FOR UPDATE`, "s", key).Scan(&state, &kept)
	if errors.Is(err, sql.ErrNoRows) {
		_, err = tx.ExecContext(ctx, `INSERT INTO idempotency_keys VALUES ($1, $2, 'started', NULL, now() + interval '1 day') ON CONFLICT DO NOTHING`, "s", key)
		run = true
	}
	if err != nil {
		return false, err
	}
	return run, tx.Commit()
}

// oneTx has the handler between the insert and the update of one transaction.
func (p *published) oneTx(ctx context.Context, key string) error {
	tx, err := p.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	_, err = tx.ExecContext(ctx, `INSERT INTO idempotency_keys VALUES ($1, $2, 'started', NULL, now() + interval '1 day')`, "s", key)
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == pgwire.UniqueViolation {
		_ = tx.Rollback()
		_, err = p.claim(ctx, key)
		return err
	}
	if err != nil {
		return err
	}
	sleepBusy(p.work)
	if _, err := tx.ExecContext(ctx, `INSERT INTO business VALUES ($1, 1)`, key); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `UPDATE idempotency_keys SET state = 'done', result = $3 WHERE scope = $1 AND key = $2`, "s", key, result); err != nil {
		return err
	}
	return tx.Commit()
}

// sleepBusy is what a handler does that takes time and no processor.
func sleepBusy(d time.Duration) {
	if d > 0 {
		<-time.After(d)
	}
}
