package schema

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
	"github.com/semel-go/semel/store/pgstore/internal/table"
)

// Scrub rewrites the tables of records, steps and timers, and the planner's statistics,
// which have samples of their values, so that no byte of a deleted row is left in them. It
// waits until nobody can read the rows that were deleted before.
func (s Schema) Scrub(ctx context.Context, pool *pgxpool.Pool, wait time.Duration) error {
	if err := waitForReaders(ctx, pool, wait); err != nil {
		return err
	}
	tables, err := s.Tables(ctx, pool)
	if err != nil {
		return err
	}
	for _, name := range []string{"semel_step", "semel_timer"} {
		tables = append(tables, s.Quoted()+"."+name)
	}
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	// While VACUUM waits for a lock, all calls wait behind it.
	if _, err := conn.Exec(ctx, "SET lock_timeout = "+table.Literal(pgwire.Millis(wait))); err != nil {
		return err
	}
	defer func() { _, _ = conn.Exec(context.WithoutCancel(ctx), "RESET lock_timeout") }()
	for _, name := range tables {
		if err := rewrite(ctx, conn, "(FULL, ANALYZE)", name); err != nil {
			return err
		}
	}
	// If there are partitions, their parent has statistics of its own.
	if _, err := conn.Exec(ctx, "ANALYZE "+s.Quoted()+"."+table.Name); err != nil {
		return err
	}
	return rewrite(ctx, conn, "FULL", "pg_catalog.pg_statistic")
}

// rewrite rewrites a table. If the role may not do that, the server only warns; but a
// table that was rewritten has another file.
func rewrite(ctx context.Context, conn *pgxpool.Conn, options, name string) error {
	const file = "SELECT pg_relation_filenode($1::text::regclass)::bigint"
	var before, after int64
	if err := conn.QueryRow(ctx, file, name).Scan(&before); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, "VACUUM "+options+" "+name); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := conn.QueryRow(ctx, file, name).Scan(&after); err != nil {
		return err
	}
	if after == before {
		return fmt.Errorf("the server has not rewritten %s; the role must own the tables of the store and the database, or be a superuser", name)
	}
	return nil
}

// findReader finds somebody who may read rows that were deleted before the transaction
// $1. VACUUM FULL copies such rows.
const findReader = `SELECT pg_has_role(current_user, 'pg_read_all_stats', 'MEMBER'), (SELECT r.who FROM (
	SELECT format('process %s of user %s, whose transaction began at %s,', pid, usename, xact_start) AS who FROM pg_stat_activity
		WHERE pid <> pg_backend_pid() AND (age(backend_xmin) >= age($1::text::xid) OR age(backend_xid) >= age($1::text::xid))
	UNION ALL SELECT format('the prepared transaction %s', gid) FROM pg_prepared_xacts WHERE age(transaction) >= age($1::text::xid)
	UNION ALL SELECT format('the replication slot %s', slot_name) FROM pg_replication_slots
		WHERE age(xmin) >= age($1::text::xid) OR age(catalog_xmin) >= age($1::text::xid)) r LIMIT 1)`

// waitForReaders waits until nobody can read rows that were deleted before the call.
func waitForReaders(ctx context.Context, pool *pgxpool.Pool, wait time.Duration) error {
	var now string
	if err := pool.QueryRow(ctx, "SELECT pg_current_xact_id()::xid::text").Scan(&now); err != nil {
		return err
	}
	for start := time.Now(); ; {
		var seesAll bool
		var reader *string
		switch err := pool.QueryRow(ctx, findReader, now).Scan(&seesAll, &reader); {
		case err != nil:
			return err
		case !seesAll:
			return errors.New("the role cannot see whether somebody still reads deleted rows, which would stay then; grant it pg_read_all_stats")
		case reader == nil:
			return nil
		case time.Since(start) > wait:
			return fmt.Errorf("%w: %s may still read deleted rows, which would stay; end it, and scrub again", pgwire.ErrBusy, *reader)
		}
		pause := time.NewTimer(50 * time.Millisecond)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return ctx.Err()
		}
	}
}
