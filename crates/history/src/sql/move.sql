-- Chunks are as they were, whatever the size of the file. All else is read from these tables and written anew.
DROP INDEX minutes_by_age;
DROP INDEX series_by_instance;
ALTER TABLE series RENAME TO earlier_series;
ALTER TABLE minutes RENAME TO earlier_minutes;
ALTER TABLE hours RENAME TO minute_chunks;
ALTER TABLE minute_chunks RENAME COLUMN hour TO chunk;
ALTER TABLE minute_chunks ADD COLUMN layout INTEGER NOT NULL DEFAULT 1;
