-- Deletes every record, and how far each consumer of Kafka has come: each
-- operation may then take effect once more. Deletes the messages of the outbox that
-- are not published.
DROP TABLE "semel".semel_outbox_publisher;
DROP TABLE "semel".semel_outbox_lane;
DROP TABLE "semel".semel_outbox_sent;
DROP TABLE "semel".semel_outbox_held;
DROP TABLE "semel".semel_outbox_key;
DROP TABLE "semel".semel_outbox;
DROP TABLE "semel".semel_crash_marker;
DROP TABLE "semel".semel_watermark;
DROP VIEW "semel".semel_readable;
DROP FUNCTION "semel".semel_text(bytea);
DROP TABLE "semel".semel_doubt;
DROP TABLE "semel".semel_timer;
DROP TABLE "semel".semel_step;
DROP TABLE "semel".semel_record;
DROP TABLE "semel".semel_meta;
