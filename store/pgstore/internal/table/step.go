package table

// heldRecord finds and locks the record of a lease, for the two statements below. A takeover
// waits for the lock, or the statement waits for it and finds no row. Steps of one call
// share the lock.
const heldRecord = `WITH p AS (SELECT r.id, r.created, c.now FROM (SELECT {now} AS now, set_config('lock_timeout', coalesce($6::text, current_setting('lock_timeout')), true)) c
		CROSS JOIN {s}.semel_record r WHERE r.id = $1::uuid AND r.owner = $2::uuid AND r.fence = $3::bigint AND r.state = 2 FOR SHARE OF r)`

// recordStep inserts a step if the lease is held, and returns the step that is
// there then. A step that is there already is written again, so that the commit waits for
// the disk and the replicas as the first one did.
const recordStep = `
	INSERT INTO {s}.semel_step AS s (record, created, name, recorded, data) SELECT p.id, p.created, $4::bytea, p.now, $5::bytea FROM p
	ON CONFLICT (record, created, name) DO UPDATE SET recorded = s.recorded RETURNING data`

// recordNewStep records a step in a transaction. It returns false if the record has a step
// of that name. If another transaction that may have recorded it is about to end, the
// statement waits for that.
const recordNewStep = `,
	i AS (INSERT INTO {s}.semel_step (record, created, name, recorded, data) SELECT p.id, p.created, $4::bytea, p.now, $5::bytea FROM p
		ON CONFLICT (record, created, name) DO NOTHING RETURNING 1)
	SELECT EXISTS (SELECT FROM i) FROM p`

// steps reads the steps of a lease's record. A record without steps has one row without a
// step.
const steps = `SELECT s.name, s.recorded, s.data, {sync}, c.idle
	FROM (SELECT set_config('idle_in_transaction_session_timeout', coalesce($4::text, current_setting('idle_in_transaction_session_timeout')), true) AS idle) c
		CROSS JOIN {s}.semel_record r LEFT JOIN {s}.semel_step s ON s.record = r.id AND s.created = r.created
	WHERE r.id = $1::uuid AND r.owner = $2::uuid AND r.fence = $3::bigint ORDER BY s.n`

// The statements of timers. moveTimer counts 1 also if the timer has the new version
// already.
const (
	setTimer = `INSERT INTO {s}.semel_timer (id, version, due, operation, tenant, key)
		SELECT $1::uuid, $2::uuid, {now} + $3::bigint, $4::bytea, $5::bytea, $6::bytea
		ON CONFLICT (id) DO UPDATE SET version = excluded.version, due = excluded.due`

	moveTimer = `UPDATE {s}.semel_timer SET version = $2::uuid, due = CASE WHEN version = $2::uuid THEN due ELSE {now} + $3::bigint END
		WHERE id = $1::uuid AND version IN ($2::uuid, $4::uuid)`

	dropTimer = `DELETE FROM {s}.semel_timer WHERE id = $1::uuid AND version = $2::uuid`

	// dueTimers has a row of nulls if none is due.
	dueTimers = `SELECT c.now, t.due, t.version, t.tenant, t.key FROM (SELECT {now} AS now) c LEFT JOIN LATERAL (SELECT * FROM {s}.semel_timer s
		WHERE s.operation = $1::bytea AND s.due <= c.now + $2::bigint ORDER BY s.due LIMIT $3::bigint) t ON true`
)

// erase deletes a record that is as it was seen, with its steps, and keeps its fence.
// The commit waits for the disk, because a record that came back after a crash of the
// server would be valid again.
const erase = `WITH u AS (DELETE FROM {s}.semel_record r USING (SELECT set_config('lock_timeout', coalesce($7::text, current_setting('lock_timeout')), true)) c
		WHERE r.id = $1::uuid AND r.state = $2::smallint AND r.owner = $3::uuid AND r.fence = $4::bigint AND r.until = $5::bigint AND r.expires = $6::bigint
		RETURNING r.id, r.fence),
	d AS (` + dropSteps + `),
	m AS (UPDATE {s}.semel_meta m SET swept_fence = u.fence FROM u WHERE m.swept_fence < u.fence)
	SELECT count(*) FROM u`
