-- Semel's tables. All names begin with semel_, so they can live beside an
-- application's own. Times are microseconds since 1970, UTC; 0 means none.

CREATE TABLE semel_meta (
	one         INTEGER PRIMARY KEY CHECK (one = 1), -- there is one row
	store       TEXT    NOT NULL, -- random: tells this database from others
	schema      INTEGER NOT NULL, -- number of the last migration
	compatible  INTEGER NOT NULL DEFAULT 1, -- a program that knows the migrations up to this number can use the tables
	swept_fence INTEGER NOT NULL  -- highest fence of a record that was ever swept
) STRICT;

-- A table with a rowid, and the id as a second index: rows may arrive in no
-- order, and are too large to be kept in that of their ids.
CREATE TABLE semel_record (
	n               INTEGER PRIMARY KEY,
	id              BLOB    NOT NULL UNIQUE, -- first half of the SHA-256 of operation, tenant and key, each after its length; see store.Key.ID for its first 6 bytes
	state           INTEGER NOT NULL, -- 1 started, 2 processing, 3 released, 4 completed, 5 failed, 6 unknown
	policy          INTEGER NOT NULL, -- on doubt: 0 retry, 1 park
	fence           INTEGER NOT NULL,
	owner           BLOB    NOT NULL, -- 16 random bytes, new for each claim
	attempt         INTEGER NOT NULL,
	until           INTEGER NOT NULL,
	expires         INTEGER NOT NULL DEFAULT 0,
	created         INTEGER NOT NULL,
	updated         INTEGER NOT NULL,
	completed       INTEGER NOT NULL DEFAULT 0,
	format          INTEGER NOT NULL,
	operation       TEXT    NOT NULL,
	tenant          TEXT    NOT NULL,
	key             TEXT    NOT NULL,
	holder          TEXT    NOT NULL,
	fingerprint_alg TEXT    NOT NULL,
	fingerprint_key TEXT    NOT NULL,
	fingerprint     BLOB    NOT NULL,
	last_error      TEXT    NOT NULL,
	code            INTEGER NOT NULL DEFAULT 0,
	codec           TEXT    NOT NULL DEFAULT '',
	gone            INTEGER NOT NULL DEFAULT 0, -- 1: done, but the body was not kept
	header          TEXT    NOT NULL DEFAULT '', -- JSON; '' is none
	body            BLOB,
	former_owners   BLOB -- see store.EncodeFormerOwners; NULL until the record is claimed again
) STRICT;

-- The records in doubt, so that a list of them does not read the others. A record that
-- never comes into doubt does not write this index.
CREATE INDEX semel_in_doubt ON semel_record (state) WHERE state = 6;

-- The steps of records. They are read with the record's time of creation, and
-- deleted with the record.
CREATE TABLE semel_step (
	n        INTEGER PRIMARY KEY, -- their order
	record   BLOB    NOT NULL, -- semel_record.id
	created  INTEGER NOT NULL, -- semel_record.created
	name     TEXT    NOT NULL,
	recorded INTEGER NOT NULL,
	data     BLOB    NOT NULL, -- see store.EncodeStep
	UNIQUE (record, created, name)
) STRICT;

-- When to look at a record again; see store.Timers. Only package saga writes it.
CREATE TABLE semel_timer (
	id        BLOB    NOT NULL PRIMARY KEY, -- as semel_record.id
	operation TEXT    NOT NULL,
	tenant    TEXT    NOT NULL,
	key       TEXT    NOT NULL,
	version   BLOB    NOT NULL, -- random, new with each change
	due       INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX semel_due ON semel_timer (operation, due);

-- For people: select * from semel_readable where state = 'unknown';
CREATE VIEW semel_readable AS
SELECT
	operation,
	tenant,
	key,
	CASE state WHEN 1 THEN 'started' WHEN 2 THEN 'processing' WHEN 3 THEN 'released'
	           WHEN 4 THEN 'completed' WHEN 5 THEN 'failed' WHEN 6 THEN 'unknown'
	           ELSE 'invalid: ' || state END AS state,
	CASE policy WHEN 0 THEN 'retry' WHEN 1 THEN 'park' ELSE 'invalid: ' || policy END AS policy,
	attempt,
	strftime('%Y-%m-%dT%H:%M:%fZ', nullif(until, 0) / 1000000.0, 'unixepoch') AS until,
	strftime('%Y-%m-%dT%H:%M:%fZ', nullif(created, 0) / 1000000.0, 'unixepoch') AS created,
	strftime('%Y-%m-%dT%H:%M:%fZ', nullif(updated, 0) / 1000000.0, 'unixepoch') AS updated,
	strftime('%Y-%m-%dT%H:%M:%fZ', nullif(completed, 0) / 1000000.0, 'unixepoch') AS completed,
	strftime('%Y-%m-%dT%H:%M:%fZ', nullif(expires, 0) / 1000000.0, 'unixepoch') AS expires,
	holder,
	last_error,
	code,
	codec,
	CASE gone WHEN 0 THEN 'no' WHEN 1 THEN 'yes' ELSE 'invalid: ' || gone END AS gone,
	header,
	length(body) AS body_bytes,
	CASE codec WHEN 'json' THEN CAST(body AS TEXT) END AS body_json,
	fence,
	lower(hex(owner)) AS owner,
	fingerprint_alg,
	fingerprint_key,
	lower(hex(fingerprint)) AS fingerprint,
	lower(hex(id)) AS id
FROM semel_record;

-- The messages that wait to be published; see package sqliteoutbox. A row is deleted, or
-- moved, when its message has ended.
CREATE TABLE semel_outbox (
	position   INTEGER PRIMARY KEY,
	written    INTEGER NOT NULL,
	order_hash INTEGER NOT NULL, -- of topic and order_key, or of topic and id without one
	lane       INTEGER NOT NULL, -- order_hash, unsigned, modulo 16
	topic      TEXT    NOT NULL,
	order_key  TEXT    NOT NULL, -- empty: none
	id         TEXT    NOT NULL,
	call_hash  TEXT, -- of the call whose handler has written it, see outbox.CallHash; NULL: none
	headers    TEXT    NOT NULL, -- JSON; empty: none
	body       BLOB    NOT NULL
) STRICT;
CREATE INDEX semel_outbox_call ON semel_outbox (call_hash) WHERE call_hash IS NOT NULL;

-- The last position. None is used again, because a late publisher may delete it once more.
CREATE TABLE semel_outbox_last (
	one      INTEGER PRIMARY KEY CHECK (one = 1), -- there is one row
	position INTEGER NOT NULL
) STRICT;
INSERT INTO semel_outbox_last (one, position) VALUES (1, 0);

-- The order_hashes with a message that has failed. Their messages are moved to
-- semel_outbox_held.
CREATE TABLE semel_outbox_key (
	order_hash INTEGER PRIMARY KEY,
	retry_at   INTEGER NOT NULL,
	failures   INTEGER NOT NULL, -- 0: its messages go on
	lane       INTEGER NOT NULL,
	stopped    INTEGER NOT NULL  -- 1: until an operator decides
) STRICT;

-- Messages that have failed, and the later ones of their order_hash.
CREATE TABLE semel_outbox_held (
	position    INTEGER PRIMARY KEY,
	written     INTEGER NOT NULL,
	order_hash  INTEGER NOT NULL,
	lane        INTEGER NOT NULL,
	quarantined INTEGER NOT NULL DEFAULT 0,
	attempts    INTEGER NOT NULL DEFAULT 0,
	last_error  TEXT    NOT NULL DEFAULT '',
	topic       TEXT    NOT NULL,
	order_key   TEXT    NOT NULL,
	id          TEXT    NOT NULL,
	call_hash   TEXT,
	headers     TEXT    NOT NULL,
	body        BLOB    NOT NULL
) STRICT;
CREATE INDEX semel_outbox_held_key ON semel_outbox_held (order_hash, position);
CREATE INDEX semel_outbox_held_call ON semel_outbox_held (call_hash) WHERE call_hash IS NOT NULL;

-- Messages that were published, for the retention of the publisher.
CREATE TABLE semel_outbox_sent (
	position  INTEGER PRIMARY KEY,
	written   INTEGER NOT NULL,
	sent      INTEGER NOT NULL,
	topic     TEXT    NOT NULL,
	order_key TEXT    NOT NULL,
	id        TEXT    NOT NULL,
	call_hash TEXT,
	headers   TEXT    NOT NULL,
	body      BLOB    NOT NULL
) STRICT;
CREATE INDEX semel_outbox_sent_time ON semel_outbox_sent (sent);
CREATE INDEX semel_outbox_sent_call ON semel_outbox_sent (call_hash) WHERE call_hash IS NOT NULL;

-- Which publisher has leased which lane.
CREATE TABLE semel_outbox_lane (
	lane     INTEGER PRIMARY KEY,
	fence    INTEGER NOT NULL, -- grows with each new owner
	owner    TEXT    NOT NULL, -- empty: nobody
	until    INTEGER NOT NULL, -- the end of the lease
	duration INTEGER NOT NULL  -- of the lease; if its end is further away, the clock was set back, and the lease is over
) STRICT;

-- The publishers that share the lanes.
CREATE TABLE semel_outbox_publisher (
	name     TEXT PRIMARY KEY,
	until    INTEGER NOT NULL,
	duration INTEGER NOT NULL
) STRICT;

WITH RECURSIVE n(lane) AS (VALUES (0) UNION ALL SELECT lane + 1 FROM n WHERE lane < 15)
INSERT INTO semel_outbox_lane (lane, fence, owner, until, duration) SELECT lane, 0, '', 0, 0 FROM n;

INSERT INTO semel_meta (one, store, schema, swept_fence) VALUES (1, lower(hex(randomblob(16))), 1, 0);
