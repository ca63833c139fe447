-- The results of one crash run. docs/json/crash.md explains every column and shows queries.
-- Times end with their unit; shares are 0 to 1; yes and no are 1 and 0.

CREATE TABLE crash_run (
    schema_version INTEGER NOT NULL,
    started_ns     INTEGER NOT NULL,
    command        TEXT NOT NULL,
    ebbtide        TEXT NOT NULL,
    experiment     TEXT NOT NULL, -- name
    seed           TEXT NOT NULL, -- of 64 bits, which an INTEGER here would cut
    experiment_json TEXT NOT NULL,
    host_json      TEXT NOT NULL,
    server_json    TEXT NOT NULL,
    overrides      TEXT           -- laid over the built-in catalogue
);

CREATE TABLE gain (       -- one row, where what the risk buys was measured
    gain_json TEXT NOT NULL
);

CREATE TABLE arm (
    id            INTEGER PRIMARY KEY, -- place in the experiment, from 0
    name          TEXT NOT NULL UNIQUE,
    canary        TEXT,                -- what it is to prove; NULL for the arms that are asked about
    role          TEXT,                -- primary or replica; NULL for an arm that is not cut
    replication   TEXT,                -- how a replica keeps its position: position or gtid; NULL for others
    ends          TEXT,                -- power-cut or kill; NULL for an arm that is not cut
    fault         TEXT,                -- what its volumes do wrong on purpose
    data_volume   TEXT NOT NULL,       -- volume spec
    fs            TEXT NOT NULL,
    volumes_json  TEXT NOT NULL,
    settings_json TEXT NOT NULL,
    connections   INTEGER NOT NULL
);

CREATE TABLE stint (
    id         INTEGER PRIMARY KEY, -- in the order in which they ran
    arm        TEXT NOT NULL,
    repeat     INTEGER NOT NULL,
    started_ns INTEGER NOT NULL,
    took_s     REAL NOT NULL,
    cutting_s  REAL NOT NULL,
    verified   INTEGER NOT NULL,    -- cuts judged in that time that could be verified
    tps        REAL,                -- these are NULL where it did not come to a measurement that counts
    p50_us     REAL,
    p95_us     REAL,
    p99_us     REAL,
    write_iops REAL,
    write_bytes_s REAL,
    failed     TEXT,                -- why it ended before its last cut
    stint_json TEXT NOT NULL,
    UNIQUE (arm, repeat)
);

CREATE TABLE cut (
    id        INTEGER PRIMARY KEY, -- in the order in which they were judged
    arm       TEXT NOT NULL,
    repeat    INTEGER NOT NULL,
    number    INTEGER NOT NULL,    -- in its arm, from 0, over all repeats
    seed      TEXT NOT NULL,       -- 16 hexadecimal digits, as ebbtide crash --replay takes it
    moment    TEXT NOT NULL,
    met       INTEGER NOT NULL,
    at_s      REAL NOT NULL,
    paused_us REAL NOT NULL,
    -- what was found
    clean            INTEGER NOT NULL, -- looked at in full, and nothing is wrong
    corrupt          INTEGER NOT NULL,
    partial          INTEGER NOT NULL,
    lost_commits     INTEGER NOT NULL,
    binlog_disagrees INTEGER NOT NULL,
    replication_broken INTEGER NOT NULL,
    unverified       INTEGER NOT NULL, -- something could not be looked at
    corruption       TEXT,             -- how it showed
    lost_transactions INTEGER, lost_s REAL,
    missing_in_binlog INTEGER, missing_in_tables INTEGER,
    -- how it recovered; NULL where it did not
    recovery_s REAL, recovery_reads INTEGER, recovery_read_bytes INTEGER,
    recovery_writes INTEGER, recovery_written_bytes INTEGER,
    doublewrite_pages INTEGER, rolled_back INTEGER,
    -- how a replica went on; NULL for a primary, and where it did not come to that
    to_fetch_again INTEGER, caught_up_s REAL,
    -- what the image had
    writes_in_flight INTEGER NOT NULL, torn_writes INTEGER NOT NULL, torn_pages INTEGER NOT NULL,
    cached_units_lost INTEGER NOT NULL,
    took_s   REAL NOT NULL,
    kept     INTEGER NOT NULL,
    cut_json TEXT NOT NULL,
    UNIQUE (arm, number)
);

CREATE INDEX cut_by_seed ON cut (seed);

-- Written when the run ends, and again whenever it is summed up.
CREATE TABLE arm_result (
    arm TEXT PRIMARY KEY,
    canary TEXT, caught INTEGER, -- NULL for the arms that are asked about
    cuts INTEGER NOT NULL, clean INTEGER NOT NULL, bad INTEGER NOT NULL, unverified INTEGER NOT NULL,
    bad_share REAL, bad_low REAL, bad_high REAL,
    lost_transactions_max INTEGER, lost_s_p50 REAL, lost_s_max REAL,
    recovery_s_p50 REAL, recovery_s_p95 REAL, recovery_s_max REAL,
    cuts_a_minute REAL,
    tps REAL, tps_low REAL, tps_high REAL,
    tps_ratio REAL, tps_ratio_low REAL, tps_ratio_high REAL -- over the baseline arm of its role
);

CREATE TABLE verdict_share (
    arm TEXT NOT NULL,
    verdict TEXT NOT NULL, -- corrupt, partial, lost-commits, binlog-disagrees, replication-broken
    cuts INTEGER NOT NULL,
    judged INTEGER NOT NULL, -- cuts in which it could be looked for
    share REAL, low REAL, high REAL,
    PRIMARY KEY (arm, verdict)
);
