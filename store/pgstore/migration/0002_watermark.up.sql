-- How far a consumer has come in each partition of a topic; see Watermark.
CREATE TABLE "semel".semel_watermark (
	consumer  text    NOT NULL, -- the consumer group
	topic     text    NOT NULL,
	partition integer NOT NULL,
	topic_id  text    NOT NULL, -- of this topic, and not of one that had its name before
	next      bigint  NOT NULL, -- the first offset that is not done
	epoch     bigint  NOT NULL, -- grows with each change of hands
	updated   bigint  NOT NULL, -- microseconds since 1970, UTC
	PRIMARY KEY (consumer, topic, partition)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

UPDATE "semel".semel_meta SET schema = 2;
