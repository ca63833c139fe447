-- The results of one run. docs/json/run.md explains every column and shows queries.
-- Times end with their unit; shares are 0 to 1; a second's columns are means or differences over that second.

CREATE TABLE run (
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

CREATE TABLE arm (
    id            INTEGER PRIMARY KEY, -- place in the experiment, from 0
    name          TEXT NOT NULL UNIQUE,
    data_volume   TEXT NOT NULL,       -- volume spec
    volumes_json  TEXT NOT NULL,
    settings_json TEXT NOT NULL,
    connections   INTEGER NOT NULL
);

CREATE TABLE trial (
    id         INTEGER PRIMARY KEY, -- in the order in which they ran
    arm        TEXT NOT NULL,
    repeat     INTEGER NOT NULL,
    started_ns INTEGER NOT NULL,
    took_s     REAL NOT NULL,
    outcome    TEXT NOT NULL CHECK (outcome IN ('measured', 'disqualified', 'failed')),
    why        TEXT,                -- unless measured
    log_json   TEXT,                -- of a failed one: the end of the server's log
    tps        REAL,                -- these without warm-up, as in arm_result; NULL without seconds
    qps        REAL,
    p50_us     REAL,
    p95_us     REAL,
    p99_us     REAL,
    p99_9_us   REAL,
    errors     INTEGER,
    load_json  TEXT,                -- the load's own report, warm-up included
    batch_json TEXT,
    notes_json TEXT NOT NULL,
    promotion_json TEXT,
    backup_json TEXT,
    UNIQUE (arm, repeat)
);

CREATE TABLE second (
    trial INTEGER NOT NULL REFERENCES trial (id) ON DELETE CASCADE,
    n     INTEGER NOT NULL, -- from 0
    t_s   REAL NOT NULL,    -- the end of the second
    -- the load
    tps REAL NOT NULL, qps REAL NOT NULL,
    p50_us REAL NOT NULL, p95_us REAL NOT NULL, p99_us REAL NOT NULL, p99_9_us REAL NOT NULL, max_us REAL NOT NULL,
    errors INTEGER NOT NULL,
    -- the machine
    server_cpus REAL NOT NULL, load_cpus REAL NOT NULL, busy_cpus REAL NOT NULL, steal_cpus REAL NOT NULL,
    memory_bytes REAL NOT NULL, pacing_p99_us REAL NOT NULL, sampler_cpus REAL NOT NULL,
    -- the server; all NULL where it could not be asked, some where this server does not tell
    server_asked INTEGER NOT NULL,
    -- columns of the server: the metrics of crates/observe, each REAL
    PRIMARY KEY (trial, n)
) WITHOUT ROWID;

CREATE TABLE volume_second (
    trial INTEGER NOT NULL REFERENCES trial (id) ON DELETE CASCADE,
    n     INTEGER NOT NULL,
    role  TEXT NOT NULL, -- data, redo, binlog, redo+binlog, undo, tmp, relay, backup
    read_iops REAL NOT NULL, write_iops REAL NOT NULL, consumed_iops REAL NOT NULL,
    read_mib REAL NOT NULL, write_mib REAL NOT NULL, read_us REAL NOT NULL, write_us REAL NOT NULL,
    queue REAL NOT NULL, flushes REAL NOT NULL,
    credits REAL, -- NULL for types without
    limited REAL NOT NULL,
    volume_iops REAL NOT NULL, volume_throughput REAL NOT NULL,         -- shares in which I/O waited
    instance_iops REAL NOT NULL, instance_throughput REAL NOT NULL,     -- for each limit
    PRIMARY KEY (trial, n, role)
) WITHOUT ROWID;

-- The replica that is farthest behind its source; no row for a second in which none was asked.
CREATE TABLE replica_second (
    trial INTEGER NOT NULL REFERENCES trial (id) ON DELETE CASCADE,
    n     INTEGER NOT NULL,
    lag_s REAL NOT NULL,     -- age of the newest heartbeat that it has applied
    lag_transactions REAL,   -- NULL where the servers do not number them
    behind_s REAL,           -- its own Seconds_Behind_Source
    PRIMARY KEY (trial, n)
) WITHOUT ROWID;

-- The volumes of each replica, as volume_second has those of the source.
CREATE TABLE replica_volume_second (
    trial INTEGER NOT NULL REFERENCES trial (id) ON DELETE CASCADE,
    n     INTEGER NOT NULL,
    replica INTEGER NOT NULL, -- from 1
    role  TEXT NOT NULL,
    read_iops REAL NOT NULL, write_iops REAL NOT NULL, consumed_iops REAL NOT NULL,
    read_mib REAL NOT NULL, write_mib REAL NOT NULL, read_us REAL NOT NULL, write_us REAL NOT NULL,
    queue REAL NOT NULL, flushes REAL NOT NULL,
    credits REAL,
    limited REAL NOT NULL,
    volume_iops REAL NOT NULL, volume_throughput REAL NOT NULL,
    instance_iops REAL NOT NULL, instance_throughput REAL NOT NULL,
    PRIMARY KEY (trial, n, replica, role)
) WITHOUT ROWID;

-- Written when the run ends, and again whenever it is summed up.
CREATE TABLE arm_result (
    arm TEXT NOT NULL,
    regime TEXT NOT NULL, -- empty: all of it
    trials INTEGER NOT NULL, seconds REAL NOT NULL,
    tps REAL NOT NULL, tps_low REAL, tps_high REAL, tps_spread REAL,
    p50_us REAL NOT NULL, p95_us REAL NOT NULL, p99_us REAL NOT NULL, p99_9_us REAL NOT NULL,
    ios_per_transaction REAL, written_kib_per_transaction REAL, read_kib_per_transaction REAL,
    limiter TEXT NOT NULL, limiter_share REAL NOT NULL,
    PRIMARY KEY (arm, regime)
);

CREATE TABLE comparison (
    axis TEXT NOT NULL, arm TEXT NOT NULL, baseline TEXT NOT NULL,
    regime TEXT NOT NULL, -- empty: all of it
    tps_ratio REAL, tps_low REAL, tps_high REAL,
    p95_ratio REAL, p95_low REAL, p95_high REAL,
    verdict TEXT NOT NULL, why TEXT,
    smallest_effect REAL
);

CREATE VIEW trial_second AS
    SELECT trial.arm, trial.repeat, trial.outcome, second.*
    FROM trial JOIN second ON second.trial = trial.id;
