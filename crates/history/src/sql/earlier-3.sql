BEGIN;
-- Minutes of an instance itself have no volume: shares of its burst credits that are left, 0 to 1, null without credits.
ALTER TABLE minutes ADD COLUMN balance_io REAL;
ALTER TABLE minutes ADD COLUMN balance_bytes REAL;
CREATE INDEX series_by_instance ON series (owner, region, instance);
PRAGMA user_version = 3;
COMMIT;
