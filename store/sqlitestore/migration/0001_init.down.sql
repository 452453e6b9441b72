-- Deletes every record: each operation may then take effect once more.
DROP VIEW semel_readable;
DROP TABLE semel_record;
DROP TABLE semel_meta;
