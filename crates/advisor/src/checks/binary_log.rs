//! The binary log: format, size, retention and group commit.

use ebbtide_observe::Files;

use super::durability::share;
use super::sources::{MARIADB_BINLOG, MYSQL_BINLOG, says};
use super::{EVERY, figure, mariadb, mysql, percent, size, time, whole};
use crate::check::Check;
use crate::finding::{Confidence, FINE, Found, Gap, Judged, Severity};
use crate::fix::Fix;
use crate::view::{Dynamic, View, does_not_apply};

pub(super) const CHECKS: &[Check] = &[
    Check {
        code: "L01",
        title: "The binary log has rows",
        condition: "binlog_format is STATEMENT (low for MIXED)",
        reason: "statements may give other rows on a replica, and take gap locks that rows do not need",
        servers: EVERY,
        severity: Severity::Medium,
        gain: "replicas and point-in-time recovery give the same rows",
        risk: "a statement that changes many rows takes more of the binary log",
        cost: "bytes of the binary log",
        sources: &[
            says(MYSQL_BINLOG, "ROW is the default; the variable is deprecated from 8.0.34 on"),
            says(MARIADB_BINLOG, "the default of MariaDB is MIXED"),
        ],
        judge: format,
    },
    Check {
        code: "L02",
        title: "Rows in the binary log have only what is needed",
        condition: "binlog_row_image is FULL, and the binary log is over 40% of the bytes written, over 1 MiB/s",
        reason: "an update then writes each column before and after; below 1 MiB/s it is small against any volume",
        servers: EVERY,
        severity: Severity::Low,
        gain: "throughput of the volume and of the network",
        risk: "tools that read the binary log (change capture, rewind) may need full rows: ask first",
        cost: "none",
        sources: &[
            says(MYSQL_BINLOG, "minimal logs the columns that changed and those that identify the row"),
            says(
                "https://www.percona.com/software/database-tools/percona-monitoring-and-management",
                "other advice: keep FULL, for tools and for recovery by hand",
            ),
        ],
        judge: row_image,
    },
    Check {
        code: "L03",
        title: "Old binary logs are deleted",
        condition: "no retention is set, or MariaDB waits for more replicas than are connected before it deletes files (slave_connections_needed_for_purge, 1 by default from 11.4 on); or at the present rate the retained files do not fit into the free space",
        reason: "the volume fills up, and a full volume stops the server",
        servers: EVERY,
        severity: Severity::Medium,
        gain: "no outage for want of space",
        risk: "a replica that is behind for longer cannot go on; point-in-time recovery reaches back as far as the files",
        cost: "none",
        sources: &[
            says(
                MYSQL_BINLOG,
                "binlog_expire_logs_seconds is 30 days by default; expire_logs_days is gone from 8.2 on",
            ),
            says(
                MARIADB_BINLOG,
                "expire_logs_days is 0 (never) by default; binlog_expire_logs_seconds from 10.6.1 on",
            ),
            says(
                MARIADB_BINLOG,
                "slave_connections_needed_for_purge: with fewer replicas connected no file is deleted by time or size",
            ),
        ],
        judge: retention,
    },
    Check {
        code: "L04",
        title: "Commits share syncs of the binary log",
        condition: "under 1.2 commits in a group while 8 or more threads run, at 10 commits a second or more",
        reason: "then each commit waits for syncs of its own, and the volume's IOPS bound the commits",
        servers: &[mariadb((10, 0, 0))],
        severity: Severity::Low,
        gain: "more commits at the same IOPS",
        risk: "each commit waits for the delay",
        cost: "latency of a commit: a few hundred microseconds",
        sources: &[
            says(
                "https://mariadb.com/docs/server/server-management/server-monitoring-logs/binary-log/group-commit-for-the-binary-log",
                "binlog_commit_wait_count and binlog_commit_wait_usec make groups larger",
            ),
            says(MYSQL_BINLOG, "MySQL: binlog_group_commit_sync_delay"),
        ],
        judge: groups,
    },
    Check {
        code: "L06",
        title: "Transactions fit into the binary log cache",
        condition: "over 1% of the transactions use a temporary file",
        reason: "such a transaction is written to disk twice; 1% leaves room for rare large ones",
        servers: EVERY,
        severity: Severity::Low,
        gain: "no temporary files at commit",
        risk: "memory for each connection",
        cost: "memory",
        sources: &[says(MYSQL_BINLOG, "raise binlog_cache_size where Binlog_cache_disk_use is high")],
        judge: cache,
    },
    Check {
        code: "L08",
        title: "A large binary log is compressed",
        condition: "compression is OFF, and the binary log is over 40% of the bytes written, over 1 MiB/s",
        reason: "as of L02",
        servers: &[mysql((8, 0, 20)), mariadb((10, 2, 3))],
        severity: Severity::Low,
        gain: "throughput of the volume and of the network",
        risk: "tools that read the binary log have to know the compression",
        cost: "processor time",
        sources: &[
            says(MYSQL_BINLOG, "binlog_transaction_compression compresses a transaction with zstd"),
            says(MARIADB_BINLOG, "log_bin_compress compresses events over log_bin_compress_min_len"),
        ],
        judge: compression,
    },
    Check {
        code: "L11",
        title: "There is a binary log",
        condition: "log_bin is OFF on a server that is no replica",
        reason: "a backup can then only be restored to the time at which it was made, and no replica can be added",
        servers: EVERY,
        severity: Severity::Low,
        gain: "recovery to any point in time, and replicas",
        risk: "none that is known",
        cost: "the binary log's writes: published results lose 2% to 15% of the transactions",
        sources: &[says(MYSQL_BINLOG, "on by default from 8.0 on"), says(MARIADB_BINLOG, "off by default")],
        judge: exists,
    },
];

const MIB: f64 = (1_u64 << 20) as f64;

fn format(v: &View<'_>) -> Judged {
    v.needs_binlog()?;
    let format = v.text("binlog_format")?.to_ascii_uppercase();
    let severity = match &*format {
        "ROW" => return FINE,
        "MIXED" => Severity::Low,
        _ => Severity::Medium,
    };
    Found::because(format!("The binary log has statements (binlog_format = {format})."))
        .severity(severity)
        .fix(v.fix(
            "Log rows. Connections that are open keep their format.",
            &[("binlog_format", "ROW", Dynamic::ALWAYS)],
        )?)
        .answer()
}

/// Bytes of the binary log a second, and its share of all that is written; None where that is small.
fn large(v: &View<'_>) -> Result<Option<(f64, f64)>, Gap> {
    let binlog = v.metric("binlog_bytes")?;
    // MySQL's count of data has the redo log in it, MariaDB's does not.
    let redo = if v.is_mariadb()? { v.metric("redo_bytes")? } else { 0.0 };
    let all = binlog + v.metric("data_bytes")? + redo;
    Ok((binlog > MIB && binlog > 0.4 * all).then_some((binlog, all)))
}

fn row_image(v: &View<'_>) -> Judged {
    v.needs_binlog()?;
    if !v.text("binlog_row_image")?.eq_ignore_ascii_case("full") {
        return FINE;
    }
    let Some((binlog, all)) = large(v)? else { return FINE };
    Found::because(format!(
        "The binary log takes {}/s, {} of the bytes written, with all columns of each row.",
        size(binlog),
        share(binlog, all)
    ))
    .confidence(Confidence::Medium)
    .fix(v.fix(
        "Once all readers of the binary log are known to allow it, log changed columns alone.",
        &[("binlog_row_image", "MINIMAL", Dynamic::ALWAYS)],
    )?)
    .answer()
}

/// Seconds that binary logs are kept; 0: for ever.
fn kept_s(v: &View<'_>) -> Result<f64, Gap> {
    let mut known = false;
    for (name, unit) in [("binlog_expire_logs_seconds", 1.0), ("expire_logs_days", 86_400.0)] {
        if v.maybe(name)?.is_some() {
            known = true;
            let value = v.number(name)? * unit;
            if value > 0.0 {
                return Ok(value);
            }
        }
    }
    if known { Ok(0.0) } else { does_not_apply("the server has no variable for it") }
}

/// The variable that keeps binary logs for a number of seconds, and its unit in seconds.
fn retention_variable(v: &View<'_>) -> Result<(&'static str, f64), Gap> {
    Ok(match v.maybe("binlog_expire_logs_seconds")? {
        Some(_) => ("binlog_expire_logs_seconds", 1.0),
        None => ("expire_logs_days", 86_400.0),
    })
}

const FOR_REPLICAS: &str = "slave_connections_needed_for_purge";

/// The replicas that MariaDB waits for before it deletes binary logs, and those that are connected, where these are fewer.
fn missing_replicas(v: &View<'_>) -> Option<(u64, u64)> {
    let needed = v.maybe(FOR_REPLICAS).ok()??.parse().ok()?;
    let connected = v.last("slaves_connected").ok()?.parse().ok()?;
    (connected < needed).then_some((needed, connected))
}

fn retention(v: &View<'_>) -> Judged {
    v.needs_binlog()?;
    let kept = kept_s(v)?;
    let (variable, unit) = retention_variable(v)?;
    let off = v.maybe("binlog_expire_logs_auto_purge")?.is_some_and(|word| !crate::view::is_on(word));
    let by_size = v.maybe("max_binlog_total_size")?.is_some_and(|bytes| bytes != "0");
    let by_time = kept > 0.0 && !off;
    let missing = missing_replicas(v);
    if missing.is_some() || !(by_time || by_size) {
        let week = format!("{:.0}", 604_800.0 / unit);
        let mut set = Vec::new();
        if !by_size && off {
            set.push(("binlog_expire_logs_auto_purge", "ON", Dynamic::ALWAYS));
        }
        if !by_size && kept == 0.0 {
            set.push((variable, &*week, Dynamic::ALWAYS));
        }
        let keep = if set.is_empty() { "" } else { " Keep a week, or as long as backups need." };
        let (why, text) = match missing {
            Some((needed, connected)) => {
                set.push((FOR_REPLICAS, "0", Dynamic::ALWAYS));
                (
                    format!(
                        "Binary logs are deleted only while {needed} replicas are connected, and {connected} are: the volume fills up."
                    ),
                    format!(
                        "Where the server has replicas, connect them. Where it has none, let files be deleted without.{keep}"
                    ),
                )
            }
            None => {
                ("Binary logs are kept for ever: the volume fills up.".to_owned(), keep.trim().to_owned())
            }
        };
        return Found::because(why).fix(v.fix(text, &set)?).answer();
    }
    if !by_time {
        return FINE;
    }
    let (Ok(rate), Ok(place)) = (v.metric("binlog_bytes"), v.place(Files::Binlog)) else { return FINE };
    let Some(free) = place.free_bytes else { return FINE };
    let free = v.noted("free_bytes", free as f64, "free bytes of the file system of the binary log");
    // Files of before are part of what is used; only the growth until the oldest is deleted counts.
    if rate * kept <= free {
        return FINE;
    }
    // No statement: how many files there are already is not known, and less time deletes what is older.
    let fix = format!(
        "Enlarge the volume: at this rate {} are written in the time that files are kept. Or keep less: half of the free space holds {}. \
         A lower {variable} deletes older files at once: see first that backups and replicas do not need them.",
        size(rate * kept),
        time(0.5 * free / rate)
    );
    Found::because(format!(
        "At {}/s the {} free are full in {}; files are kept for {}.",
        size(rate),
        size(free),
        time(free / rate),
        time(kept)
    ))
    .severity(Severity::High)
    .fix(Fix::by_hand(fix))
    .answer()
}

fn groups(v: &View<'_>) -> Judged {
    v.needs_binlog()?;
    let (commits, groups) = (v.growth("binlog_commits")?, v.growth("binlog_group_commits")?);
    let running = v.metric("threads_running")?;
    if running < 8.0 || commits < 10.0 || groups <= 0.0 || commits >= 1.2 * groups {
        return FINE;
    }
    let set = [
        ("binlog_commit_wait_count", "8", Dynamic::ALWAYS),
        ("binlog_commit_wait_usec", "500", Dynamic::ALWAYS),
    ];
    Found::because(format!(
        "{} commits a second come in {} groups, with {} threads running.",
        figure(commits),
        figure(groups),
        whole(running)
    ))
    .confidence(Confidence::Medium)
    .fix(v.fix("Let a commit wait for others, and measure.", &set)?)
    .answer()
}

/// A cache of each connection is not advised to be larger, bytes.
const LARGEST_CACHE: f64 = 16.0 * MIB;

fn cache(v: &View<'_>) -> Judged {
    v.needs_binlog()?;
    let (all, disk) = (v.growth("binlog_cache_use")?, v.growth("binlog_cache_disk_use")?);
    if disk <= 0.0 || disk <= 0.01 * all {
        return FINE;
    }
    let bytes = v.number("binlog_cache_size")?;
    let found = Found::because(format!(
        "{} of the transactions do not fit into {}.",
        percent(disk / all.max(disk)),
        size(bytes)
    ));
    let enough = cache_for(bytes, v.metric("binlog_bytes").ok().map(|binlog| binlog / disk));
    if enough > LARGEST_CACHE {
        let text = "Each connection has a cache of its own, so that a larger one may take all memory: make transactions smaller.";
        return found.fix(Fix::by_hand(text)).answer();
    }
    found
        .fix(v.fix(
            "Enlarge the cache of each connection.",
            &[("binlog_cache_size", &format!("{enough:.0}"), Dynamic::ALWAYS)],
        )?)
        .answer()
}

/// Bytes of a cache that holds what `bytes` do not: four times as many, and two times what a transaction that did not fit has on
/// average, where that is known. The average counts the whole binary log as theirs, so that it is not too small.
fn cache_for(bytes: f64, on_average: Option<f64>) -> f64 {
    let four_times = (bytes * 4.0).max(131_072.0);
    on_average.map_or(four_times, |average| four_times.max((2.0 * average).log2().ceil().exp2()))
}

fn compression(v: &View<'_>) -> Judged {
    v.needs_binlog()?;
    let name = if v.is_mariadb()? { "log_bin_compress" } else { "binlog_transaction_compression" };
    if v.on(name)? {
        return FINE;
    }
    let Some((binlog, all)) = large(v)? else { return FINE };
    Found::because(format!(
        "The binary log takes {}/s, {} of the bytes written.",
        size(binlog),
        share(binlog, all)
    ))
    .confidence(Confidence::Medium)
    .fix(v.fix("Compress it, once all readers are known to allow it.", &[(name, "ON", Dynamic::ALWAYS)])?)
    .answer()
}

/// The settings with which a binary log is safe, small and allowed: MariaDB by default neither syncs nor deletes it, and
/// MySQL 5.7 does not start with one and without an id.
fn to_turn_on(v: &View<'_>) -> Result<Vec<(&'static str, &'static str, Dynamic)>, Gap> {
    let mut set = vec![("log_bin", "binlog", Dynamic::NEVER)];
    if v.maybe("server_id").ok().flatten() == Some("0") {
        set.push(("server_id", "1", Dynamic::ALWAYS));
    }
    if v.maybe("sync_binlog").ok().flatten().is_some_and(|word| word != "1") {
        set.push(("sync_binlog", "1", Dynamic::ALWAYS));
    }
    if kept_s(v).ok() == Some(0.0) {
        let (name, unit) = retention_variable(v)?;
        set.push((name, if unit > 1.0 { "7" } else { "604800" }, Dynamic::ALWAYS));
    }
    if v.maybe(FOR_REPLICAS).ok().flatten().is_some_and(|word| word != "0") {
        set.push((FOR_REPLICAS, "0", Dynamic::ALWAYS));
    }
    Ok(set)
}

fn exists(v: &View<'_>) -> Judged {
    if v.on("log_bin")? {
        return FINE;
    }
    if v.is_replica() {
        return does_not_apply("the server is a replica");
    }
    let fix = if v.is_aurora() {
        Fix::by_hand("Set binlog_format = ROW in the cluster's parameter group, and restart the writer.")
    } else if v.is_rds() {
        Fix::by_hand("Keep automated backups for a day or more: RDS has a binary log with them.")
    } else {
        v.fix("Turn it on, and delete skip-log-bin from the configuration if it is there.", &to_turn_on(v)?)?
    };
    Found::because("There is no binary log: no recovery to a point in time, and no replica.")
        .fix(fix)
        .answer()
}
