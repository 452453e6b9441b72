-- Deletes every record: each operation may then take effect once more. Deletes the
-- messages of the outbox that are not published.
DROP TABLE semel_outbox_publisher;
DROP TABLE semel_outbox_lane;
DROP TABLE semel_outbox_sent;
DROP TABLE semel_outbox_held;
DROP TABLE semel_outbox_key;
DROP TABLE semel_outbox_last;
DROP TABLE semel_outbox;
DROP VIEW semel_readable;
DROP TABLE semel_timer;
DROP TABLE semel_step;
DROP TABLE semel_record;
DROP TABLE semel_meta;
