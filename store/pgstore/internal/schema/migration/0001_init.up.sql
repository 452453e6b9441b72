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
	body            bytea
) WITH (
	fillfactor = 80,
	autovacuum_vacuum_scale_factor = 0.02,
	autovacuum_vacuum_insert_scale_factor = 0.05,
	autovacuum_analyze_scale_factor = 0.05,
	autovacuum_vacuum_cost_delay = 0,
	toast.autovacuum_vacuum_scale_factor = 0.02
);

-- Bytes as text: unchanged if they are UTF-8, otherwise with escapes.
CREATE FUNCTION "semel".semel_text(b bytea) RETURNS text
	LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
	RETURN convert_from(b, 'UTF8');
EXCEPTION WHEN OTHERS THEN
	RETURN encode(b, 'escape');
END $$;

-- For people: select * from semel.semel_readable where state = 'unknown';
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

INSERT INTO "semel".semel_meta (store, schema, swept_fence) VALUES (gen_random_uuid(), 1, 0);
