//! What a crash or a power cut may take.

use ebbtide_observe::{Files, Flavour, NotSeen, Version, switch};

use super::sources::{
    MARIADB_BINLOG, MARIADB_INNODB, MOUNT, MYSQL_BINLOG, MYSQL_INNODB, MYSQL_REDO, MYSQL_REPLICA, OWN_CUTS,
    WHITEPAPER, says,
};
use super::{EVERY, mariadb, mysql, percent};
use crate::check::Check;
use crate::finding::{FINE, Found, Gap, Judged, Severity};
use crate::fix::Fix;
use crate::view::{Dynamic, View, does_not_apply};

pub(super) const CHECKS: &[Check] = &[
    Check {
        code: "D01",
        title: "A commit waits for the redo log's sync",
        condition: "innodb_flush_log_at_trx_commit is neither 1 nor 3 (low on a replica and on a node of a Galera cluster, which can be made again)",
        reason: "with 0 a crash of the server, and with 2 a crash of the machine, loses the commits of up to innodb_flush_log_at_timeout",
        servers: EVERY,
        severity: Severity::Critical,
        gain: "no acknowledged commit is lost",
        risk: "commits wait for the storage: throughput falls where they are few at a time",
        cost: "a sync for each group of commits",
        sources: &[
            says(
                MYSQL_INNODB,
                "1 is required for full ACID compliance; with 0 and 2, transactions of the last second can be lost",
            ),
            says(MARIADB_INNODB, "3 is 1 with the syncs of a group commit as before 10.0"),
        ],
        judge: commit_waits,
    },
    Check {
        code: "D02",
        title: "How much a lazy commit may lose",
        condition: "innodb_flush_log_at_timeout over 1 s while innodb_flush_log_at_trx_commit is 0 or 2",
        reason: "1 s is the default; a longer time is a longer loss",
        servers: EVERY,
        severity: Severity::Medium,
        gain: "a crash loses one second of commits at most",
        risk: "none that is known",
        cost: "a sync a second",
        sources: &[says(
            MYSQL_INNODB,
            "the redo log is written and synced every innodb_flush_log_at_timeout seconds",
        )],
        judge: lazy_commits,
    },
    Check {
        code: "D03",
        title: "A commit waits for the binary log's sync",
        condition: "the binary log is on and sync_binlog is not 1 (low on a replica and on a node of a Galera cluster)",
        reason: "after a power cut the binary log lacks commits that the tables have, or the reverse: replicas and point-in-time recovery differ",
        servers: EVERY,
        severity: Severity::High,
        gain: "tables and binary log agree after a power cut",
        risk: "commits wait for one more sync; published results on EBS and SSDs lose 2% to 15% of the transactions",
        cost: "a sync for each group of commits",
        sources: &[
            says(MYSQL_BINLOG, "sync_binlog=1 is the safest; other values can lose transactions at a crash"),
            says(MARIADB_BINLOG, "the default of MariaDB is 0: the operating system decides"),
            says(
                WHITEPAPER,
                "opposite advice: sync_binlog gives no benefit on EBS volumes. A volume does not protect the page cache of a machine that loses power",
            ),
            says(
                OWN_CUTS,
                "our power cuts: with sync_binlog = 0, tables and binary log differed in all 40 cuts, and 20 lost acknowledged commits",
            ),
        ],
        judge: binlog_syncs,
    },
    Check {
        code: "D05",
        title: "The redo log is on",
        condition: "Innodb_redo_log_enabled is OFF",
        reason: "without a redo log any crash makes the data directory unusable",
        servers: &[mysql((8, 0, 21))],
        severity: Severity::Critical,
        gain: "the server recovers from a crash",
        risk: "none that is known",
        cost: "the redo log's writes",
        sources: &[says(
            MYSQL_REDO,
            "disabling redo logging is for loading data into a new instance; a crash then loses it",
        )],
        judge: redo_on,
    },
    Check {
        code: "D06",
        title: "Pages have checksums",
        condition: "innodb_checksum_algorithm is none or strict_none, or innodb_log_checksums is OFF; low on MariaDB from 10.4.3 on where the former is not full_crc32",
        reason: "without a checksum a damaged page is read as data, and a torn block of the redo log is applied",
        servers: EVERY,
        severity: Severity::Critical,
        gain: "damage by storage is noticed when a page is read",
        risk: "only pages that are written from now on get the new checksum",
        cost: "processor time that no benchmark shows on current processors",
        sources: &[
            says(MYSQL_INNODB, "none writes a constant in place of a checksum"),
            says(MARIADB_INNODB, "full_crc32 covers the whole page, and is the default from 10.5 on"),
        ],
        judge: checksums,
    },
    Check {
        code: "D07",
        title: "InnoDB runs without forced recovery",
        condition: "innodb_force_recovery is over 0",
        reason: "it leaves parts of recovery out; from 4 on it can damage data for ever",
        servers: EVERY,
        severity: Severity::Critical,
        gain: "a server that recovers and purges as it should",
        risk: "the server may not start without it: dump the data first",
        cost: "a dump and a load of the data",
        sources: &[says(
            "https://dev.mysql.com/doc/refman/8.4/en/forcing-innodb-recovery.html",
            "use it only to dump tables; 4 and more can damage data files permanently",
        )],
        judge: forced_recovery,
    },
    Check {
        code: "D08",
        title: "Data files are synced",
        condition: "innodb_flush_method is nosync or littlesync",
        reason: "both leave syncs out; they are for tests of InnoDB",
        servers: EVERY,
        severity: Severity::Critical,
        gain: "data files survive a power cut",
        risk: "none that is known",
        cost: "the syncs that were left out",
        sources: &[says(
            MYSQL_INNODB,
            "littlesync and nosync are for internal performance testing and are not supported",
        )],
        judge: synced_files,
    },
    Check {
        code: "D09",
        title: "The file systems keep the order of writes",
        condition: "data, redo or binary log on a mount with nobarrier, barrier=0 or data=writeback",
        reason: "without barriers a sync does not reach the medium of a device that has a volatile cache",
        servers: EVERY,
        severity: Severity::High,
        gain: "a sync means durable",
        risk: "none that is known",
        cost: "syncs take as long as the device needs",
        sources: &[says(
            MOUNT,
            "barrier=0 disables the use of write barriers; data=writeback can show old data after a crash",
        )],
        judge: barriers,
    },
    Check {
        code: "D10",
        title: "A replica survives its own crash",
        condition: "the server has a source, does not use GTIDs, and relay_log_recovery is OFF",
        reason: "relay logs are not synced at each event; after a crash their end may be missing or torn",
        servers: EVERY,
        severity: Severity::Medium,
        gain: "a replica fetches again what it had not applied",
        risk: "none that is known; relay logs that were not applied are fetched again",
        cost: "traffic from the source after a restart",
        sources: &[says(
            MYSQL_REPLICA,
            "relay_log_recovery makes a replica resilient to its halt; enable it before the start",
        )],
        judge: replica_recovers,
    },
    Check {
        code: "D11",
        title: "Tables are in an engine that survives a crash",
        condition: "tables of users in MyISAM or Aria (low for Aria alone)",
        reason: "MyISAM has no log: a crash while it writes leaves damaged tables. Aria has one, and no transactions. Both lie outside the buffer pool",
        servers: EVERY,
        severity: Severity::Medium,
        gain: "one engine to back up, to cache and to recover",
        risk: "ALTER TABLE copies the table; full-text and spatial indexes differ in details",
        cost: "space: InnoDB tables are larger",
        sources: &[says(
            "https://dev.mysql.com/doc/refman/8.4/en/converting-tables-to-innodb.html",
            "how to convert tables from MyISAM",
        )],
        judge: engines,
    },
    Check {
        code: "L10",
        title: "The binary log has checksums",
        condition: "binlog_checksum is NONE, and the server is no member of a group (group replication) before MySQL 8.0.21, which needs that",
        reason: "a torn or damaged event is applied as data, on replicas and at point-in-time recovery",
        servers: EVERY,
        severity: Severity::Medium,
        gain: "damage is noticed when an event is read",
        risk: "none that is known",
        cost: "4 bytes for each event",
        sources: &[says(MYSQL_BINLOG, "the default is CRC32")],
        judge: binlog_checksum,
    },
];

/// How a commit waits for the redo log: not (0), for its write (2), or for its sync (1, and MariaDB's 3).
pub(super) fn commit_mode(v: &View<'_>) -> Result<&'static str, Gap> {
    v.one_of("innodb_flush_log_at_trx_commit", &["0", "1", "2", "3"])
}

fn commit_waits(v: &View<'_>) -> Judged {
    let value = commit_mode(v)?;
    if matches!(value, "1" | "3") {
        return FINE;
    }
    let event = if value == "0" { "crash of the server or of the machine" } else { "crash of the machine" };
    let found = Found::because(format!("A {event} loses acknowledged commits of {}.", lost_time(v)));
    let found = if v.is_copy() { found.severity(Severity::Low) } else { found };
    let text = "Let each commit wait for the redo log, or write down that this loss is accepted.";
    found.fix(v.fix(text, &[("innodb_flush_log_at_trx_commit", "1", Dynamic::ALWAYS)])?).answer()
}

/// The release that took innodb_flush_log_at_timeout: before, the log is synced about once a second.
const WITH_TIMEOUT: [(Flavour, Version); 2] =
    [(Flavour::MySql, Version::new(5, 6, 6)), (Flavour::MariaDb, Version::new(10, 0, 0))];

/// How long before a crash a commit may be lost that nothing waited for, in words.
fn lost_time(v: &View<'_>) -> String {
    let is_before = |(flavour, version): (Flavour, Version)| {
        WITH_TIMEOUT.iter().any(|(maker, first)| maker.maker() == flavour.maker() && version < *first)
    };
    if v.server().is_ok_and(is_before) {
        return "about a second".into();
    }
    match v.maybe("innodb_flush_log_at_timeout") {
        Ok(None) => "about a second".into(),
        Ok(Some(seconds)) if seconds.parse::<f64>().is_ok() => format!("up to {seconds} s"),
        Ok(Some(_)) | Err(_) => "up to a second, or innodb_flush_log_at_timeout if that is set".into(),
    }
}

fn lazy_commits(v: &View<'_>) -> Judged {
    if !matches!(commit_mode(v)?, "0" | "2") {
        return FINE;
    }
    let seconds = v.number("innodb_flush_log_at_timeout")?;
    if seconds <= 1.0 {
        return FINE;
    }
    Found::because(format!("A crash loses up to {seconds} s of acknowledged commits."))
        .fix(v.fix(
            "Sync the redo log every second.",
            &[("innodb_flush_log_at_timeout", "1", Dynamic::ALWAYS)],
        )?)
        .answer()
}

fn binlog_syncs(v: &View<'_>) -> Judged {
    v.needs_binlog()?;
    let commits = v.number("sync_binlog")?;
    if commits == 1.0 {
        return FINE;
    }
    let lost = if commits == 0.0 {
        "all that the kernel has not written, up to 30 s or more".into()
    } else {
        format!("up to {commits} groups of commits")
    };
    let found = Found::because(format!("A crash of the machine can take from the binary log {lost}."));
    let found = if v.is_copy() { found.severity(Severity::Low) } else { found };
    let text = "Sync the binary log at each group commit. Where that costs too much, make groups larger (check L04).";
    found.fix(v.fix(text, &[("sync_binlog", "1", Dynamic::ALWAYS)])?).answer()
}

fn redo_on(v: &View<'_>) -> Judged {
    if !v.last("innodb_redo_log_enabled")?.eq_ignore_ascii_case("off") {
        return FINE;
    }
    let fix = Fix::by_hand("Turn the redo log on.").statement("ALTER INSTANCE ENABLE INNODB REDO_LOG");
    Found::because("The redo log is off: a crash loses the data directory.").fix(fix).answer()
}

fn checksums(v: &View<'_>) -> Judged {
    let of_pages = page_checksums(v);
    // Servers before 5.7.9, and MariaDB from 10.6 on, do not have the switch: their redo log always has checksums.
    let is_off = v.maybe("innodb_log_checksums").is_ok_and(|word| word.and_then(switch) == Some(false));
    if !is_off {
        return of_pages;
    }
    let fix =
        v.fix("Write the redo log with checksums.", &[("innodb_log_checksums", "ON", Dynamic::ALWAYS)])?;
    let of_log =
        Found::because("The redo log has no checksums: a torn block is applied at recovery.").fix(fix);
    match of_pages {
        Ok(Some(of_pages)) => of_pages.and(of_log, Severity::Critical).answer(),
        _ => of_log.answer(),
    }
}

fn page_checksums(v: &View<'_>) -> Judged {
    let algorithm = v.text("innodb_checksum_algorithm")?;
    let full = mariadb((10, 4, 3));
    let (flavour, version) = v.server()?;
    let takes_full = flavour.is_among(version, full);
    let to = if takes_full { "full_crc32" } else { "crc32" };
    let found = match algorithm {
        "none" | "strict_none" => {
            Found::because("Pages are written without a checksum: damage is read as data.")
        }
        "full_crc32" | "strict_full_crc32" => return FINE,
        _ if takes_full => {
            Found::because(format!("{algorithm} leaves parts of a page unchecked, which full_crc32 covers."))
                .severity(Severity::Low)
        }
        _ => return FINE,
    };
    found
        .fix(v.fix(format!("Write pages with {to}."), &[("innodb_checksum_algorithm", to, Dynamic::ALWAYS)])?)
        .answer()
}

fn forced_recovery(v: &View<'_>) -> Judged {
    let level = v.number("innodb_force_recovery")?;
    if level == 0.0 {
        return FINE;
    }
    let text = "Dump all tables, make a new data directory, load them, and start without the option.";
    Found::because(format!("InnoDB runs in forced recovery, level {level}."))
        .fix(v.fix(text, &[("innodb_force_recovery", "0", Dynamic::NEVER)])?)
        .answer()
}

fn synced_files(v: &View<'_>) -> Judged {
    let method = v.text("innodb_flush_method")?;
    if !matches!(method.to_ascii_lowercase().as_str(), "nosync" | "littlesync") {
        return FINE;
    }
    Found::because(format!("innodb_flush_method = {method} leaves syncs of data files out."))
        .fix(v.fix(
            "Write past the page cache, with syncs.",
            &[("innodb_flush_method", "O_DIRECT", Dynamic::NEVER)],
        )?)
        .answer()
}

/// Options without which a sync does not keep its promise.
const UNSAFE: [&str; 4] = ["nobarrier", "barrier=0", "data=writeback", "journal_async_commit"];

fn barriers(v: &View<'_>) -> Judged {
    v.mount(Files::Data)?;
    for place in &v.host()?.places {
        let bad = place.options.iter().find(|option| UNSAFE.contains(&option.as_str()));
        if let (Some(option), true) = (bad, place.files != Files::Temporary) {
            v.word("options", &place.options.join(","), "options of the mount");
            let text =
                format!("Mount {} without {option}; make the same change in /etc/fstab.", place.mount_point);
            return Found::because(format!(
                "{}, with the {}, is mounted with {option}.",
                place.mount_point,
                place.files.name()
            ))
            .fix(Fix::by_hand(text))
            .answer();
        }
    }
    FINE
}

fn replica_recovers(v: &View<'_>) -> Judged {
    let replica = v.replica()?;
    let gtid =
        |name: &str, off: &str| replica.get(name).is_some_and(|value| !value.is_empty() && value != off);
    if gtid("using_gtid", "No") || gtid("auto_position", "0") {
        return does_not_apply("replication uses GTIDs");
    }
    if v.on("relay_log_recovery")? {
        return FINE;
    }
    Found::because("After a crash the replica goes on from relay logs whose end may be missing.")
        .fix(v.fix(
            "Let the replica fetch again what it had not applied.",
            &[("relay_log_recovery", "ON", Dynamic::NEVER)],
        )?)
        .answer()
}

fn engines(v: &View<'_>) -> Judged {
    let tables = v.tables()?;
    let risky = |name: &str| ["MyISAM", "Aria"].iter().any(|one| one.eq_ignore_ascii_case(name));
    let found: Vec<_> =
        tables.engines.iter().filter(|engine| engine.tables > 0 && risky(&engine.name)).collect();
    let count: u64 = found.iter().map(|engine| engine.tables).sum();
    v.noted("tables_outside_innodb", count as f64, "tables of users in MyISAM or Aria");
    if count == 0 && tables.hidden {
        return Err(Gap::Missing(NotSeen {
            what: "the engines of all tables".into(),
            why: "grant SELECT on *.*: the server lists no other tables to an account".into(),
        }));
    }
    if count == 0 {
        return FINE;
    }
    let names: Vec<_> = found.iter().map(|engine| format!("{} in {}", engine.tables, engine.name)).collect();
    let myisam = found.iter().any(|engine| engine.name.eq_ignore_ascii_case("MyISAM"));
    let (what, severity) = if myisam {
        ("Tables that a crash can damage", Severity::Medium)
    } else {
        ("Tables without transactions, outside the buffer pool", Severity::Low)
    };
    Found::because(format!("{what}: {}.", names.join(", ")))
        .severity(severity)
        .fix(Fix::by_hand("List them: SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE ENGINE IN ('MyISAM', 'Aria') AND TABLE_TYPE = 'BASE TABLE' AND TABLE_SCHEMA NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema'). Convert each: ALTER TABLE name ENGINE = InnoDB. It copies the table, so try it on a replica first."))
        .answer()
}

fn binlog_checksum(v: &View<'_>) -> Judged {
    v.needs_binlog()?;
    if !v.text("binlog_checksum")?.eq_ignore_ascii_case("none") {
        return FINE;
    }
    let group = v.maybe("group_replication_group_name").ok().flatten().is_some_and(|name| !name.is_empty());
    if group && v.server()?.1 < Version::new(8, 0, 21) {
        return does_not_apply("group replication needs it before 8.0.21");
    }
    Found::because("Events of the binary log have no checksum.")
        .fix(v.fix("Write events with CRC32.", &[("binlog_checksum", "CRC32", Dynamic::ALWAYS)])?)
        .answer()
}

/// Shares for people, for the other areas too.
pub(super) fn share(part: f64, all: f64) -> String {
    percent(if all > 0.0 { part / all } else { 0.0 })
}
