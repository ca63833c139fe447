BEGIN;
CREATE TABLE series (
    id INTEGER PRIMARY KEY,
    owner TEXT NOT NULL,
    region TEXT NOT NULL,
    volume TEXT NOT NULL,
    instance TEXT NOT NULL,
    -- The latest minute with a value of each family of metrics; -1: none.
    latest INTEGER NOT NULL DEFAULT -1,
    latest_burst INTEGER NOT NULL DEFAULT -1,
    latest_provisioned INTEGER NOT NULL DEFAULT -1,
    latest_checked INTEGER NOT NULL DEFAULT -1,
    UNIQUE (owner, region, volume, instance)
) STRICT;
-- Minutes since 1970. Times in nanoseconds.
CREATE TABLE minutes (
    series INTEGER NOT NULL,
    minute INTEGER NOT NULL,
    kind TEXT NOT NULL,
    span INTEGER NOT NULL,
    read_ops INTEGER NOT NULL,
    read_bytes INTEGER NOT NULL,
    read_time INTEGER NOT NULL,
    write_ops INTEGER NOT NULL,
    write_bytes INTEGER NOT NULL,
    write_time INTEGER NOT NULL,
    consumed_ops INTEGER NOT NULL,
    queue INTEGER NOT NULL,
    queue_time INTEGER NOT NULL,
    idle_time INTEGER NOT NULL,
    volume_iops_exceeded INTEGER NOT NULL,
    volume_throughput_exceeded INTEGER NOT NULL,
    instance_iops_exceeded INTEGER NOT NULL,
    instance_throughput_exceeded INTEGER NOT NULL,
    credit_share REAL,
    iops_rate INTEGER,
    PRIMARY KEY (series, minute)
) WITHOUT ROWID, STRICT;
CREATE INDEX minutes_by_age ON minutes (minute);
CREATE TABLE alarms (
    owner TEXT NOT NULL,
    region TEXT NOT NULL,
    name TEXT NOT NULL,
    record TEXT NOT NULL,
    PRIMARY KEY (owner, region, name)
) WITHOUT ROWID, STRICT;
CREATE TABLE history (
    id INTEGER PRIMARY KEY,
    owner TEXT NOT NULL,
    region TEXT NOT NULL,
    name TEXT NOT NULL,
    at_ms INTEGER NOT NULL,
    kind TEXT NOT NULL,
    summary TEXT NOT NULL,
    data TEXT NOT NULL
) STRICT;
CREATE INDEX history_by_alarm ON history (owner, region, name, id);
PRAGMA user_version = 1;
COMMIT;
