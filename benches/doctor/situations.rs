//! The situations: what is planted, what the doctor has to find, and what may follow from it.

use serde_json::Value;

use crate::captures;
use crate::servers::Options;

pub(crate) const MARIADB_10: &str = "mariadb-10.11";
pub(crate) const MARIADB_11: &str = "mariadb-11.8";
pub(crate) const MYSQL_8: &str = "mysql-8.0";
pub(crate) const MYSQL_9: &str = "mysql-9.7";

/// The file system of the data.
#[derive(Debug, Clone)]
pub(crate) enum Disk {
    /// One of its own, mounted as it should be.
    Own,
    /// One of its own, mounted with these options.
    With(&'static str),
    /// One of 1 GiB, with a file of so many MiB beside the data.
    Full(u64),
    /// That of the machine.
    Root,
    /// A volume of Ebbtide's own of this spec, with a fault that `volume fault` sets once the load runs; empty: none.
    Volume(&'static str, &'static str),
}

/// A load while the doctor looks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub(crate) workload: &'static str,
    pub(crate) threads: u32,
    /// Transactions a second; 0: as many as the server does.
    pub(crate) rate: u32,
    /// Rows of each of two tables.
    pub(crate) rows: u32,
    /// Seconds before the look.
    pub(crate) warmup_s: u64,
}

/// A server with a fault, or a healthy one.
#[derive(Debug, Clone)]
pub(crate) struct Situation {
    pub(crate) name: String,
    pub(crate) server: &'static str,
    /// Options that differ from the good ones; None: left out.
    pub(crate) options: Vec<(&'static str, Option<&'static str>)>,
    /// Statements after the start.
    pub(crate) sql: Vec<&'static str>,
    /// A query whose last column has to reach a number before the look.
    pub(crate) until: Option<(&'static str, u64)>,
    pub(crate) disk: Disk,
    pub(crate) load: Option<Load>,
    /// What this machine cannot be: the server is captured, and the capture is changed before it is judged.
    pub(crate) edit: Option<fn(&mut Value)>,
    /// Words of the doctor's command line.
    pub(crate) words: Vec<&'static str>,
    /// Codes that have to be found; none on a healthy server.
    pub(crate) must: Vec<&'static str>,
    /// Codes that are right too, because they follow from what was planted.
    pub(crate) also: Vec<&'static str>,
    /// By these words another program's complaint is known as one of the fault.
    pub(crate) hints: Vec<&'static str>,
}

/// What is true of a server that writes as fast as it can, on a small volume that it shares with nobody.
const BUSY: &[&str] = &[
    "B03", "E03", "E05", "F03", "F08", "F12", "L02", "L03", "L04", "L06", "L08", "R01", "R02", "R03", "R08",
    "W01", "W02",
];

/// What is true of a server that reads more than its buffer pool holds.
const READING: &[&str] = &["B02", "B03", "B07", "E03", "O08"];

/// What the machine's own root disk may have.
const OF_ROOT: &[&str] = &["O01", "O02", "O03", "O06", "O09"];

const VOLUME: &str = "--volume=data=gp3:size=500GiB,twp=off";

/// Settings in which no check finds fault, by server.
pub(crate) fn good(server: &str) -> Options {
    let all = [
        ("server-id", "1"),
        ("log-bin", "binlog"),
        ("binlog-format", "ROW"),
        ("sync-binlog", "1"),
        ("performance-schema", "ON"),
        ("innodb-buffer-pool-size", "64M"),
        ("innodb-flush-neighbors", "0"),
        ("innodb-io-capacity", "500"),
        ("innodb-io-capacity-max", "1500"),
    ];
    let own: &[(&str, &str)] = match server {
        MARIADB_10 => &[
            ("innodb-log-file-size", "512M"),
            ("innodb-change-buffering", "none"),
            ("binlog-expire-logs-seconds", "604800"),
        ],
        MARIADB_11 => &[
            ("innodb-log-file-size", "512M"),
            ("binlog-expire-logs-seconds", "604800"),
            ("slave-connections-needed-for-purge", "0"),
        ],
        MYSQL_8 => &[
            ("innodb-log-file-size", "256M"),
            ("innodb-flush-method", "O_DIRECT"),
            ("innodb-change-buffering", "none"),
        ],
        _ => &[
            ("innodb-redo-log-capacity", "512M"),
            ("secure-file-priv", "NULL"),
            ("innodb-change-buffering", "none"),
        ],
    };
    all.iter().chain(own).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

impl Situation {
    pub(crate) fn healthy(name: &str, server: &'static str) -> Self {
        Self {
            name: name.into(),
            server,
            options: Vec::new(),
            sql: Vec::new(),
            until: None,
            disk: Disk::Own,
            load: None,
            edit: None,
            words: vec![VOLUME],
            must: Vec::new(),
            also: Vec::new(),
            hints: Vec::new(),
        }
    }

    /// A fault that is an option of the server. The words by which others name it are the option's.
    pub(crate) fn option(
        code: &'static str,
        server: &'static str,
        options: &[(&'static str, &'static str)],
    ) -> Self {
        let name =
            options.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ");
        let mut new = Self::fault(code, &name, server);
        new.options = options.iter().map(|(name, value)| (*name, Some(*value))).collect();
        new.hints = vec![variable(options[0].0)];
        new
    }

    pub(crate) fn fault(code: &'static str, name: &str, server: &'static str) -> Self {
        Self { must: vec![code], ..Self::healthy(&format!("{code} {name}"), server) }
    }

    pub(crate) fn also(mut self, codes: &[&'static str]) -> Self {
        self.also.extend(codes);
        self
    }

    pub(crate) fn hint(mut self, words: &[&'static str]) -> Self {
        self.hints.extend(words);
        self
    }

    pub(crate) fn sql(mut self, sql: &[&'static str]) -> Self {
        self.sql.extend(sql);
        self
    }

    pub(crate) fn words(mut self, words: &[&'static str]) -> Self {
        self.words = words.to_vec();
        self
    }

    pub(crate) fn on(mut self, disk: Disk) -> Self {
        self.disk = disk;
        self
    }

    fn without(mut self, name: &'static str) -> Self {
        self.options.push((name, None));
        self
    }

    pub(crate) fn set(mut self, name: &'static str, value: &'static str) -> Self {
        self.options.push((name, Some(value)));
        self
    }

    pub(crate) fn edit(mut self, edit: fn(&mut Value)) -> Self {
        self.edit = Some(edit);
        self
    }

    fn load(mut self, workload: &'static str, threads: u32, rate: u32, rows: u32) -> Self {
        self.load = Some(Load { workload, threads, rate, rows, warmup_s: 3 });
        self
    }
}

/// The name of an option as the others write it.
fn variable(option: &'static str) -> &'static str {
    // A table of so few names needs no allocation that lives on.
    Box::leak(option.trim_end_matches("#2").replace('-', "_").into_boxed_str())
}

/// All of them: faults, then healthy servers.
pub(crate) fn all() -> Vec<Situation> {
    [
        durability(),
        redo(),
        pool(),
        flushing(),
        binlog(),
        replicas(),
        files(),
        volumes(),
        own_volumes(),
        settings(),
        captures::all(),
        healthy(),
    ]
    .concat()
}

use Situation as S;

fn durability() -> Vec<S> {
    vec![
        S::option("D01", MARIADB_10, &[("innodb-flush-log-at-trx-commit", "2")]),
        S::option("D01", MYSQL_9, &[("innodb-flush-log-at-trx-commit", "0")]),
        S::option(
            "D02",
            MYSQL_8,
            &[("innodb-flush-log-at-timeout", "10"), ("innodb-flush-log-at-trx-commit", "2")],
        )
        .also(&["D01"]),
        S::option("D03", MARIADB_10, &[("sync-binlog", "0")]),
        S::option("D03", MYSQL_9, &[("sync-binlog", "1000")]),
        S::option("D04", MARIADB_10, &[("innodb-doublewrite", "OFF")]),
        S::option("D04", MYSQL_8, &[("innodb-doublewrite", "OFF")]),
        S::option("D04", MARIADB_11, &[("innodb-doublewrite", "OFF")]),
        S::option("D04", MYSQL_9, &[("innodb-doublewrite", "DETECT_ONLY")]),
        S::option("D04", MYSQL_9, &[("innodb-doublewrite", "OFF")]),
        S::fault("D05", "redo log disabled", MYSQL_9)
            .sql(&["ALTER INSTANCE DISABLE INNODB REDO_LOG"])
            .hint(&["redo_log_enabled"]),
        S::option("D06", MARIADB_10, &[("innodb-checksum-algorithm", "crc32")]),
        S::option("D06", MYSQL_8, &[("innodb-checksum-algorithm", "none")]),
        S::option("D07", MARIADB_11, &[("innodb-force-recovery", "1")]),
        S::option("D08", MYSQL_8, &[("innodb-flush-method", "nosync")]).also(&["F01", "O06"]),
        S::fault("D09", "mounted without barriers", MARIADB_10)
            .on(Disk::With("noatime,barrier=0"))
            .hint(&["barrier"]),
        S::fault("D11", "a table in MyISAM", MARIADB_10)
            .sql(&["CREATE DATABASE app", "CREATE TABLE app.t (a INT) ENGINE=MyISAM"])
            .hint(&["MyISAM table", "MyISAM to InnoDB", "not InnoDB"]),
        S::option("L10", MYSQL_9, &[("binlog-checksum", "NONE")]),
    ]
}

fn redo() -> Vec<S> {
    vec![
        // At a rate whose hour fits the situation's file system, so that the fix has room.
        S::option("R01", MARIADB_10, &[("innodb-log-file-size", "16M")])
            .load("oltp_write_only", 8, 100, 20_000)
            .also(BUSY),
        S::option("R01", MYSQL_9, &[("innodb-redo-log-capacity", "16M")])
            .load("oltp_write_only", 8, 100, 20_000)
            .also(BUSY),
        S::option("R03", MARIADB_11, &[("innodb-log-buffer-size", "2M")])
            .load("bulk_insert", 4, 0, 0)
            .also(BUSY),
        S::fault("R05", "direct redo writes that nobody waits for", MARIADB_10)
            .set("innodb-flush-log-at-trx-commit", "0")
            .also(&["D01"])
            .hint(&["innodb_log_file_buffering"]),
        // No R05: after a resize the log is written through the page cache, although the variable stays OFF.
        S::fault("D01", "a redo log that was resized", MARIADB_10)
            .set("innodb-flush-log-at-trx-commit", "0")
            .sql(&["SET GLOBAL innodb_log_file_size = 536870912"])
            .set("innodb-log-file-size", "256M")
            .also(&["C02"])
            .hint(&["innodb_flush_log_at_trx_commit"]),
        S::option("R02", MARIADB_10, &[("innodb-log-file-size", "8M")])
            .load("oltp_write_only", 8, 0, 20_000)
            .also(BUSY),
        S::option("R02", MYSQL_9, &[("innodb-redo-log-capacity", "8M")])
            .load("oltp_write_only", 8, 0, 20_000)
            .also(BUSY),
        S::fault("R04", "many dirty pages on a volume of disks", MARIADB_11)
            .set("innodb-buffer-pool-size", "256M")
            .words(&["--volume=data=sc1:size=125GiB"])
            .load("oltp_write_only", 8, 0, 200_000)
            .also(&["F02", "C10", "B04"])
            .also(BUSY)
            .hint(&["recovery time"]),
        S::option("R07", MYSQL_9, &[("innodb-log-writer-threads", "ON")]),
    ]
}

fn pool() -> Vec<S> {
    vec![
        S::fault("B01", "a pool larger than memory allows", MARIADB_10)
            .set("innodb-buffer-pool-size", pool_of_memory())
            .also(&["B04"])
            .hint(&["buffer_pool_size", "memory usage"]),
        S::option("B02", MYSQL_8, &[("innodb-buffer-pool-size", "8M")])
            .load("oltp_read_only", 4, 0, 100_000)
            .also(&["B03", "B07", "E03", "O08"]),
        S::option("B02", MARIADB_10, &[("innodb-buffer-pool-size", "8M")])
            .load("oltp_read_only", 4, 0, 100_000)
            .also(&["B03", "B07", "E03", "O08"]),
        S::option("B07", MYSQL_8, &[("innodb-random-read-ahead", "ON"), ("innodb-buffer-pool-size", "8M")])
            .load("oltp_read_only", 4, 0, 100_000)
            .also(READING),
        S::option("B04", MARIADB_11, &[("innodb-buffer-pool-size", "2G")]),
        S::option(
            "B05",
            MYSQL_8,
            &[
                ("innodb-buffer-pool-instances", "8"),
                ("innodb-buffer-pool-size", "1G"),
                ("innodb-page-cleaners", "8"),
            ],
        ),
        S::option("B06", MARIADB_10, &[("innodb-buffer-pool-dump-at-shutdown", "OFF")]),
        S::option("B06", MYSQL_9, &[("innodb-buffer-pool-load-at-startup", "OFF")]),
    ]
}

/// Nine tenths of the machine's memory, which is reserved and not used.
fn pool_of_memory() -> &'static str {
    let memory = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = memory.split_whitespace().nth(1).and_then(|word| word.parse::<u64>().ok()).unwrap_or(4 << 20);
    Box::leak(format!("{}M", kib * 9 / 10 / 1024).into_boxed_str())
}

fn flushing() -> Vec<S> {
    vec![
        S::option("F01", MYSQL_8, &[("innodb-flush-method", "fsync")]).also(&["O06"]),
        S::option("F01", MARIADB_11, &[("innodb-data-file-buffering", "ON")]).also(&["O06"]),
        S::option("F01", MARIADB_11, &[("innodb-flush-method", "fsync")]).also(&["O06"]),
        S::option("F01", MARIADB_10, &[("innodb-flush-method", "fsync")]).also(&["O06"]),
        S::option("F02", MYSQL_8, &[("innodb-flush-neighbors", "1")]),
        S::option("F02", MYSQL_9, &[("innodb-flush-neighbors", "2")]),
        S::option("F03", MARIADB_10, &[("innodb-io-capacity-max", "9000")]),
        S::fault("F03", "the defaults of 10000 and 20000", MYSQL_9)
            .without("innodb-io-capacity")
            .without("innodb-io-capacity-max")
            .hint(&["innodb_io_capacity"]),
        S::option("F04", MARIADB_10, &[("innodb-max-dirty-pages-pct", "20")]),
        S::option("F04", MYSQL_9, &[("innodb-max-dirty-pages-pct", "99")]),
        S::option("F05", MARIADB_10, &[("innodb-adaptive-flushing", "OFF")]),
        S::option("F05", MYSQL_9, &[("innodb-adaptive-flushing", "OFF")]),
        S::option(
            "F06",
            MYSQL_8,
            &[
                ("innodb-page-cleaners", "1"),
                ("innodb-buffer-pool-instances", "2"),
                ("innodb-buffer-pool-size", "2G"),
            ],
        )
        .also(&["B04"]),
        S::option("F07", MARIADB_10, &[("innodb-lru-scan-depth", "128"), ("innodb-buffer-pool-size", "8M")])
            .load("oltp_read_write", 32, 0, 100_000)
            .also(READING)
            .also(BUSY),
        S::fault("F08", "bursts when the redo log is full", MYSQL_9)
            .set("innodb-redo-log-capacity", "8M")
            .sql(&["SET GLOBAL innodb_monitor_enable = 'buffer_flush_sync_total_pages'"])
            .load("oltp_write_only", 16, 0, 20_000)
            .also(&["C02"])
            .also(BUSY)
            .hint(&["innodb_flush_sync"]),
        S::option("F09", MYSQL_9, &[("innodb-read-io-threads", "1")]),
        S::option("F09", MARIADB_11, &[("innodb-write-io-threads", "2")]),
        S::option("F10", MARIADB_10, &[("innodb-use-native-aio", "OFF")]),
        S::option("F10", MYSQL_8, &[("innodb-use-native-aio", "OFF")]),
        S::option("F11", MYSQL_9, &[("innodb-use-fdatasync", "OFF")]),
        history("F13", "a long transaction"),
        history("F14", "a long transaction and one thread that purges")
            .set("innodb-purge-threads", "1")
            .also(&["F13"]),
        S::option("W03", MYSQL_9, &[("innodb-doublewrite-pages", "4")]),
    ]
}

/// A transaction that stays open while others change rows.
fn history(code: &'static str, name: &str) -> S {
    let mut new = S::fault(code, name, MARIADB_10)
        .set("innodb-flush-log-at-trx-commit", "0")
        .without("log-bin")
        .without("binlog-format")
        .without("sync-binlog")
        .sql(&[
            "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
            "START TRANSACTION WITH CONSISTENT SNAPSHOT",
        ])
        .load("oltp_update_non_index", 8, 0, 20_000)
        .also(&["D01", "R05", "L11", "F14"])
        .also(BUSY)
        .hint(&["history list", "history_list", "long-running transaction"]);
    new.until = Some(("SHOW GLOBAL STATUS LIKE 'Innodb_history_list_length'", 110_000));
    new
}

fn binlog() -> Vec<S> {
    vec![
        S::option("L01", MARIADB_10, &[("binlog-format", "MIXED")]),
        S::option("L01", MYSQL_9, &[("binlog-format", "STATEMENT")]),
        full_rows("L02", MYSQL_8).hint(&["binlog_row_image"]),
        full_rows("L08", MARIADB_11).hint(&["log_bin_compress"]),
        S::option("L03", MARIADB_10, &[("binlog-expire-logs-seconds", "0")]).hint(&["expire_logs_days"]),
        S::option("L03", MYSQL_9, &[("binlog-expire-logs-seconds", "0")]).hint(&["expire_logs_days"]),
        S::fault("L03", "no replica, for which the server waits by default", MARIADB_11)
            .without("slave-connections-needed-for-purge")
            .hint(&["slave_connections_needed"]),
        S::option("L06", MARIADB_10, &[("binlog-cache-size", "4096")])
            .load("bulk_insert", 1, 0, 0)
            .also(BUSY),
        S::fault("L11", "no binary log", MARIADB_11)
            .without("log-bin")
            .without("binlog-format")
            .without("sync-binlog")
            .without("binlog-expire-logs-seconds")
            .hint(&["log_bin", "binary log"]),
        S::fault("L11", "no binary log", MYSQL_8)
            .without("log-bin")
            .set("skip-log-bin", "1")
            .hint(&["log_bin", "binary log"]),
    ]
}

/// Once a second, a number changes in 512 rows of 3 kB: the redo log has the number, the binary log the whole rows.
fn full_rows(code: &'static str, server: &'static str) -> S {
    let twice = "INSERT INTO app.t (n, wide) SELECT n, wide FROM app.t";
    S::fault(code, "full row images in a busy binary log", server)
        .sql(&[
            "CREATE DATABASE app",
            "CREATE TABLE app.t (id INT AUTO_INCREMENT PRIMARY KEY, n INT NOT NULL, wide VARCHAR(3000) NOT NULL)",
            "INSERT INTO app.t (n, wide) VALUES (0, REPEAT('x', 3000))",
        ])
        .sql(&[twice; 9])
        .sql(&[
            "SET GLOBAL event_scheduler = ON",
            "CREATE EVENT app.e ON SCHEDULE EVERY 1 SECOND DO UPDATE app.t SET n = n + 1",
        ])
        .load("oltp_point_select", 1, 10, 1_000)
        .also(BUSY)
}

const SOURCE_OF_MARIADB: &str =
    "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT=1, MASTER_USER='r', MASTER_PASSWORD='r'";
const SOURCE_OF_MYSQL: &str =
    "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT=1, MASTER_USER='r', MASTER_PASSWORD='r'";

fn replicas() -> Vec<S> {
    vec![
        S::option("D10", MYSQL_8, &[("relay-log-recovery", "OFF")])
            .sql(&[SOURCE_OF_MYSQL])
            .also(&["L12", "L09"]),
        S::option("L05", MARIADB_11, &[("sync-relay-log", "1")])
            .sql(&[SOURCE_OF_MARIADB])
            .also(&["L12", "L09", "D10"]),
        S::fault("L12", "a replica whose source is away", MARIADB_10)
            .sql(&[SOURCE_OF_MARIADB, "START SLAVE"])
            .also(&["L09", "D10"])
            .hint(&["slave", "replica"]),
        S::option("L07", MARIADB_10, &[("log-slave-updates", "ON")])
            .sql(&[SOURCE_OF_MARIADB])
            .also(&["L12", "L09", "D10"]),
    ]
}

fn files() -> Vec<S> {
    vec![
        S::fault("O01", "mounted with discard", MARIADB_10)
            .on(Disk::With("noatime,discard"))
            .hint(&["discard"]),
        S::fault("O01", "mounted with sync", MYSQL_8).on(Disk::With("noatime,sync")).hint(&["mount"]),
        S::fault("O08", "temporary tables beside the data", MARIADB_10)
            .set("tmpdir", ".")
            .set("tmp-memory-table-size", "1024")
            .load("oltp_read_only", 4, 0, 20_000)
            .hint(&["tmpdir", "temporary tables created on disk", "tmp_table_size"]),
        S::fault("O08", "temporary tables in tablespaces beside the data", MYSQL_9)
            .set("tmpdir", "/tmp")
            .set("big-tables", "ON")
            .load("oltp_read_only", 4, 0, 20_000)
            .hint(&["tmpdir", "temporary tables created on disk", "tmp_table_size"]),
        S::fault("O09", "a file system that is full", MARIADB_11).on(Disk::Full(330)).also(&["L03"]).hint(&[
            "disk space",
            "mountpoint",
            "filesystem",
        ]),
        S::fault("O11", "data on the root file system", MARIADB_10)
            .on(Disk::Root)
            .also(OF_ROOT)
            .hint(&["root file", "mount"]),
        S::fault("O11", "data on the root file system", MYSQL_9)
            .on(Disk::Root)
            .also(OF_ROOT)
            .hint(&["root file", "mount"]),
    ]
}

fn volumes() -> Vec<S> {
    vec![
        S::fault("E01", "gp2", MARIADB_10).words(&["--volume=data=gp2:size=1TiB"]).hint(&["gp2"]),
        S::fault("E01", "gp2 for the data, gp3 for the redo log", MYSQL_8)
            .words(&["--volume=data=gp2:size=1TiB", "--volume=redo=gp3:size=50GiB"])
            .hint(&["gp2"]),
        S::fault("E02", "burst credits that end", MARIADB_10)
            .words(&["--volume=data=gp2:size=20GiB"])
            .load("oltp_write_only", 8, 0, 20_000)
            .also(&["E01"])
            .also(BUSY)
            .hint(&["gp2", "credit"]),
        S::fault("E03", "a volume at its limit", MYSQL_8)
            .words(&["--volume=data=sc1:size=125GiB"])
            .load("oltp_write_only", 8, 0, 20_000)
            .also(&["F02", "C10"])
            .also(BUSY)
            .hint(&["IOPS", "I/O"]),
        S::fault("E04", "an instance below its volume", MARIADB_11)
            .words(&["--volume=data=io2:size=500GiB,iops=40000", "--instance=m5.large"])
            .hint(&["instance type"]),
        S::fault("E08", "io1", MYSQL_9).words(&["--volume=data=io1:size=500GiB,iops=3000"]).hint(&["io1"]),
        S::fault("E10", "data on an instance store", MARIADB_10)
            .words(&["--volume=data=instance-store:i3en.large"])
            .hint(&["instance store"]),
        S::fault("E11", "IOPS that the throughput does not allow", MYSQL_8)
            .set("innodb-buffer-pool-size", "8M")
            .words(&["--volume=data=gp3:size=500GiB,iops=16000,throughput=125"])
            .load("oltp_read_only", 4, 0, 100_000)
            .also(READING)
            .hint(&["throughput"]),
    ]
}

/// A volume that is as slow as it is said to be, or slower.
fn own_volumes() -> Vec<S> {
    const SMALL: &str = "gp3:size=6GiB";
    let on = |code, name, server, fault| {
        S::fault(code, name, server)
            .on(Disk::Volume(SMALL, fault))
            .words(&["--volume=data=gp3:size=6GiB"])
            .also(&["E05", "R08", "L09"])
            .also(BUSY)
            .also(READING)
    };
    // io1 has at most 50 IOPS a GiB.
    const FULL: &str = "io1:size=4GiB,iops=200";
    let mut at_its_limit = on("E07", "Ebbtide's io1 at its limit, at its size's most", MARIADB_11, "")
        .on(Disk::Volume(FULL, ""))
        .words(&["--volume=data=io1:size=4GiB,iops=200"])
        .set("innodb-buffer-pool-size", "8M")
        .load("oltp_read_write", 16, 0, 50_000)
        .also(&["E08", "E09"])
        .hint(&["IOPS"]);
    at_its_limit.must.push("E03");
    vec![
        at_its_limit,
        on("E05", "Ebbtide's gp3 with slow I/O", MYSQL_8, "latency=12ms")
            .set("innodb-buffer-pool-size", "8M")
            .load("oltp_read_only", 8, 0, 100_000)
            .also(&["E09"])
            .hint(&["latency"]),
        on("E09", "Ebbtide's gp3 with slow reads alone", MARIADB_10, "latency=read:15ms")
            .set("innodb-buffer-pool-size", "16M")
            .load("oltp_read_write", 16, 0, 100_000)
            .hint(&["snapshot"]),
        on("R08", "Ebbtide's gp3 with slow writes", MYSQL_9, "latency=write:8ms")
            .set("innodb-redo-log-capacity", "16M")
            .load("oltp_write_only", 16, 0, 100_000)
            .hint(&["innodb_log_group_home_dir"]),
        on("O04", "Ebbtide's gp3 with slow syncs", MARIADB_10, "latency=write:8ms")
            .words(&["--volume=data=gp3:size=6GiB", "--probe={data}"])
            .hint(&["fsync"]),
    ]
}

fn settings() -> Vec<S> {
    vec![
        S::option("C01", MARIADB_10, &[("innodb-buffer-pool-instances", "8")]),
        S::option("C01", MARIADB_11, &[("innodb-page-cleaners", "4")]),
        S::fault("C02", "changed while it runs", MARIADB_10)
            .sql(&["SET GLOBAL innodb_io_capacity = 600"])
            .hint(&["innodb_io_capacity"]),
        S::fault("C02", "changed while it runs", MYSQL_9)
            .sql(&["SET GLOBAL innodb_lru_scan_depth = 2048", "SET GLOBAL innodb_io_capacity = 600"])
            .hint(&["innodb_io_capacity"]),
        S::option("C03", MARIADB_11, &[("innodb-io-capacity#2", "600")]),
        S::option("C03", MYSQL_8, &[("sync-binlog#2", "1"), ("sync-binlog", "0")]),
        S::option("C04", MYSQL_9, &[("innodb-dedicated-server", "ON")]),
        S::option("C05", MARIADB_10, &[("query-cache-type", "ON"), ("query-cache-size", "16M")]),
        S::option("C06", MYSQL_8, &[("innodb-stats-on-metadata", "ON"), ("innodb-stats-persistent", "OFF")]),
        S::option("C07", MARIADB_10, &[("innodb-file-per-table", "OFF")]),
        S::option("C07", MYSQL_9, &[("innodb-file-per-table", "OFF")]),
        S::option("C08", MARIADB_11, &[("innodb-fill-factor", "50")]),
        S::option("C10", MYSQL_8, &[("innodb-change-buffering", "all")]),
        S::option("C10", MARIADB_10, &[("innodb-change-buffering", "all")]),
        S::option("C11", MYSQL_9, &[("innodb-thread-concurrency", "8")]),
    ]
}

fn healthy() -> Vec<S> {
    let mut all = Vec::new();
    for server in [MARIADB_10, MARIADB_11, MYSQL_8, MYSQL_9] {
        all.push(S::healthy("healthy, idle", server));
        all.push(
            S::healthy("healthy, few writes", server)
                // What a week of them takes does not fit into a file system of 3 GiB.
                .set("binlog-expire-logs-seconds", "3600")
                .load("oltp_read_write", 2, 5, 5_000),
        );
        all.push(S::healthy("healthy, reads", server).load("oltp_point_select", 2, 100, 5_000));
        all.push(
            S::healthy("healthy, another pool and io2", server)
                .set("innodb-buffer-pool-size", "128M")
                .words(&["--volume=data=io2:size=500GiB,iops=5000"]),
        );
        all.push(
            S::healthy("healthy, on ext4 with relatime", server)
                .on(Disk::With("relatime"))
                .words(&["--volume=gp3:size=500GiB,iops=6000,throughput=250"]),
        );
    }
    all
}
