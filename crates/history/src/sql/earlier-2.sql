BEGIN;
-- Metrics that are not of volumes. The values of the dimensions are in the order of their names, with a slash between.
CREATE TABLE gauge_series (
    id INTEGER PRIMARY KEY,
    owner TEXT NOT NULL,
    region TEXT NOT NULL,
    metric TEXT NOT NULL,
    dimensions TEXT NOT NULL,
    latest INTEGER NOT NULL,
    UNIQUE (owner, region, metric, dimensions)
) STRICT;
CREATE TABLE gauges (
    series INTEGER NOT NULL,
    minute INTEGER NOT NULL,
    value REAL NOT NULL,
    PRIMARY KEY (series, minute)
) WITHOUT ROWID, STRICT;
-- Minutes of past hours, packed; hours since 1970, and how many minutes each has.
CREATE TABLE hours (
    series INTEGER NOT NULL,
    hour INTEGER NOT NULL,
    count INTEGER NOT NULL,
    packed BLOB NOT NULL,
    PRIMARY KEY (series, hour)
) WITHOUT ROWID, STRICT;
CREATE INDEX hours_by_age ON hours (hour, count);
PRAGMA user_version = 2;
COMMIT;
