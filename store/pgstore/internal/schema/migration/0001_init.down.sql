-- Deletes every record, and how far each consumer of Kafka has come: each
-- operation may then take effect once more.
DROP TABLE "semel".semel_crash_marker;
DROP TABLE "semel".semel_watermark;
DROP VIEW "semel".semel_readable;
DROP FUNCTION "semel".semel_text(bytea);
DROP TABLE "semel".semel_record;
DROP TABLE "semel".semel_meta;
