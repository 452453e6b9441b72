package sqlitestore

import (
	"context"
	"database/sql"
)

// stmt is one of the statements below.
type stmt int

const (
	stBegin stmt = iota
	stCommit
	stRollback
	stLock
	stMeta
	stSelect
	stInsert
	stReplace
	stSettle
	stRenew
	stRaise
	stDelete
	stRaiseTo
	stErase
	stWindow
	stEnded
	stList
	stListDoubts
	stRecordStep
	stSteps
	stDropSteps
	stDeleteSteps
	stSetTimer
	stMoveTimer
	stDropTimer
	stTimerVersion
	stDueTimers
	stReceive
	stReceiveStep
	stmtCount
)

// columns are those of a row. For each query the driver makes a string of each column's
// name and declared type. +body and +former_owners are expressions, which have no declared
// type, and have short names, so that they cost a replay nothing.
const columns = `n, id, state, policy, fence, owner, attempt, until, expires, created, updated, completed, format,
	operation, tenant, key, holder, fingerprint_alg, fingerprint_key, fingerprint, last_error, code, codec, gone, header, +body AS b, +former_owners AS f`

// Times are parameters: the clock is read by the caller, under the lock.
var statements = [stmtCount]string{
	stBegin:    `BEGIN IMMEDIATE`,
	stCommit:   `COMMIT`,
	stRollback: `ROLLBACK`,

	// Takes the write lock, and changes nothing.
	stLock: `UPDATE semel_meta SET one = one WHERE one = 0`,
	stMeta: `SELECT store, schema, swept_fence FROM semel_meta WHERE one = 1`,

	stSelect: `SELECT ` + columns + ` FROM semel_record WHERE id = ?`,

	// Inserts nothing unless the fence is above every swept one.
	stInsert: `INSERT INTO semel_record (id, state, policy, fence, owner, attempt, until, created, updated, format,
		operation, tenant, key, holder, fingerprint_alg, fingerprint_key, fingerprint, last_error)
		SELECT ?, ?, ?, ?4, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM semel_meta WHERE one = 1 AND swept_fence < ?4
		ON CONFLICT (id) DO NOTHING`,

	// The fence is one of another store, so it is not compared with the swept ones.
	stReceive: `INSERT INTO semel_record (id, state, policy, fence, owner, attempt, until, created, updated, format,
		operation, tenant, key, holder, fingerprint_alg, fingerprint_key, fingerprint, last_error)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
	stReceiveStep: `INSERT INTO semel_step (record, created, name, recorded, data) VALUES (?, ?, ?, ?, ?)`,

	// After a comparison under the write lock.
	stReplace: `UPDATE semel_record SET state = ?, policy = ?, fence = ?, owner = ?, attempt = ?, until = ?, created = ?, updated = ?,
		format = ?, holder = ?, fingerprint_alg = ?, fingerprint_key = ?, fingerprint = ?, last_error = ?,
		former_owners = ?, expires = ?, completed = ?, code = ?, codec = ?, gone = ?, header = ?, body = ? WHERE id = ?`,

	stSettle: `UPDATE semel_record SET state = ?, attempt = ?, until = ?, updated = ?, last_error = ?,
		expires = ?, completed = ?, code = ?, codec = ?, gone = ?, header = ?, body = ?
		WHERE id = ? AND owner = ? AND fence = ? AND state = 2`,

	stRenew: `UPDATE semel_record SET until = ?, updated = ? WHERE id = ? AND owner = ? AND fence = ? AND state = 2`,

	// The rows to delete, selected twice: first for their fences.
	stRaise: `UPDATE semel_meta SET swept_fence = max(swept_fence,
		(SELECT coalesce(max(fence), 0) FROM semel_record WHERE n > ?1 AND n <= ?2 AND ` + expired + `)) WHERE one = 1`,
	stDelete: `DELETE FROM semel_record WHERE n > ?1 AND n <= ?2 AND ` + expired,

	// After a comparison under the write lock.
	stRaiseTo: `UPDATE semel_meta SET swept_fence = max(?, swept_fence) WHERE one = 1`,
	stErase:   `DELETE FROM semel_record WHERE id = ?`,

	// The last row of the next part of the table, so that a step of a
	// sweep reads no more rows than that.
	stWindow: `SELECT n FROM semel_record WHERE n > ? ORDER BY n LIMIT 1 OFFSET ?`,
	// 1 for an expired row, 0 for a lapsed one.
	stEnded: `SELECT (` + expired + `), ` + columns + ` FROM semel_record
		WHERE n > ?1 AND n <= ?2 AND format = 1 AND ((` + expired + `) OR state IN (1, 2) AND until <= ?3) ORDER BY n LIMIT ?4`,

	stList: `SELECT ` + columns + ` FROM semel_record WHERE n > ?1 AND (?2 = '' OR operation = ?2) AND (?3 = '' OR tenant = ?3)
		AND (?4 = 0 OR (1 << state) & ?4) AND updated <= ?5 AND (?7 = 0 OR expires BETWEEN 1 AND ?7)
		AND (?8 IS NULL OR key IN (?8, ?9) OR ?10 IS NOT NULL AND semel_short(CAST(operation AS BLOB), CAST(tenant AS BLOB), CAST(key AS BLOB)) IN (?10, ?11)) ORDER BY n LIMIT ?6`,
	// With statistics of a file in which most records were in doubt, SQLite would read
	// the table instead of the index.
	stListDoubts: `SELECT ` + columns + ` FROM semel_record INDEXED BY semel_in_doubt WHERE state = 6 AND n > ?1 ORDER BY n LIMIT ?2`,

	// Inserts nothing unless the lease is held, or if the name is there.
	stRecordStep: `INSERT INTO semel_step (record, created, name, recorded, data)
		SELECT id, created, ?1, ?2, ?3 FROM semel_record WHERE id = ?4 AND owner = ?5 AND fence = ?6 AND state = 2
		ON CONFLICT (record, created, name) DO NOTHING`,
	stSteps: `SELECT s.name, s.recorded, s.data FROM semel_record r LEFT JOIN semel_step s ON s.record = r.id AND s.created = r.created
		WHERE r.id = ? AND r.owner = ? AND r.fence = ? ORDER BY s.n`,
	// Of a record that begins a new life.
	stDropSteps: `DELETE FROM semel_step WHERE record = ?`,
	// Of the rows that stDelete is about to delete.
	stDeleteSteps: `DELETE FROM semel_step WHERE record IN (SELECT id FROM semel_record WHERE n > ?1 AND n <= ?2 AND ` + expired + `)`,

	stSetTimer: `INSERT INTO semel_timer (id, operation, tenant, key, version, due) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
		ON CONFLICT (id) DO UPDATE SET version = ?5, due = ?6`,
	stMoveTimer:    `UPDATE semel_timer SET version = ?, due = ? WHERE id = ? AND version = ?`,
	stDropTimer:    `DELETE FROM semel_timer WHERE id = ? AND version = ?`,
	stTimerVersion: `SELECT version FROM semel_timer WHERE id = ?`,
	stDueTimers:    `SELECT tenant, key, version, due FROM semel_timer WHERE operation = ? AND due <= ? ORDER BY due`,
}

// A record that a sweep may delete at time ?3: of a known format and in a
// state that expires, whatever its other columns hold.
const expired = `format = 1 AND state IN (3, 4, 5) AND expires <> 0 AND expires <= ?3`

// executor executes statements on a connection, prepared or not. It returns the
// driver's errors.
type executor interface {
	exec(ctx context.Context, s stmt, args ...any) (changed int64, err error)
	query(ctx context.Context, s stmt, args ...any) (*sql.Rows, error)
}

// prepared has the statements of one connection, or of a pool.
type prepared [stmtCount]*sql.Stmt

// preparer is a *sql.DB or a *sql.Conn.
type preparer interface {
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
}

func prepare(ctx context.Context, on preparer, which ...stmt) (*prepared, error) {
	var p prepared
	for _, s := range which {
		st, err := on.PrepareContext(ctx, statements[s]) //nolint:sqlclosecheck // prepared.close does
		if err != nil {
			p.close()
			return nil, err
		}
		p[s] = st
	}
	return &p, nil
}

func (p *prepared) close() {
	for _, st := range p {
		if st != nil {
			_ = st.Close()
		}
	}
}

func (p *prepared) exec(ctx context.Context, s stmt, args ...any) (int64, error) {
	return affected(p[s].ExecContext(ctx, args...))
}

func (p *prepared) query(ctx context.Context, s stmt, args ...any) (*sql.Rows, error) {
	return p[s].QueryContext(ctx, args...)
}

// unprepared executes statements in the application's transaction. The end of a
// context does not interrupt them, because SQLite would roll the whole transaction
// back.
type unprepared struct{ tx *sql.Tx }

func (u unprepared) exec(ctx context.Context, s stmt, args ...any) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	return affected(u.tx.ExecContext(context.WithoutCancel(ctx), statements[s], args...))
}

func (u unprepared) query(ctx context.Context, s stmt, args ...any) (*sql.Rows, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return u.tx.QueryContext(context.WithoutCancel(ctx), statements[s], args...)
}

func affected(res sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}
