-- Semel's tables. Times are microseconds since 1970, UTC; 0 means none. Texts that
-- may contain any bytes are bytea; the view semel_readable shows them as text.
-- For another schema, replace "semel" by its name throughout.

-- CREATE SCHEMA IF NOT EXISTS needs the right to create schemas even if the schema exists.
DO $$ BEGIN
	IF to_regnamespace('"semel"') IS NULL THEN
		CREATE SCHEMA "semel";
	END IF;
END $$;

CREATE TABLE "semel".semel_meta (
	one         smallint PRIMARY KEY DEFAULT 1 CHECK (one = 1), -- there is one row
	store       uuid     NOT NULL, -- random: tells this schema from others
	schema      integer  NOT NULL, -- number of the last migration
	compatible  integer  NOT NULL DEFAULT 1, -- a program that knows the migrations up to this number can use the tables
	swept_fence bigint   NOT NULL  -- highest fence of a record that was ever swept
);

-- No index except the primary key: with an index on a column that a settlement
-- writes, each settlement would write that index too (no HOT update). The
-- fillfactor leaves space in each page for a second version of its rows.
CREATE TABLE "semel".semel_record (
	fence           bigint   NOT NULL,
	until           bigint   NOT NULL,
	expires         bigint   NOT NULL DEFAULT 0,
	created         bigint   NOT NULL,
	updated         bigint   NOT NULL,
	attempt         bigint   NOT NULL,
	code            bigint   NOT NULL DEFAULT 0,
	id              uuid     NOT NULL PRIMARY KEY, -- first half of the SHA-256 of operation, tenant and key, each after its length; see store.Key.ID for its first 6 bytes
	owner           uuid     NOT NULL, -- random, new for each claim
	state           smallint NOT NULL, -- 1 started, 2 processing, 3 released, 4 completed, 5 failed, 6 unknown
	policy          smallint NOT NULL, -- on doubt: 0 retry, 1 park
	format          smallint NOT NULL,
	gone            boolean  NOT NULL DEFAULT false, -- done, but the body was not kept
	operation       bytea    NOT NULL,
	tenant          bytea    NOT NULL,
	key             bytea    NOT NULL,
	holder          bytea    NOT NULL,
	fingerprint_alg bytea    NOT NULL,
	fingerprint_key bytea    NOT NULL,
	fingerprint     bytea    NOT NULL,
	last_error      bytea    NOT NULL,
	codec           bytea,
	header          bytea, -- JSON
	body            bytea,
	former_owners   bytea -- see store.EncodeFormerOwners; null until the record is claimed again
) WITH (
	fillfactor = 80,
	autovacuum_vacuum_scale_factor = 0.02,
	autovacuum_vacuum_insert_scale_factor = 0.05,
	autovacuum_analyze_scale_factor = 0.05,
	autovacuum_vacuum_cost_delay = 0,
	toast.autovacuum_vacuum_scale_factor = 0.02
);

-- The steps of records. They are read with the record's time of creation, and
-- deleted with the record.
CREATE TABLE "semel".semel_step (
	n        bigint NOT NULL GENERATED ALWAYS AS IDENTITY, -- their order
	recorded bigint NOT NULL,
	created  bigint NOT NULL, -- semel_record.created
	record   uuid   NOT NULL, -- semel_record.id
	name     bytea  NOT NULL,
	data     bytea  NOT NULL, -- see store.EncodeStep
	PRIMARY KEY (record, created, name)
);

-- The records in doubt (state 6), so that a list of them does not read the others. Each
-- change of a record into or out of doubt writes this table in its transaction. Semel
-- does not delete records in doubt; after you have deleted some by hand, the rows here
-- that have no record are harmless.
CREATE TABLE "semel".semel_doubt (
	record uuid NOT NULL PRIMARY KEY -- semel_record.id
);

-- When to look at a record again; see store.Timers. Only package saga writes it.
CREATE TABLE "semel".semel_timer (
	due       bigint NOT NULL,
	id        uuid   NOT NULL PRIMARY KEY, -- as semel_record.id
	version   uuid   NOT NULL, -- random, new with each change
	operation bytea  NOT NULL,
	tenant    bytea  NOT NULL,
	key       bytea  NOT NULL
);

CREATE INDEX semel_due ON "semel".semel_timer (operation, due);

-- Bytes as text: unchanged if they are UTF-8, otherwise with escapes.
CREATE FUNCTION "semel".semel_text(b bytea) RETURNS text
	LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
	RETURN convert_from(b, 'UTF8');
EXCEPTION WHEN OTHERS THEN
	RETURN encode(b, 'escape');
END $$;

-- For people: select * from semel.semel_readable where state = 'unknown'; in a large
-- table: where id in (select record from semel.semel_doubt);
CREATE VIEW "semel".semel_readable AS
SELECT
	"semel".semel_text(operation) AS operation,
	"semel".semel_text(tenant) AS tenant,
	"semel".semel_text(key) AS key,
	CASE state WHEN 1 THEN 'started' WHEN 2 THEN 'processing' WHEN 3 THEN 'released'
	           WHEN 4 THEN 'completed' WHEN 5 THEN 'failed' WHEN 6 THEN 'unknown'
	           ELSE 'invalid: ' || state END AS state,
	CASE policy WHEN 0 THEN 'retry' WHEN 1 THEN 'park' ELSE 'invalid: ' || policy END AS policy,
	attempt,
	to_timestamp(nullif(until, 0) / 1000000.0) AS until,
	to_timestamp(nullif(created, 0) / 1000000.0) AS created,
	to_timestamp(nullif(updated, 0) / 1000000.0) AS updated,
	to_timestamp(nullif(CASE WHEN state IN (4, 5) THEN updated ELSE 0 END, 0) / 1000000.0) AS completed,
	to_timestamp(nullif(expires, 0) / 1000000.0) AS expires,
	"semel".semel_text(holder) AS holder,
	"semel".semel_text(last_error) AS last_error,
	code,
	"semel".semel_text(codec) AS codec,
	gone,
	"semel".semel_text(header) AS header,
	length(body) AS body_bytes,
	CASE codec WHEN 'json'::bytea THEN "semel".semel_text(body) END AS body_json,
	fence,
	owner,
	"semel".semel_text(fingerprint_alg) AS fingerprint_alg,
	"semel".semel_text(fingerprint_key) AS fingerprint_key,
	encode(fingerprint, 'hex') AS fingerprint,
	id
FROM "semel".semel_record;

-- How far a consumer has come in each partition of a Kafka topic; see package
-- pgkafka, type Watermark.
CREATE TABLE "semel".semel_watermark (
	consumer    text    NOT NULL, -- the consumer group
	topic       text    NOT NULL,
	partition   integer NOT NULL,
	topic_id    text    NOT NULL, -- tells this topic from an earlier one with its name
	next_offset bigint  NOT NULL, -- the first offset that is not done
	epoch       bigint  NOT NULL, -- grows with each new owner of the partition
	updated     bigint  NOT NULL,
	last_offset bigint  NOT NULL DEFAULT -1, -- of the message before next_offset, unless somebody has changed that
	last_epoch  integer NOT NULL DEFAULT -1, -- the leader epoch of that message
	last_time   bigint  NOT NULL DEFAULT 0,  -- its timestamp in milliseconds; 0: unknown
	PRIMARY KEY (consumer, topic, partition)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

-- Which messages a consumer of Kafka was handling when its process died; see
-- package pgkafka, type CrashMarker. Written outside of the transactions of effects.
CREATE TABLE "semel".semel_crash_marker (
	consumer     text     NOT NULL, -- the consumer group
	topic        text     NOT NULL,
	partition    integer  NOT NULL,
	topic_id     text     NOT NULL, -- tells this topic from an earlier one with its name
	member       uuid     NOT NULL, -- random: the member that has started last
	start_offset bigint   NOT NULL, -- where it has started
	starts       bigint   NOT NULL, -- members in a row that have started there without an orderly end
	open_tries   bigint[] NOT NULL, -- offset, count, offset, count …: tries of messages without an end
	updated      bigint   NOT NULL,
	PRIMARY KEY (consumer, topic, partition)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

-- The messages that wait to be published; see package pgoutbox. A row is deleted, or
-- moved, when its message has ended: nothing remembers a position that was reached.
CREATE TABLE "semel".semel_outbox (
	position   bigint   NOT NULL GENERATED ALWAYS AS IDENTITY, -- for one order_hash in the order of the commits
	written    bigint   NOT NULL,
	order_hash bigint   NOT NULL, -- of topic and order_key, or of topic and id without one; also the advisory lock
	lane       smallint NOT NULL, -- order_hash, unsigned, modulo 16
	topic      text     NOT NULL,
	order_key  text     NOT NULL, -- empty: none
	id         text     NOT NULL,
	call_hash  text COLLATE "C", -- of the call whose handler has written it, see outbox.CallHash; null: none
	headers    text     NOT NULL, -- JSON; empty: none
	body       bytea    NOT NULL,
	PRIMARY KEY (lane, position)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_insert_scale_factor = 0.1, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX semel_outbox_call ON "semel".semel_outbox (call_hash, position) WHERE call_hash IS NOT NULL;

-- The order_hashes with a message that has failed. Their messages are moved to
-- semel_outbox_held. Each change of the two tables locks the row of the lane first.
CREATE TABLE "semel".semel_outbox_key (
	order_hash bigint   NOT NULL PRIMARY KEY,
	retry_at   bigint   NOT NULL,
	failures   integer  NOT NULL, -- 0: its messages go on
	lane       smallint NOT NULL,
	stopped    boolean  NOT NULL  -- until an operator decides
);
CREATE INDEX semel_outbox_key_due ON "semel".semel_outbox_key (lane, retry_at) WHERE NOT stopped;

-- Messages that have failed, and the later ones of their order_hash.
CREATE TABLE "semel".semel_outbox_held (
	position    bigint   NOT NULL,
	written     bigint   NOT NULL,
	order_hash  bigint   NOT NULL,
	lane        smallint NOT NULL,
	quarantined boolean  NOT NULL DEFAULT false,
	attempts    integer  NOT NULL DEFAULT 0,
	topic       text     NOT NULL,
	order_key   text     NOT NULL,
	id          text     NOT NULL,
	call_hash   text COLLATE "C",
	headers     text     NOT NULL,
	last_error  text     NOT NULL DEFAULT '',
	body        bytea    NOT NULL,
	PRIMARY KEY (order_hash, position)
);
CREATE INDEX semel_outbox_held_position ON "semel".semel_outbox_held (position);
CREATE INDEX semel_outbox_quarantine ON "semel".semel_outbox_held (position) WHERE quarantined;
CREATE INDEX semel_outbox_held_call ON "semel".semel_outbox_held (call_hash, position) WHERE call_hash IS NOT NULL;

-- Messages that were published, for the retention of the publisher.
CREATE TABLE "semel".semel_outbox_sent (
	position  bigint NOT NULL PRIMARY KEY,
	written   bigint NOT NULL,
	sent      bigint NOT NULL,
	topic     text   NOT NULL,
	order_key text   NOT NULL,
	id        text   NOT NULL,
	call_hash text COLLATE "C",
	headers   text   NOT NULL,
	body      bytea  NOT NULL
);
CREATE INDEX semel_outbox_sent_time ON "semel".semel_outbox_sent (sent);
CREATE INDEX semel_outbox_sent_call ON "semel".semel_outbox_sent (call_hash, position) WHERE call_hash IS NOT NULL;

-- Which publisher has leased which lane.
CREATE TABLE "semel".semel_outbox_lane (
	lane     smallint NOT NULL PRIMARY KEY,
	fence    bigint   NOT NULL, -- grows with each new owner
	owner    text     NOT NULL, -- empty: nobody
	until    bigint   NOT NULL, -- the end of the lease
	duration bigint   NOT NULL  -- of the lease; if its end is further away, the clock was set back, and the lease is over
) WITH (fillfactor = 20);

-- The publishers that share the lanes.
CREATE TABLE "semel".semel_outbox_publisher (
	name     text   NOT NULL PRIMARY KEY,
	until    bigint NOT NULL,
	duration bigint NOT NULL
) WITH (fillfactor = 20);

INSERT INTO "semel".semel_outbox_lane (lane, fence, owner, until, duration) SELECT n, 0, '', 0, 0 FROM generate_series(0, 15) AS n;

INSERT INTO "semel".semel_meta (store, schema, swept_fence) VALUES (gen_random_uuid(), 1, 0);
