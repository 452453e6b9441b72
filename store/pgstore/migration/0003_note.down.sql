-- Forgets which messages have killed the members that handled them.
DROP TABLE "semel".semel_note;
UPDATE "semel".semel_meta SET schema = 2;
