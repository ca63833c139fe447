BEGIN;
-- The minutes of before are in the history, which took over the file that had them. Where an older program made another one since, its
-- minutes go.
DROP TABLE IF EXISTS series;
DROP TABLE IF EXISTS minutes;
DROP TABLE IF EXISTS hours;
DROP TABLE IF EXISTS gauge_series;
DROP TABLE IF EXISTS gauges;
CREATE TABLE IF NOT EXISTS alarms (
    owner TEXT NOT NULL,
    region TEXT NOT NULL,
    name TEXT NOT NULL,
    record TEXT NOT NULL,
    PRIMARY KEY (owner, region, name)
) WITHOUT ROWID, STRICT;
CREATE TABLE IF NOT EXISTS history (
    id INTEGER PRIMARY KEY,
    owner TEXT NOT NULL,
    region TEXT NOT NULL,
    name TEXT NOT NULL,
    at_ms INTEGER NOT NULL,
    kind TEXT NOT NULL,
    summary TEXT NOT NULL,
    data TEXT NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS history_by_alarm ON history (owner, region, name, id);
PRAGMA user_version = 4;
COMMIT;
