-- What the members of a consumer leave about a partition for those who come after
-- them, should they die: see Note. Written outside of the transactions of effects.
CREATE TABLE "semel".semel_note (
	consumer  text     NOT NULL, -- the consumer group
	topic     text     NOT NULL,
	partition integer  NOT NULL,
	topic_id  text     NOT NULL, -- of this topic, and not of one that had its name before
	owner     uuid     NOT NULL, -- random: the member that has begun last
	at        bigint   NOT NULL, -- the offset at which it has
	begun     bigint   NOT NULL, -- how many in a row have begun there, and not ended in order
	tried     bigint[] NOT NULL, -- offset, number, offset, number …: of the tries of messages that have no end
	updated   bigint   NOT NULL, -- microseconds since 1970, UTC
	PRIMARY KEY (consumer, topic, partition)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

UPDATE "semel".semel_meta SET schema = 3;
