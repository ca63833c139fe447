-- Shares of the burst credits of instances at the end of a minute, 0 to 1; null where the instance sustains its maximum.
CREATE TABLE IF NOT EXISTS balances (
    owner TEXT NOT NULL,
    region TEXT NOT NULL,
    instance TEXT NOT NULL,
    minute INTEGER NOT NULL,
    io REAL,
    bytes REAL,
    PRIMARY KEY (owner, region, instance, minute)
) WITHOUT ROWID, STRICT;
