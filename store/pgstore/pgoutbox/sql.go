package pgoutbox

import (
	"strconv"
	"strings"

	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
)

const (
	// The keys come as text, so that each driver of database/sql can send them.
	lockKeys  = `SELECT count(pg_advisory_xact_lock(h)) FROM unnest(string_to_array($1::text, ',')::bigint[]) AS h`
	notifySQL = `SELECT pg_notify($1::text, '')`
	// A count from the index alone does not read bodies, nor the pages of deleted messages.
	// JIT would compile the statement each time, because its plan seems expensive.
	byIndex = `SELECT set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true), set_config('jit', 'off', true)`
)

// statements are the SQL for the tables of one store.
type statements struct {
	put                                              string
	lanes, renew, seen, expire                       string
	release, forget                                  string
	take, setAside, lock                             string
	deleteSent, keepSent                             string
	moveFailed, recordFailed                         string
	deleteHeld, keepHeld, resumeKeys, deleteDoneKeys string
	trim, stats                                      string
	listWaiting, listHeld, listSent, listCall, find  string
	laneOf, free, due, dropWaiting, dropHeld         string
}

// The columns of a message, in the order in which scan reads them.
const (
	waitingColumns = `o.position, o.written, o.order_hash, o.lane, false, 0, '', 0, o.topic, o.order_key, o.id, coalesce(o.call_hash, ''), o.headers, o.body`
	heldColumns    = `h.position, h.written, h.order_hash, h.lane, h.quarantined, h.attempts, h.last_error, 0, h.topic, h.order_key, h.id, coalesce(h.call_hash, ''), h.headers, h.body`
	sentColumns    = `o.position, o.written, 0, 0, false, 0, '', o.sent, o.topic, o.order_key, o.id, coalesce(o.call_hash, ''), o.headers, o.body`
	moved          = `(position, written, order_hash, lane, topic, order_key, id, call_hash, headers, body)`
	movedColumns   = `position, written, order_hash, lane, topic, order_key, id, call_hash, headers, body`
	keptColumns    = `position, written, topic, order_key, id, call_hash, headers, body`
)

func statementsOf(db *pgwire.Database) *statements {
	fill := strings.NewReplacer(
		"{s}", db.Schema, "{standby}", "(current_setting('synchronous_standby_names') <> '')", "{now}", db.Clock, "{longest}", strconv.FormatInt(outbox.LongestDelay.Microseconds(), 10),
		// The commit does not wait for the disk: if it is lost, messages are published again.
		"{relax}", `relax AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))`,
		"{all}", `SELECT n::smallint AS lane FROM generate_series(0, `+strconv.Itoa(outbox.Lanes-1)+`) AS n`,
		// The results of waiting and of held messages, and that a row is the message of its result. A
		// position alone does not say so: see Settle.
		"{results}", `unnest($1::smallint[], $2::bigint[], $3::bigint[], $4::bigint[]) AS d(lane, position, order_hash, written)`,
		"{same}", `o.lane = d.lane AND o.position = d.position AND o.order_hash = d.order_hash AND o.written = d.written`,
		"{heldresults}", `unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS d(order_hash, position, written)`,
		"{sameheld}", `h.order_hash = d.order_hash AND h.position = d.position AND h.written = d.written`,
		"{waiting}", waitingColumns, "{held}", heldColumns, "{sent}", sentColumns, "{moved}", moved, "{movedcols}", movedColumns, "{kept}", keptColumns,
	).Replace
	noBody := func(columns string) string {
		return strings.NewReplacer("o.body", "NULL::bytea", "h.body", "NULL::bytea").Replace(columns)
	}
	return &statements{
		put: fill(`INSERT INTO {s}.semel_outbox (written, order_hash, lane, topic, order_key, id, call_hash, headers, body)
			VALUES ({now}, $1::bigint, $2::smallint, $3::text, $4::text, $5::text, nullif($6::text, ''), $7::text, $8::bytea)`),

		// All publishers lock all lanes, so that one claims at a time.
		lanes: fill(`SELECT lane, fence, owner, until, duration, {now} FROM {s}.semel_outbox_lane ORDER BY lane FOR UPDATE`),
		renew: fill(`UPDATE {s}.semel_outbox_lane l SET fence = a.fence, owner = $1::text, until = {now} + $2::bigint, duration = $2::bigint
			FROM unnest($3::smallint[], $4::bigint[]) AS a(lane, fence) WHERE l.lane = a.lane`),
		expire: fill(`DELETE FROM {s}.semel_outbox_publisher WHERE until < {now} OR until > {now} + duration`),
		seen: fill(`INSERT INTO {s}.semel_outbox_publisher AS p (name, until, duration) VALUES ($1::text, {now} + $2::bigint, $2::bigint)
			ON CONFLICT (name) DO UPDATE SET until = excluded.until, duration = excluded.duration
			RETURNING (SELECT count(*) FROM {s}.semel_outbox_publisher WHERE name <> $1::text)`),
		release: fill(`UPDATE {s}.semel_outbox_lane l SET owner = '' FROM unnest($2::smallint[], $3::bigint[]) AS a(lane, fence)
			WHERE l.lane = a.lane AND l.fence = a.fence AND l.owner = $1::text`),
		forget: fill(`DELETE FROM {s}.semel_outbox_publisher WHERE name = $1::text AND NOT EXISTS (SELECT FROM {s}.semel_outbox_lane WHERE owner = $1::text)`),

		// Due messages of keys that have failed come first, and then the waiting ones.
		// One snapshot shows both, and the keys. The last columns say that a waiting message
		// is to be held behind its key's failed one, and that commits wait for a standby.
		take: fill(`WITH mine AS MATERIALIZED (
				SELECT a.lane, a.fence FROM unnest($1::smallint[], $2::bigint[]) WITH ORDINALITY AS a(lane, fence, n)
				JOIN {s}.semel_outbox_lane l ON l.lane = a.lane AND l.fence = a.fence ORDER BY a.n)
			(SELECT m.fence, {held}, true, false, {standby} FROM mine m
				CROSS JOIN LATERAL (SELECT * FROM {s}.semel_outbox_key k WHERE k.lane = m.lane AND NOT k.stopped
					AND (k.retry_at <= {now} OR k.retry_at > {now} + {longest}) AND k.order_hash NOT IN (SELECT unnest($3::bigint[]))
					AND (cardinality($6::text[]) = 0 OR (SELECT h.topic FROM {s}.semel_outbox_held h WHERE h.order_hash = k.order_hash LIMIT 1) <> ALL ($6::text[])) ORDER BY k.retry_at LIMIT $4::integer) k
				CROSS JOIN LATERAL (SELECT * FROM {s}.semel_outbox_held h WHERE h.order_hash = k.order_hash
					ORDER BY h.position LIMIT CASE WHEN k.failures = 0 THEN $4::integer ELSE 1 END) h
				LIMIT $4::integer)
			UNION ALL
			(SELECT m.fence, {waiting}, false, EXISTS (SELECT FROM {s}.semel_outbox_key k WHERE k.order_hash = o.order_hash), {standby} FROM mine m
				CROSS JOIN LATERAL (SELECT * FROM {s}.semel_outbox o WHERE o.lane = m.lane AND o.order_hash NOT IN (SELECT unnest($3::bigint[]))
					AND o.topic <> ALL ($6::text[]) ORDER BY o.position LIMIT $4::integer) o
				LIMIT $5::integer)`),
		lock: fill(`SELECT lane, fence FROM {s}.semel_outbox_lane WHERE lane = ANY ($1::smallint[]) ORDER BY lane FOR UPDATE`),
		setAside: fill(`WITH gone AS (DELETE FROM {s}.semel_outbox o USING unnest($1::smallint[], $2::bigint[]) AS d(lane, position)
				WHERE o.lane = d.lane AND o.position = d.position AND EXISTS (SELECT FROM {s}.semel_outbox_key k WHERE k.order_hash = o.order_hash) RETURNING o.*)
			INSERT INTO {s}.semel_outbox_held {moved} SELECT {movedcols} FROM gone`),

		deleteSent: fill(`WITH {relax} DELETE FROM {s}.semel_outbox o USING relax, {results} WHERE {same}`),
		keepSent: fill(`WITH {relax}, gone AS (DELETE FROM {s}.semel_outbox o USING relax, {results} WHERE {same} RETURNING o.*)
			INSERT INTO {s}.semel_outbox_sent (sent, {kept}) SELECT {now}, {kept} FROM gone`),

		moveFailed: fill(`WITH gone AS (DELETE FROM {s}.semel_outbox o USING {results} WHERE {same} RETURNING o.*)
			INSERT INTO {s}.semel_outbox_held {moved} SELECT {movedcols} FROM gone`),
		// A result that is recorded already finds another number of attempts.
		recordFailed: fill(`WITH failed AS (UPDATE {s}.semel_outbox_held h SET attempts = h.attempts + 1, quarantined = d.refused, last_error = d.error
				FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::boolean[], $5::bigint[], $6::text[], $7::integer[]) AS d(order_hash, position, written, refused, delay, error, attempts)
				WHERE {sameheld} AND h.attempts = d.attempts RETURNING h.order_hash, h.lane, d.refused, d.delay)
			INSERT INTO {s}.semel_outbox_key AS k (order_hash, retry_at, failures, lane, stopped)
			SELECT DISTINCT ON (order_hash) order_hash, {now} + delay, 1, lane, refused FROM failed
			ON CONFLICT (order_hash) DO UPDATE SET retry_at = excluded.retry_at, failures = k.failures + 1, stopped = excluded.stopped`),
		deleteHeld: fill(`DELETE FROM {s}.semel_outbox_held h USING {heldresults} WHERE {sameheld} RETURNING h.order_hash, h.position`),
		keepHeld: fill(`WITH gone AS (DELETE FROM {s}.semel_outbox_held h USING {heldresults} WHERE {sameheld} RETURNING h.*),
			sent AS (INSERT INTO {s}.semel_outbox_sent (sent, {kept}) SELECT {now}, {kept} FROM gone)
			SELECT order_hash, position FROM gone`),
		// A key goes on after messages of it have ended, unless an earlier one is left.
		resumeKeys: fill(`UPDATE {s}.semel_outbox_key k SET failures = 0, retry_at = 0, stopped = false
			FROM (SELECT order_hash, max(position) AS position FROM unnest($1::bigint[], $2::bigint[]) AS a(order_hash, position) GROUP BY order_hash) AS ended
			WHERE k.order_hash = ended.order_hash
			AND NOT EXISTS (SELECT FROM {s}.semel_outbox_held h WHERE h.order_hash = ended.order_hash AND h.position < ended.position)`),
		deleteDoneKeys: fill(`DELETE FROM {s}.semel_outbox_key k WHERE k.order_hash = ANY ($1::bigint[])
			AND NOT EXISTS (SELECT FROM {s}.semel_outbox_held h WHERE h.order_hash = k.order_hash)`),

		trim: fill(`DELETE FROM {s}.semel_outbox_sent WHERE position IN (SELECT position FROM {s}.semel_outbox_sent WHERE sent < {now} - $1::bigint ORDER BY sent LIMIT $2::integer)`),
		stats: fill(`SELECT (SELECT count(*) FROM {s}.semel_outbox), count(*) FILTER (WHERE NOT quarantined), count(*) FILTER (WHERE quarantined),
			(SELECT count(*) FROM {s}.semel_outbox_key WHERE stopped),
			{now} - least(min(written) FILTER (WHERE NOT quarantined), (SELECT min(o.written) FROM ({all}) l
				CROSS JOIN LATERAL (SELECT written FROM {s}.semel_outbox o WHERE o.lane = l.lane ORDER BY o.position LIMIT 1) o)) FROM {s}.semel_outbox_held`),
		listWaiting: noBody(fill(`SELECT {waiting} FROM ({all}) l
			CROSS JOIN LATERAL (SELECT * FROM {s}.semel_outbox o WHERE o.lane = l.lane AND o.position > $1::bigint ORDER BY o.position LIMIT $2::integer) o
			ORDER BY o.position LIMIT $2::integer`)),
		listHeld: noBody(fill(`SELECT {held} FROM {s}.semel_outbox_held h WHERE h.position > $1::bigint AND h.quarantined = $3::boolean ORDER BY h.position LIMIT $2::integer`)),
		listSent: noBody(fill(`SELECT {sent} FROM {s}.semel_outbox_sent o WHERE o.position > $1::bigint ORDER BY o.position LIMIT $2::integer`)),
		// Each part reads an index of call_hash. The order is that of Inspector.ListCall: by
		// quarantined, table, call_hash and position.
		listCall: noBody(fill(`(SELECT {held}, 1 FROM {s}.semel_outbox_held h WHERE h.call_hash BETWEEN $1::text AND $2::text ORDER BY h.quarantined DESC, h.call_hash, h.position LIMIT $3::integer)
			UNION ALL (SELECT {waiting}, 2 FROM {s}.semel_outbox o WHERE o.call_hash BETWEEN $1::text AND $2::text ORDER BY o.call_hash, o.position LIMIT $3::integer)
			UNION ALL (SELECT {sent}, 3 FROM {s}.semel_outbox_sent o WHERE o.call_hash BETWEEN $1::text AND $2::text ORDER BY o.call_hash, o.position LIMIT $3::integer)
			ORDER BY 5 DESC, 15, 12, 1 LIMIT $3::integer`)),
		find: fill(`SELECT {waiting}, 2 FROM ({all}) l JOIN {s}.semel_outbox o ON o.lane = l.lane AND o.position = $1::bigint
			UNION ALL SELECT {held}, 1 FROM {s}.semel_outbox_held h WHERE h.position = $1::bigint
			UNION ALL SELECT {sent}, 3 FROM {s}.semel_outbox_sent o WHERE o.position = $1::bigint`),
		laneOf: fill(`SELECT o.lane, 2 FROM ({all}) l JOIN {s}.semel_outbox o ON o.lane = l.lane AND o.position = $1::bigint
			UNION ALL SELECT h.lane, 1 FROM {s}.semel_outbox_held h WHERE h.position = $1::bigint
			UNION ALL SELECT 0, 3 FROM {s}.semel_outbox_sent o WHERE o.position = $1::bigint`),
		free:        fill(`UPDATE {s}.semel_outbox_held SET quarantined = false WHERE quarantined AND order_hash = (SELECT order_hash FROM {s}.semel_outbox_held WHERE position = $1::bigint)`),
		due:         fill(`UPDATE {s}.semel_outbox_key SET stopped = false, retry_at = 0 WHERE order_hash = (SELECT order_hash FROM {s}.semel_outbox_held WHERE position = $1::bigint)`),
		dropWaiting: fill(`DELETE FROM {s}.semel_outbox WHERE lane = $1::smallint AND position = $2::bigint`),
		dropHeld:    fill(`DELETE FROM {s}.semel_outbox_held WHERE position = $1::bigint RETURNING order_hash`),
	}
}
