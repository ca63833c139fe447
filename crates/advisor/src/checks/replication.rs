//! A replica: what it syncs, and whether its storage has enough to do at a time.

use ebbtide_observe::Version;

use super::sources::{MARIADB_BINLOG, MYSQL_REPLICA, WHITEPAPER, says};
use super::{EVERY, MARIADB, time};
use crate::check::Check;
use crate::finding::{Confidence, FINE, Found, Gap, Judged, Severity};
use crate::view::{Dynamic, View, does_not_apply};

pub(super) const CHECKS: &[Check] = &[
    Check {
        code: "L05",
        title: "A replica does not sync at each event",
        condition: "a replica with sync_relay_log, sync_relay_log_info, sync_source_info or sync_master_info of 1 to 99",
        reason: "each sync is an operation of the volume; a relay log that is lost is fetched again (D10). The default is 10000",
        servers: EVERY,
        severity: Severity::Low,
        gain: "fewer syncs while events are received and applied",
        risk: "after a crash more events are fetched again: D10 must be fine",
        cost: "none",
        sources: &[
            says(
                MYSQL_REPLICA,
                "1 is the safest against a loss of events at the price of a sync for each; the default is 10000",
            ),
            says(MARIADB_BINLOG, "the defaults are 10000"),
        ],
        judge: syncs,
    },
    Check {
        code: "L07",
        title: "A replica without replicas writes no second binary log",
        condition: "a replica with log_slave_updates ON and the binary log on, to which no replica is connected; not on a node of a Galera cluster, which needs it to pass events on",
        reason: "each change is then written once more, and synced with each commit",
        servers: MARIADB,
        severity: Severity::Low,
        gain: "less to write and to sync on the replica",
        risk: "point-in-time recovery and failover to this replica need its binary log: leave it on for them",
        cost: "none",
        sources: &[says(
            MARIADB_BINLOG,
            "log_slave_updates has a replica log what it applies; a chain of replicas needs it",
        )],
        judge: second_log,
    },
    Check {
        code: "L09",
        title: "A replica applies in parallel",
        condition: "a replica that is over 30 s behind, beyond the delay that it is set to, with at most one worker",
        reason: "one worker has one operation in flight, and an EBS volume needs several to reach its IOPS. 30 s is more than a burst",
        servers: EVERY,
        severity: Severity::Medium,
        gain: "a replica that keeps up, on the same volume",
        risk: "with an older MySQL, commits may be seen in another order: keep the commit order",
        cost: "a thread for each worker",
        sources: &[
            says(MYSQL_REPLICA, "replica_parallel_workers is 4 by default from 8.0.27 on"),
            says(MARIADB_BINLOG, "slave_parallel_threads is 0 by default: no parallel apply"),
            says(WHITEPAPER, "keep a queue of operations for the volume's IOPS"),
        ],
        judge: parallel,
    },
    Check {
        code: "L12",
        title: "A replica is running",
        condition: "a thread of replication is not running",
        reason: "the replica gets older with each second, and the source must keep its binary logs for it",
        servers: EVERY,
        severity: Severity::High,
        gain: "a replica that can take over",
        risk: "the error that stopped it has to be understood first",
        cost: "none",
        sources: &[says(
            "https://dev.mysql.com/doc/refman/8.4/en/replication-administration-status.html",
            "both threads say Yes on a healthy replica",
        )],
        judge: runs,
    },
];

const SYNCS: [&str; 4] = ["sync_relay_log", "sync_relay_log_info", "sync_source_info", "sync_master_info"];

fn syncs(v: &View<'_>) -> Judged {
    v.replica()?;
    let mut set = Vec::new();
    for name in SYNCS {
        if v.maybe(name)?.is_some() && (1.0..100.0).contains(&v.number(name)?) {
            set.push((name, "10000", Dynamic::ALWAYS));
        }
    }
    // The newer name stands for both.
    if set.iter().any(|one| one.0 == "sync_source_info") {
        set.retain(|one| one.0 != "sync_master_info");
    }
    if set.is_empty() {
        return FINE;
    }
    let names: Vec<_> = set.iter().map(|one| one.0).collect();
    Found::because(format!("The replica syncs its files at nearly each event ({}).", names.join(", ")))
        .fix(v.fix(
            "Sync them as by default, with relay_log_recovery or GTIDs for the time after a crash.",
            &set,
        )?)
        .answer()
}

fn parallel(v: &View<'_>) -> Judged {
    let replica = v.replica()?;
    let behind = ["seconds_behind_source", "seconds_behind_master"]
        .iter()
        .find_map(|name| replica.get(name)?.parse::<f64>().ok());
    let Some(behind) = behind else {
        return Err(Gap::Undecided(
            "The replica does not say how far it is behind: it is not running (L12).".into(),
        ));
    };
    let delay = replica.get("sql_delay").and_then(|delay| delay.parse().ok()).unwrap_or(0.0);
    let behind = (behind - delay).max(0.0);
    v.noted(
        "seconds_behind",
        behind,
        "seconds that the replica is behind its source, without the delay that it is set to",
    );
    let name = if v.is_mariadb()? {
        "slave_parallel_threads"
    } else if v.maybe("replica_parallel_workers")?.is_some() {
        "replica_parallel_workers"
    } else {
        "slave_parallel_workers"
    };
    let workers = v.number(name)?;
    if workers > 1.0 || behind <= 30.0 {
        return FINE;
    }
    let mut set = vec![(name, "4", Dynamic::ALWAYS)];
    // Of one schema MySQL 5.7 applies nothing in parallel unless it is told to, and keeps the order only then.
    for kind in ["replica_parallel_type", "slave_parallel_type"] {
        if set.len() == 1
            && v.maybe(kind).ok().flatten().is_some_and(|word| word.eq_ignore_ascii_case("database"))
        {
            set.insert(0, (kind, "LOGICAL_CLOCK", Dynamic::ALWAYS));
        }
    }
    let order = if name.starts_with("replica") {
        "replica_preserve_commit_order"
    } else {
        "slave_preserve_commit_order"
    };
    // Before 8.0.19 the order needs a binary log of what is applied.
    let logs = v.server()?.1 >= Version::new(8, 0, 19)
        || (v.on("log_bin")? && v.maybe("log_slave_updates")?.is_some_and(crate::view::is_on));
    if logs && v.maybe(order)?.is_some_and(|word| !crate::view::is_on(word)) {
        set.push((order, "ON", Dynamic::ALWAYS));
    }
    Found::because(format!("The replica is {} behind and applies with {workers} workers.", time(behind)))
        .fix(v.fix("Stop replication, set it, start replication.", &set)?)
        .answer()
}

fn runs(v: &View<'_>) -> Judged {
    let replica = v.replica()?;
    let word = |names: [&str; 2]| names.into_iter().find_map(|name| replica.get(name));
    let (io, sql) = (
        word(["replica_io_running", "slave_io_running"]),
        word(["replica_sql_running", "slave_sql_running"]),
    );
    let (Some(io), Some(sql)) = (io, sql) else {
        return does_not_apply("the columns of replication are not known here");
    };
    v.word("io_thread", io, "the thread that receives events");
    v.word("sql_thread", sql, "the thread that applies events");
    if io == "Yes" && sql == "Yes" {
        return FINE;
    }
    // The words of an error may quote rows of users: only its number is kept.
    let numbers = ["last_sql_errno", "last_io_errno"];
    let number = numbers.into_iter().find_map(|name| replica.get(name).filter(|number| *number != "0"));
    let error =
        number.map(|number| format!(" The number of the last error is {number}.")).unwrap_or_default();
    let (show, forget) = if v.is_mariadb()? {
        ("SHOW ALL SLAVES STATUS", "RESET SLAVE ALL (of a connection with a name: RESET SLAVE 'name' ALL)")
    } else if v.server()?.1 >= Version::new(8, 0, 22) {
        ("SHOW REPLICA STATUS", "RESET REPLICA ALL")
    } else {
        ("SHOW SLAVE STATUS", "RESET SLAVE ALL")
    };
    Found::because(format!("Replication is not running: receiving {io}, applying {sql}.{error}"))
        .fix(crate::fix::Fix::by_hand(format!(
            "Read the error ({show}), mend its cause, and start replication. A server that was promoted forgets its old source with {forget}."
        )))
        .answer()
}

fn second_log(v: &View<'_>) -> Judged {
    v.replica()?;
    v.needs_binlog()?;
    if v.is_galera() {
        return does_not_apply("a node of a Galera cluster passes on what it logs");
    }
    if !v.on("log_slave_updates")? || v.last("slaves_connected")? != "0" {
        return FINE;
    }
    Found::because("The replica logs what it applies, and no replica reads that.")
        .confidence(Confidence::Medium)
        .fix(v.fix(
            "Turn it off where neither recovery nor failover needs it.",
            &[("log_slave_updates", "OFF", Dynamic::NEVER)],
        )?)
        .answer()
}
