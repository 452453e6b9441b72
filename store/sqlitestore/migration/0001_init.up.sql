-- Semel's tables. All names begin with semel_, so they can live beside an
-- application's own. Times are microseconds since 1970, UTC; 0 means none.

CREATE TABLE semel_meta (
	one         INTEGER PRIMARY KEY CHECK (one = 1), -- there is one row
	store       TEXT    NOT NULL, -- random: tells this database from others
	schema      INTEGER NOT NULL, -- number of the last migration
	swept_fence INTEGER NOT NULL  -- highest fence of a record that was ever swept
) STRICT;

-- A table with a rowid, and the id as a second index: rows may arrive in no
-- order, and are too large to be kept in that of their ids.
CREATE TABLE semel_record (
	n               INTEGER PRIMARY KEY,
	id              BLOB    NOT NULL UNIQUE, -- first half of the SHA-256 of operation, tenant and key, each behind its length; see store.Key.ID for its first 6 bytes
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
	body            BLOB
) STRICT;

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

INSERT INTO semel_meta (one, store, schema, swept_fence) VALUES (1, lower(hex(randomblob(16))), 1, 0);
