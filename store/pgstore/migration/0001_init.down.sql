-- Deletes every record: each operation may then take effect once more.
DROP VIEW "semel".semel_readable;
DROP FUNCTION "semel".semel_text(bytea);
DROP TABLE "semel".semel_record;
DROP TABLE "semel".semel_meta;
