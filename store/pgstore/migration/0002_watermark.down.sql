-- Forgets how far each consumer has come.
DROP TABLE "semel".semel_watermark;
UPDATE "semel".semel_meta SET schema = 1;
