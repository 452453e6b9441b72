package table

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
)

// Statements are the SQL statements for one schema. Parameters are cast, so that they
// have the same types with and without prepared statements (PgBouncer).
type Statements struct {
	Relaxed bool // the commit of a claim does not wait for the disk

	SetPlannerSettings, HasPlannerSettings, Get, Claim, ClaimMany, Swap, Settle, SettleMany, Renew, HeldLeases string
	FindExpired, DeleteExpired, List, Meta, Receive, ReceiveDoubt, ReceiveStep                                 string
	Lock, GetMany, Insert                                                                                      string
	LockMany, InsertMany                                                                                       string
	FindCompleted, LockAndInsert, LockAndInsertNew                                                             string
	RecordStep, RecordNewStep, Steps, Erase, Restart, SetTimer, MoveTimer, DropTimer, DueTimers                string
	doubtStatements
}

// InsertColumns are the columns that a claim writes. The others have defaults.
const InsertColumns = `id, owner, state, policy, attempt, until, expires, operation, tenant, key, holder,
	fingerprint_alg, fingerprint_key, fingerprint, last_error, code, gone, codec, header, body, created, updated, format, fence`

// wholeRow are the values for InsertColumns: $1 to $20 of ProposalArgs, and values
// that the store adds. The query around it must have c.now and m.swept_fence.
const wholeRow = proposed + `, c.now, c.now, 1, greatest(m.swept_fence + 1, c.now)`

const proposed = `$1::uuid, $2::uuid, $3::smallint, $4::smallint, $5::bigint, CASE WHEN $6::bigint IS NULL THEN 0 ELSE c.now + $6::bigint END, CASE WHEN $7::bigint IS NULL THEN 0 ELSE c.now + $7::bigint END,
	$8::bytea, $9::bytea, $10::bytea, $11::bytea, $12::bytea, $13::bytea, $14::bytea, $15::bytea,
	$16::bigint, $17::boolean, $18::bytea, $19::bytea, $20::bytea`

// ShortLockTimeout is how long a batch waits for a locked row, because all requests of
// the batch wait with it. A request whose row is locked longer leaves the batch, and
// waits alone for up to Options.LockTimeout.
const ShortLockTimeout = "100ms"

// NewStatements makes the statements for a schema. If relaxed, the commit of a claim
// does not wait for the disk. If spelled, statements name each column, because the
// table has its columns in another order than the migration.
func NewStatements(schema, clock string, relaxed, spelled bool) *Statements {
	columnsOf := func(prefix string) string { return prefix + strings.Join(Columns, ", "+prefix) }
	start := clock
	if start == WallClock {
		start = statementClock
	}
	schema = pgx.Identifier{schema}.Sanitize()
	fill := strings.NewReplacer(
		"{s}", schema,
		"{now}", clock, "{sync}", hasStandby, "{never}", strconv.FormatInt(pgwire.Never, 10),
		"{cols}", columnsOf(""), "{r.packed}", packedColumns("r", spelled), "{r.cols}", columnsOf("r."), "{ex.cols}", columnsOf("ex."), "{h.cols}", columnsOf("h."),
		// Without the outcome, which may be large. A lapsed row has none.
		"{ex.small}", strings.NewReplacer("ex.header", "NULL::bytea", "ex.body", "NULL::bytea").Replace(columnsOf("ex.")),
		"{insert}", InsertColumns,
		"{row}", wholeRow, "{row2}", strings.ReplaceAll(proposed, "c.now", start), "{start}", start,
		// Evaluated only when a row is written, so that it costs a duplicate nothing.
		"{relax}", map[bool]string{true: ", (SELECT set_config('synchronous_commit', 'off', true))"}[relaxed],
		"{take}", `INSERT INTO `+schema+`.semel_record (id, owner, key, fingerprint, state, policy, attempt, until, expires, operation, tenant, holder,
			fingerprint_alg, fingerprint_key, last_error, created, updated, format, fence)`,
		"{taken}", `$7::smallint, $8::smallint, $9::bigint, 0, (SELECT now + $10::bigint FROM c), $11::bytea, $12::bytea, $13::bytea, $14::bytea, $15::bytea, $16::bytea,
			(SELECT now FROM c), (SELECT now FROM c), 1, (SELECT greatest(m.swept_fence + 1, c.now) FROM c CROSS JOIN `+schema+`.semel_meta m WHERE m.one = 1)`,
		"{completed}", isCompleted, "{completed.packed}", completedColumns,
		"{short wait}", "set_config('lock_timeout', '"+ShortLockTimeout+"', true)",
		// The first bytes of store.Key.Digest.
		"{short}", "substr(sha256(int4send(octet_length(r.operation)) || r.operation || int4send(octet_length(r.tenant)) || r.tenant || int4send(octet_length(r.key)) || r.key), 1, 4)",
		"{expired}", "r.format = 1 AND r.state IN (3, 4, 5) AND r.expires <> 0",
	)
	var guards, current []string
	for _, name := range slices.Sorted(maps.Keys(PlannerSettings)) {
		guards = append(guards, "set_config("+Literal(name)+", "+Literal(PlannerSettings[name])+", true)")
		current = append(current, "current_setting("+Literal(name)+") = "+Literal(PlannerSettings[name]))
	}
	st := &Statements{
		Relaxed: relaxed,

		// Sent before a batch, in its round trip and transaction, if the connection
		// does not have PlannerSettings.
		SetPlannerSettings: `SELECT ` + strings.Join(guards, ", "),
		HasPlannerSettings: `SELECT ` + strings.Join(current, " AND "),

		Get: `SELECT {now}, {sync}, {cols} FROM {s}.semel_record WHERE id = $1::uuid`,

		// The insert decides. The read first saves a duplicate the insertion into the
		// index and a transaction id. If another transaction commits the row after the
		// read, neither the read nor the insert returns a row.
		Claim: `WITH ex AS MATERIALIZED (SELECT {r.packed} AS packed FROM {s}.semel_record r WHERE r.id = $1::uuid),
			c AS MATERIALIZED (SELECT {now} AS now, set_config('lock_timeout', coalesce($21::text, current_setting('lock_timeout')), true)),
			ins AS (INSERT INTO {s}.semel_record ({insert})
				SELECT {row} FROM c CROSS JOIN {s}.semel_meta m WHERE NOT EXISTS (SELECT FROM ex)
				ON CONFLICT (id) DO NOTHING RETURNING fence{relax})
			SELECT c.now, {sync}, ins.fence, ex.packed FROM c LEFT JOIN ins ON true LEFT JOIN ex ON true`,

		// LATERAL … LIMIT 1 forces one index lookup for each key. If a column has the
		// same value in all rows, its array has one element. unnest is in the select
		// list and not in FROM, so that its rows are not materialized. A locked row
		// must not delay the other rows.
		ClaimMany: `WITH c AS MATERIALIZED (SELECT t.now, greatest(m.swept_fence + 1, t.now) AS fence FROM (SELECT {now} AS now, {short wait}) t CROSS JOIN {s}.semel_meta m WHERE m.one = 1),
			i AS MATERIALIZED (SELECT u.*, h.packed FROM (SELECT unnest($1::uuid[]) AS u_id, unnest($2::uuid[]) AS u_owner, unnest($3::smallint[]) AS u_state,
					unnest($4::smallint[]) AS u_policy, unnest($5::bigint[]) AS u_attempt, unnest($6::bigint[]) AS u_until, unnest($7::bytea[]) AS u_operation,
					unnest($8::bytea[]) AS u_tenant, unnest($9::bytea[]) AS u_key, unnest($10::bytea[]) AS u_holder, unnest($11::bytea[]) AS u_alg,
					unnest($12::bytea[]) AS u_kid, unnest($13::bytea[]) AS u_sum, unnest($14::bytea[]) AS u_error) u
				LEFT JOIN LATERAL (SELECT {r.packed} AS packed FROM {s}.semel_record r WHERE r.id = u.u_id LIMIT 1) h ON true),
			ins AS (INSERT INTO {s}.semel_record (id, owner, state, policy, attempt, until, operation, tenant, key, holder,
					fingerprint_alg, fingerprint_key, fingerprint, last_error, created, updated, format, fence)
				SELECT u_id, u_owner, coalesce(u_state, ($3::smallint[])[1]), coalesce(u_policy, ($4::smallint[])[1]), coalesce(u_attempt, ($5::bigint[])[1]),
					c.now + coalesce(u_until, ($6::bigint[])[1]), coalesce(u_operation, ($7::bytea[])[1]), coalesce(u_tenant, ($8::bytea[])[1]), u_key,
					coalesce(u_holder, ($10::bytea[])[1]), coalesce(u_alg, ($11::bytea[])[1]), coalesce(u_kid, ($12::bytea[])[1]),
					coalesce(u_sum, ($13::bytea[])[1]), coalesce(u_error, ($14::bytea[])[1]), c.now, c.now, 1, c.fence
				FROM i CROSS JOIN c WHERE i.packed IS NULL
				ON CONFLICT (id) DO NOTHING RETURNING id, fence{relax})
			SELECT c.now, false, ins.id, ins.fence, NULL::bytea FROM ins CROSS JOIN c
			UNION ALL SELECT c.now, {sync}, i.u_id, NULL, i.packed FROM i CROSS JOIN c WHERE i.packed IS NOT NULL`,

		Swap: `UPDATE {s}.semel_record r SET owner = $2::uuid, state = $3::smallint, policy = $4::smallint, attempt = $5::bigint,
				until = coalesce(c.now + $6::bigint, 0), expires = coalesce(c.now + $7::bigint, 0),
				operation = $8::bytea, tenant = $9::bytea, key = $10::bytea, holder = $11::bytea,
				fingerprint_alg = $12::bytea, fingerprint_key = $13::bytea, fingerprint = $14::bytea, last_error = $15::bytea,
				code = $16::bigint, gone = $17::boolean, codec = $18::bytea, header = $19::bytea, body = $20::bytea,
				created = CASE WHEN $21::boolean THEN c.now ELSE r.created END, updated = c.now, format = 1, fence = greatest(r.fence + 1, c.now), former_owners = $28::bytea
			FROM (SELECT {now} AS now, set_config('lock_timeout', coalesce($27::text, current_setting('lock_timeout')), true)) c
			WHERE r.id = $1::uuid AND r.state = $22::smallint AND r.owner = $23::uuid AND r.fence = $24::bigint
				AND r.until = $25::bigint AND r.expires = $26::bigint
			RETURNING r.created, r.updated, r.fence{relax}`,

		Settle: `UPDATE {s}.semel_record r SET state = $4::smallint, attempt = $5::bigint,
				until = coalesce(c.now + $6::bigint, 0), expires = coalesce(c.now + $7::bigint, 0), last_error = $8::bytea,
				code = $9::bigint, gone = $10::boolean, codec = $11::bytea, header = $12::bytea, body = $13::bytea, updated = c.now
			FROM (SELECT {now} AS now, set_config('lock_timeout', coalesce($14::text, current_setting('lock_timeout')), true)) c
			WHERE r.id = $1::uuid AND r.owner = $2::uuid AND r.fence = $3::bigint AND r.state = 2`,

		// The clock is a subquery, because a join would copy it for each row.
		SettleMany: `WITH c AS MATERIALIZED (SELECT {now} AS now, {short wait})
			UPDATE {s}.semel_record r SET state = coalesce(u.state, ($4::smallint[])[1]), attempt = coalesce(u.attempt, ($5::bigint[])[1]),
				until = coalesce((SELECT now FROM c) + nullif(coalesce(u.until, ($6::bigint[])[1]), {never}), 0),
				expires = coalesce((SELECT now FROM c) + nullif(coalesce(u.expires, ($7::bigint[])[1]), {never}), 0),
				last_error = coalesce(u.error, ($8::bytea[])[1]), code = coalesce(u.code, ($9::bigint[])[1]),
				gone = coalesce(u.gone, ($10::boolean[])[1]), codec = u.codec, header = u.header, body = u.body, updated = (SELECT now FROM c)
			FROM (SELECT unnest($1::uuid[]) AS id, unnest($2::uuid[]) AS owner, unnest($3::bigint[]) AS fence,
				unnest($4::smallint[]) AS state, unnest($5::bigint[]) AS attempt, unnest($6::bigint[]) AS until, unnest($7::bigint[]) AS expires,
				unnest($8::bytea[]) AS error, unnest($9::bigint[]) AS code, unnest($10::boolean[]) AS gone,
				unnest($11::bytea[]) AS codec, unnest($12::bytea[]) AS header, unnest($13::bytea[]) AS body) u
			WHERE r.id = u.id AND r.owner = u.owner AND r.fence = u.fence AND r.state = 2
			RETURNING r.id`,

		// A locked row is left out. HeldLeases tells it from a lost lease.
		Renew: `WITH l AS MATERIALIZED (SELECT r.id FROM unnest($1::uuid[], $2::uuid[], $3::bigint[]) AS u(id, owner, fence)
				JOIN {s}.semel_record r ON r.id = u.id AND r.owner = u.owner AND r.fence = u.fence AND r.state = 2
				FOR UPDATE OF r SKIP LOCKED)
			UPDATE {s}.semel_record r SET until = c.now + $4::bigint, updated = c.now
			FROM l CROSS JOIN (SELECT {now} AS now) c WHERE r.id = l.id RETURNING r.id, r.owner, r.fence`,
		HeldLeases: `SELECT r.id, r.owner, r.fence FROM unnest($1::uuid[], $2::uuid[], $3::bigint[]) AS u(id, owner, fence)
			JOIN {s}.semel_record r ON r.id = u.id AND r.owner = u.owner AND r.fence = u.fence AND r.state = 2`,

		// Reads pages of one partition in the order of the disk, so that a pass over
		// the table needs no index. A TID range scan returns rows in that order,
		// although SQL does not guarantee it. With another plan a step could miss a
		// row; the next pass finds it. Sorting would read the whole range in each
		// step.
		FindExpired: `WITH c AS MATERIALIZED (SELECT {now} AS now),
			w AS MATERIALIZED (SELECT pg_relation_size({part name}) / current_setting('block_size')::bigint AS pages),
			o AS MATERIALIZED (SELECT r.ctid AS at, ({expired}) AS over, {r.cols} FROM {part} r CROSS JOIN c
				WHERE r.ctid > $1::text::tid AND r.ctid < $2::text::tid
				AND (({expired}) AND r.expires <= c.now OR r.format = 1 AND r.state IN (1, 2) AND r.until <= c.now)
				LIMIT $3::bigint)
			SELECT c.now, w.pages, ex.at::text, ex.over, {ex.small} FROM c CROSS JOIN w LEFT JOIN o ex ON true ORDER BY ex.at`,
		// The commit does not wait for the disk, because rows that come back after a
		// crash of the server have expired, and swept_fence comes back with them.
		DeleteExpired: `WITH l AS MATERIALIZED (SELECT r.ctid AS at FROM {part} r
				WHERE r.ctid = ANY($1::text[]::tid[]) AND {expired} AND r.expires <= $2::bigint FOR UPDATE SKIP LOCKED),
			d AS (DELETE FROM {part} r USING l WHERE r.ctid = l.at RETURNING r.fence, r.id),
			s AS (DELETE FROM {s}.semel_step s USING d WHERE s.record = d.id),
			f AS MATERIALIZED (SELECT max(fence) AS fence, count(*) AS n FROM d),
			m AS (UPDATE {s}.semel_meta m SET swept_fence = greatest(m.swept_fence, f.fence) FROM f WHERE m.swept_fence < f.fence)
			SELECT n, set_config('synchronous_commit', 'off', true) FROM f`,

		Meta: `SELECT store, schema FROM {s}.semel_meta WHERE one = 1`,

		// The advisory lock saves other callers a useless run; the unique index
		// decides. A caller that gets the lock just after its holder has committed may
		// not see the holder's record. Its insert then fails.
		Lock: `SELECT {now}, {sync}, pg_try_advisory_xact_lock($2::integer, $3::integer), m.swept_fence, m.store,
				(SELECT {r.packed} FROM {s}.semel_record r WHERE r.id = $1::uuid),
				set_config('idle_in_transaction_session_timeout', coalesce($4::text, current_setting('idle_in_transaction_session_timeout')), true)
			FROM {s}.semel_meta m WHERE m.one = 1`,
		// n is the position of the key in the array.
		GetMany: `WITH c AS MATERIALIZED (SELECT {now} AS now)
			SELECT c.now, {sync}, u.n, h.packed FROM c CROSS JOIN unnest($1::uuid[]) WITH ORDINALITY AS u(id, n)
				CROSS JOIN LATERAL (SELECT {r.packed} AS packed FROM {s}.semel_record r WHERE r.id = u.id LIMIT 1) h`,
		Insert: `INSERT INTO {s}.semel_record ({insert}) VALUES ({row2}, $21::bigint, {start}, 1, $22::bigint)`,

		// Lock for many keys. A key that is free and has no record has no row in the
		// answer. Runs between useGenericPlans and restorePlans.
		LockMany: `WITH c AS MATERIALIZED (SELECT {now} AS now,
				set_config('idle_in_transaction_session_timeout', coalesce($4::text, current_setting('idle_in_transaction_session_timeout')), true)),
			k AS MATERIALIZED (SELECT u.id AS k_id, pg_try_advisory_xact_lock(u.high, u.low) AS locked
				FROM unnest($1::uuid[], $2::integer[], $3::integer[]) AS u(id, high, low)),
			o AS MATERIALIZED (SELECT k.k_id, k.locked, {h.cols} FROM k
				LEFT JOIN LATERAL (SELECT {cols} FROM {s}.semel_record r WHERE r.id = k.k_id LIMIT 1) h ON true
				WHERE NOT k.locked OR h.id IS NOT NULL)
			SELECT c.now, m.swept_fence, m.store, r.k_id, r.locked, {r.cols} FROM c CROSS JOIN {s}.semel_meta m LEFT JOIN o r ON true WHERE m.one = 1`,
		InsertMany: `WITH c AS MATERIALIZED (SELECT {now} AS now)
			INSERT INTO {s}.semel_record ({insert})
			SELECT u.id, u.owner, coalesce(u.state, ($3::smallint[])[1]), coalesce(u.policy, ($4::smallint[])[1]), coalesce(u.attempt, ($5::bigint[])[1]),
				coalesce(c.now + nullif(coalesce(u.until, ($6::bigint[])[1]), -1), 0), coalesce(c.now + nullif(coalesce(u.expires, ($7::bigint[])[1]), -1), 0),
				coalesce(u.operation, ($8::bytea[])[1]), coalesce(u.tenant, ($9::bytea[])[1]), u.key, coalesce(u.holder, ($11::bytea[])[1]),
				coalesce(u.alg, ($12::bytea[])[1]), coalesce(u.kid, ($13::bytea[])[1]), coalesce(u.sum, ($14::bytea[])[1]), coalesce(u.error, ($15::bytea[])[1]),
				coalesce(u.code, ($16::bigint[])[1]), coalesce(u.gone, ($17::boolean[])[1]), u.codec, u.header, u.body,
				coalesce(u.created, ($21::bigint[])[1]), c.now, 1, coalesce(u.fence, ($22::bigint[])[1])
			FROM c CROSS JOIN unnest($1::uuid[], $2::uuid[], $3::smallint[], $4::smallint[], $5::bigint[], $6::bigint[], $7::bigint[],
					$8::bytea[], $9::bytea[], $10::bytea[], $11::bytea[], $12::bytea[], $13::bytea[], $14::bytea[], $15::bytea[],
					$16::bigint[], $17::boolean[], $18::bytea[], $19::bytea[], $20::bytea[], $21::bigint[], $22::bigint[])
				AS u(id, owner, state, policy, attempt, until, expires, operation, tenant, key, holder, alg, kid, sum, error, code, gone, codec, header, body, created, fence)`,

		// Finds records that are completed as {completed} says. For another record, packed
		// is null. Runs between useGenericPlans and restorePlans.
		FindCompleted: `WITH c AS MATERIALIZED (SELECT {now} AS now,
				set_config('idle_in_transaction_session_timeout', coalesce($2::text, current_setting('idle_in_transaction_session_timeout')), true))
			SELECT c.now, m.store, r.id, r.packed FROM c CROSS JOIN {s}.semel_meta m
				LEFT JOIN (SELECT u.id, h.packed FROM unnest($1::uuid[]) u(id)
					CROSS JOIN LATERAL (SELECT CASE WHEN {completed} THEN {completed.packed} END AS packed FROM {s}.semel_record r WHERE r.id = u.id LIMIT 1) h) r ON true
			WHERE m.one = 1`,

		// Locks keys, and inserts rows for keys that are free and have no record. The
		// answer has the state of the other keys. Each row is inserted directly after
		// the lookup of its key, while its index page is cached. For that, n, which
		// counts the inserted rows, comes first in the join.
		LockAndInsert: `WITH c AS MATERIALIZED (SELECT {now} AS now,
				set_config('idle_in_transaction_session_timeout', coalesce($17::text, current_setting('idle_in_transaction_session_timeout')), true)),
			o AS MATERIALIZED (SELECT u.id, u.owner, u.key, u.sum, pg_try_advisory_xact_lock(u.high, u.low) AS locked,
					(SELECT {r.packed} FROM {s}.semel_record r WHERE r.id = u.id LIMIT 1) AS packed
				FROM (SELECT unnest($1::uuid[]) AS id, unnest($2::integer[]) AS high, unnest($3::integer[]) AS low,
					unnest($4::uuid[]) AS owner, unnest($5::bytea[]) AS key, unnest($6::bytea[]) AS sum) u),
			i AS ({take} SELECT o.id, o.owner, o.key, o.sum, {taken} FROM o WHERE o.locked AND o.packed IS NULL RETURNING 1),
			n AS MATERIALIZED (SELECT c.now, m.swept_fence, m.store, (SELECT count(*) FROM i) AS wrote FROM c CROSS JOIN {s}.semel_meta m WHERE m.one = 1)
			SELECT n.now, n.swept_fence, n.store, n.wrote, o.id, o.locked, o.packed FROM n
				LEFT JOIN (SELECT id, locked, packed FROM o WHERE NOT locked OR packed IS NOT NULL) o ON true`,

		// LockAndInsert for keys that are expected to be free and new. If one is
		// locked, nothing is inserted; if one has a record, the statement fails. It
		// reads no record, so any plan is good.
		LockAndInsertNew: `WITH c AS MATERIALIZED (SELECT {now} AS now,
				set_config('idle_in_transaction_session_timeout', coalesce($17::text, current_setting('idle_in_transaction_session_timeout')), true)),
			l AS MATERIALIZED (SELECT bool_and(pg_try_advisory_xact_lock(u.high, u.low)) AS locked
				FROM (SELECT unnest($2::integer[]) AS high, unnest($3::integer[]) AS low) u),
			i AS ({take} SELECT unnest($1::uuid[]), unnest($4::uuid[]), unnest($5::bytea[]), unnest($6::bytea[]), {taken} WHERE (SELECT locked FROM l))
			SELECT c.now, {sync}, m.swept_fence, m.store, l.locked FROM c CROSS JOIN l CROSS JOIN {s}.semel_meta m WHERE m.one = 1`,

		List: `WITH c AS MATERIALIZED (SELECT {now} AS now),
			w AS MATERIALIZED (SELECT pg_relation_size({part name}) / current_setting('block_size')::bigint AS pages),
			o AS MATERIALIZED (SELECT r.ctid AS at, {r.cols} FROM {part} r CROSS JOIN c
				WHERE r.ctid > $1::text::tid AND r.ctid < $2::text::tid
				AND ($3::bytea IS NULL OR r.operation = $3::bytea) AND ($4::bytea IS NULL OR r.tenant = $4::bytea)
				AND ($5::bigint = 0 OR (1 << r.state) & $5::bigint <> 0) AND ($6::bigint = 0 OR r.updated <= c.now - $6::bigint)
				AND (NOT $8::boolean OR r.expires <> 0 AND r.expires <= c.now)
				AND ($9::bytea[] IS NULL OR r.key = ANY ($9::bytea[]) OR $10::bytea[] IS NOT NULL AND {short} = ANY ($10::bytea[]))
				ORDER BY r.ctid LIMIT $7::bigint)
			SELECT c.now, w.pages, ex.at::text, {ex.cols} FROM c CROSS JOIN w LEFT JOIN o ex ON true ORDER BY ex.at`,
	}
	st.RecordStep, st.RecordNewStep, st.Steps, st.Erase, st.SetTimer, st.MoveTimer, st.DropTimer, st.DueTimers = heldRecord+recordStep, heldRecord+recordNewStep, steps, erase, setTimer, moveTimer, dropTimer, dueTimers
	st.addDoubtStatements()
	for _, s := range []*string{
		&st.ClaimDoubt, &st.SettleDoubt, &st.AddDoubts, &st.ListDoubts, &st.SwapIntoDoubt, &st.SwapOutOfDoubt, &st.RestartIntoDoubt, &st.RestartOutOfDoubt, &st.RecordStep, &st.RecordNewStep, &st.Steps, &st.Erase, &st.SetTimer, &st.MoveTimer, &st.DropTimer, &st.DueTimers, &st.Receive, &st.ReceiveDoubt, &st.ReceiveStep, &st.Restart, &st.SetPlannerSettings, &st.Get, &st.Claim, &st.ClaimMany, &st.Swap, &st.Settle, &st.SettleMany, &st.Renew, &st.HeldLeases, &st.FindExpired, &st.DeleteExpired, &st.List, &st.Meta, &st.Lock, &st.GetMany, &st.Insert, &st.LockMany, &st.InsertMany, &st.FindCompleted, &st.LockAndInsert, &st.LockAndInsertNew,
	} {
		*s = fill.Replace(*s)
	}
	return st
}

// WallClock is the server's current time, not the start of the transaction. As floating
// point it is exact until 2106, and takes half the time of extract's numeric.
const WallClock = "(date_part('epoch', clock_timestamp()) * 1000000)::bigint"

// statementClock is the time at the start of a statement. Use it in statements that do
// not wait; it is the same in all columns.
const statementClock = "(date_part('epoch', statement_timestamp()) * 1000000)::bigint"

// PlannerSettings keep generic plans good while the table grows: each row is found by
// the index. A statement is planned once. JIT is off, because the disabled plan nodes
// make such a plan look expensive. All statements on the store's own connections have
// these settings.
var PlannerSettings = map[string]string{
	"enable_seqscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off", "plan_cache_mode": "force_generic_plan", "jit": "off",
}

// Name is the table of records.
const Name = pgwire.RecordTable

// Literal is text as an SQL string.
func Literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
