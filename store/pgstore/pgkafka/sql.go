package pgkafka

import (
	"strings"

	"github.com/semel-go/semel/store/pgstore"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
)

// statements are the SQL for the tables of one store.
type statements struct {
	own, move, read, lockRow, forget string
	begin, setTries, end             string
}

func statementsOf(st *pgstore.Store) *statements {
	db := pgwire.DatabaseOf(st)
	fill := strings.NewReplacer("{s}", db.Schema, "{now}", db.Clock, "{partition}", "consumer = $1::text AND topic = $2::text AND partition = $3::integer").Replace
	return &statements{
		// If the row has another topic id, it is locked and returned, and stays as
		// it is. A new row begins with an epoch that no forgotten row had.
		own: fill(`WITH c AS MATERIALIZED (SELECT {now} AS now, set_config('lock_timeout', $6::text, true))
			INSERT INTO {s}.semel_watermark AS w (consumer, topic, partition, topic_id, next_offset, epoch, updated)
			SELECT $1::text, $2::text, $3::integer, $4::text, $5::bigint, c.now, c.now FROM c
			ON CONFLICT (consumer, topic, partition) DO UPDATE SET epoch = w.epoch + (w.topic_id = excluded.topic_id)::int, updated = excluded.updated
			RETURNING w.topic_id, w.next_offset, w.epoch, w.last_offset, w.last_epoch, w.last_time`),
		// The setting lets a frozen owner hold the row for a limited time only. $9 is
		// how far the owner was told that it has come: a failover that lost commits
		// must not make it pass over messages.
		move: fill(`UPDATE {s}.semel_watermark SET next_offset = $7::bigint, last_offset = $7::bigint - 1, last_epoch = $10::integer, last_time = $11::bigint, updated = {now}
			WHERE {partition} AND topic_id = $4::text AND epoch = $5::bigint AND next_offset BETWEEN $9::bigint AND $6::bigint
			RETURNING current_setting('synchronous_standby_names') <> '', set_config('idle_in_transaction_session_timeout', $8::text, true)`),
		read: fill(`SELECT topic_id, next_offset, epoch FROM {s}.semel_watermark WHERE {partition}`),
		// The setting is for a process that freezes before it has read the row.
		lockRow: fill(`SELECT set_config('idle_in_transaction_session_timeout', $4::text, true) FROM {s}.semel_watermark WHERE {partition} FOR UPDATE`),
		forget: fill(`WITH n AS (DELETE FROM {s}.semel_crash_marker WHERE consumer = $1::text AND topic = $2::text)
			DELETE FROM {s}.semel_watermark WHERE consumer = $1::text AND topic = $2::text`),

		// A start before the last one, or of another topic, forgets open tries,
		// because people have set the consumer back, or recreated the topic.
		begin: fill(`WITH c AS MATERIALIZED (SELECT {now} AS now, set_config('lock_timeout', $7::text, true))
			INSERT INTO {s}.semel_crash_marker AS n (consumer, topic, partition, topic_id, member, start_offset, starts, open_tries, updated)
			SELECT $1::text, $2::text, $3::integer, $4::text, $5::uuid, $6::bigint, 1, ARRAY[]::bigint[], c.now FROM c
			ON CONFLICT (consumer, topic, partition) DO UPDATE SET
				starts = CASE WHEN n.topic_id = excluded.topic_id AND n.start_offset = excluded.start_offset THEN n.starts + (n.member <> excluded.member)::int ELSE 1 END,
				open_tries = CASE WHEN n.topic_id = excluded.topic_id AND n.start_offset <= excluded.start_offset THEN n.open_tries ELSE excluded.open_tries END,
				topic_id = excluded.topic_id, member = excluded.member, start_offset = excluded.start_offset, updated = excluded.updated
			RETURNING n.starts, n.open_tries`),
		setTries: fill(`WITH c AS MATERIALIZED (SELECT {now} AS now, set_config('lock_timeout', $7::text, true))
			UPDATE {s}.semel_crash_marker SET open_tries = $6::bigint[], updated = c.now FROM c
			WHERE {partition} AND topic_id = $4::text AND member = $5::uuid`),
		end: fill(`WITH c AS MATERIALIZED (SELECT {now} AS now, set_config('lock_timeout', $7::text, true))
			UPDATE {s}.semel_crash_marker SET starts = greatest(starts - 1, 0), open_tries = $6::bigint[], updated = c.now FROM c
			WHERE {partition} AND topic_id = $4::text AND member = $5::uuid`),
	}
}
