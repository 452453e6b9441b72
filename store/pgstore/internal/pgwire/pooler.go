package pgwire

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// errPrepared says that a pooler between the application and the server does not keep the
// prepared statements of its clients apart.
var errPrepared = fmt.Errorf("%w: a pooler hands the prepared statements of one client to others: add default_query_exec_mode=exec to the URL, or use PgBouncer 1.21 or later with max_prepared_statements", ErrUnsafe)

// Codes of the server for statements that another client has prepared, or not.
const (
	duplicateStatement = "42P05"
	unknownStatement   = "26000"
)

// ExplainPrepared is err, or errPrepared if a pooler is the cause.
func ExplainPrepared(err error) error {
	if c := Code(err); c == duplicateStatement || c == unknownStatement {
		return fmt.Errorf("%w: %w", errPrepared, err)
	}
	return err
}

// CheckPrepared returns errPrepared if the connections of a pool use prepared
// statements, and lead to a pooler that does not keep them apart. Otherwise the first
// process would work, and later ones would find its statements.
func CheckPrepared(ctx context.Context, pool *pgxpool.Pool) error {
	cfg := pool.Config()
	switch cfg.ConnConfig.DefaultQueryExecMode {
	case pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol:
		return nil
	default:
	}
	if isPooled, err := answersForOther(ctx, pool); err != nil || !isPooled {
		return ExplainPrepared(err)
	}
	cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	cfg.MaxConns, cfg.MinConns, cfg.MinIdleConns = 2, 0, 0
	plain, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return err
	}
	defer plain.Close()
	first, err := plain.Acquire(ctx)
	if err != nil {
		return err
	}
	defer first.Release()
	second, err := plain.Acquire(ctx)
	if err != nil {
		return err
	}
	defer second.Release()
	for range 5 { // a busy pooler may use another connection to the server
		name := "semel_" + rand.Text()
		for _, conn := range []*pgxpool.Conn{first, second} {
			if _, err := conn.Conn().PgConn().Prepare(ctx, name, "SELECT 1", nil); err != nil {
				return ExplainPrepared(err)
			}
		}
		for _, conn := range []*pgxpool.Conn{first, second} {
			_ = conn.Conn().PgConn().Deallocate(ctx, name) // otherwise it stays until the connection ends
		}
	}
	return nil
}

// answersForOther reports whether a pooler answers: its connections have other process
// ids than the server's.
func answersForOther(ctx context.Context, pool *pgxpool.Pool) (bool, error) {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return false, err
	}
	defer conn.Release()
	var pid int64
	err = conn.QueryRow(ctx, "SELECT pg_backend_pid()::bigint").Scan(&pid)
	return pid != int64(conn.Conn().PgConn().PID()), err
}
