//! How far a replica is behind its source, by the best evidence that its version gives.
//!
//! `Seconds_Behind_Source` alone does not do: it is 0 where the receiver has stopped, compares the clocks of two servers, and has whole
//! seconds. From best to least:
//!
//! 1. MySQL from 8.0.1 on: the time at which the transaction that is applied now was committed on its first source, and whether the one
//!    that was received last is applied (performance_schema);
//! 2. MariaDB with GTIDs: whether every transaction that was received is applied;
//! 3. MariaDB from 11.6 on: the time between the last event that was received and the last one that was applied;
//! 4. `Seconds_Behind_Source`.
//!
//! A replica with a thread that has stopped has no lag that is known: None, which is a reason for an alarm, and never 0.

use ebbtide_mysql::sampling::{Applier, Reading, Receiver, Row};

use super::replica::gtid;

const ANONYMOUS: &str = "ANONYMOUS";
const MICROSECONDS: f64 = 1e6;

/// What a lag is known by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Evidence {
    /// The commit on the first source of what is applied now, or was applied last while something else waits.
    CommitTime,
    /// What was received last is applied.
    AllApplied,
    /// The times of the events that were received and applied last.
    EventTimes,
    /// `Seconds_Behind_Source`.
    SecondsBehind,
    /// The thread that applies does not run: the lag is not known.
    ApplierStopped,
    /// The thread that receives does not run, or has no connection: the lag is not known.
    ReceiverStopped,
    /// Both threads run, and nothing tells the lag.
    Nothing,
}

impl Evidence {
    /// Its name, as the label of a metric.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::CommitTime => "commit_time",
            Self::AllApplied => "all_applied",
            Self::EventTimes => "event_times",
            Self::SecondsBehind => "seconds_behind",
            Self::ApplierStopped => "applier_stopped",
            Self::ReceiverStopped => "receiver_stopped",
            Self::Nothing => "nothing",
        }
    }
}

/// A replica's distance from one of its sources.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplicaLag {
    /// The channel, or the connection of MariaDB; empty for the default one.
    pub channel: String,
    /// Whether the thread that receives has a connection with the source.
    pub receiving: bool,
    /// Whether the thread that applies runs.
    pub applying: bool,
    /// The lag, s, 0 or more; None where it is not known.
    pub seconds: Option<f64>,
    /// What it is known by.
    pub evidence: Evidence,
    /// Transactions that were received and are not applied, of MariaDB with GTIDs; None where they are not numbered so.
    pub transactions: Option<u64>,
}

/// The lag of each channel; empty where the server has no source, or does not say.
#[must_use]
pub fn lags(reading: &Reading) -> Vec<ReplicaLag> {
    let Some(replica) = &reading.replica else { return Vec::new() };
    let appliers: &[Applier] = match &reading.appliers {
        Some(appliers) => &appliers.value,
        None => &[],
    };
    let receivers: &[Receiver] = match &reading.receivers {
        Some(receivers) => &receivers.value,
        None => &[],
    };
    replica.value.iter().map(|row| lag(row, appliers, receivers)).collect()
}

fn lag(row: &Row, appliers: &[Applier], receivers: &[Receiver]) -> ReplicaLag {
    let text = |names: [&str; 2]| names.iter().find_map(|name| row.get(*name)).map_or("", String::as_str);
    let channel = text(["Channel_Name", "Connection_name"]);
    let receiving = text(["Replica_IO_Running", "Slave_IO_Running"]) == "Yes";
    let applying = text(["Replica_SQL_Running", "Slave_SQL_Running"]) == "Yes";
    let transactions = transactions(row);
    let (seconds, evidence) = match (applying, receiving) {
        (false, _) => (None, Evidence::ApplierStopped),
        (true, false) => (None, Evidence::ReceiverStopped),
        (true, true) => {
            let receiver = receivers.iter().find(|receiver| receiver.channel == channel);
            let appliers = appliers.iter().filter(|applier| applier.channel == channel).collect::<Vec<_>>();
            let number = |names| text(names).parse::<f64>().ok();
            by_commit_times(&appliers, receiver)
                .or((transactions == Some(0)).then_some((0.0, Evidence::AllApplied)))
                .or_else(|| Some((number(["Master_Slave_time_diff"; 2])?, Evidence::EventTimes)))
                .or_else(|| {
                    let behind = number(["Seconds_Behind_Source", "Seconds_Behind_Master"])?;
                    Some((behind, Evidence::SecondsBehind))
                })
                .map_or((None, Evidence::Nothing), |(seconds, evidence)| (Some(seconds.max(0.0)), evidence))
        }
    };
    ReplicaLag { channel: channel.to_owned(), receiving, applying, seconds, evidence, transactions }
}

/// The lag by the performance schema of MySQL.
fn by_commit_times(appliers: &[&Applier], receiver: Option<&Receiver>) -> Option<(f64, Evidence)> {
    // Of several transactions that are applied at a time, the oldest one counts.
    if let Some(age) = appliers.iter().filter_map(|applier| applier.applying.age_us).max() {
        return Some((age as f64 / MICROSECONDS, Evidence::CommitTime));
    }
    let queued = &receiver?.queued;
    if queued.gtid.is_empty() {
        // It has received nothing since it was started.
        return None;
    }
    let is_applied = appliers.iter().any(|applier| {
        // Transactions without a GTID are told apart by the times of their commits.
        applier.applied.gtid == queued.gtid
            && (queued.gtid != ANONYMOUS || applier.applied.committed == queued.committed)
    });
    if is_applied {
        return Some((0.0, Evidence::AllApplied));
    }
    // Something waits, and nothing is applied at the moment: the lag is at most the age of what was applied last.
    let newest = appliers.iter().filter_map(|applier| applier.applied.age_us).min()?;
    Some((newest as f64 / MICROSECONDS, Evidence::CommitTime))
}

/// Transactions that MariaDB has received and not applied: for each domain, the difference of the sequence numbers.
fn transactions(row: &Row) -> Option<u64> {
    let received = row.get("Gtid_IO_Pos").filter(|position| !position.is_empty())?;
    let applied = row.get("Gtid_Slave_Pos")?;
    let sequence = |domain: &str| {
        let in_domain = applied.split(',').filter_map(gtid).find(|(applied, ..)| *applied == domain);
        in_domain.map_or(0, |(.., sequence)| sequence)
    };
    let behind = received.split(',').filter_map(gtid);
    Some(behind.map(|(domain, _, received)| received.saturating_sub(sequence(domain))).sum())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ebbtide_mysql::sampling::{Timed, Transaction};

    use super::*;

    fn timed<T>(value: T) -> Option<Timed<T>> {
        Some(Timed { at: Duration::ZERO, value })
    }

    fn row(columns: &[(&str, &str)]) -> Row {
        columns.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn mysql(io: &str, sql: &str, behind: Option<&str>) -> Row {
        let mut columns =
            vec![("Channel_Name", ""), ("Replica_IO_Running", io), ("Replica_SQL_Running", sql)];
        columns.extend(behind.map(|behind| ("Seconds_Behind_Source", behind)));
        row(&columns)
    }

    fn transaction(gtid: &str, committed: &str, age_us: Option<i64>) -> Transaction {
        Transaction { gtid: gtid.into(), committed: committed.into(), age_us }
    }

    fn applier(applied: Transaction, applying: Transaction) -> Applier {
        Applier { running: true, applied, applying, ..Applier::default() }
    }

    /// The lag of a MySQL with two threads that apply.
    fn by_times(appliers: Vec<Applier>, queued: Transaction) -> (Option<f64>, Evidence) {
        let receiver = Receiver { running: true, queued, ..Receiver::default() };
        let reading = Reading {
            replica: timed(vec![mysql("Yes", "Yes", Some("7"))]),
            appliers: timed(appliers),
            receivers: timed(vec![receiver]),
            ..Reading::default()
        };
        let [lag] = &lags(&reading)[..] else { panic!() };
        (lag.seconds, lag.evidence)
    }

    #[test]
    fn the_oldest_transaction_that_is_applied_is_the_lag_of_mysql() {
        let none = Transaction::default;
        let done = |gtid: &str, age| transaction(gtid, "t", Some(age));
        let queued = || done("u:9", 100_000);
        let appliers = vec![
            applier(done("u:5", 9_000_000), transaction("u:7", "", Some(4_500_000))),
            applier(done("u:6", 8_000_000), transaction("u:8", "", Some(1_000_000))),
        ];
        assert_eq!(by_times(appliers, queued()), (Some(4.5), Evidence::CommitTime));
        let idle = vec![applier(done("u:9", 100_000), none()), applier(done("u:8", 300_000), none())];
        assert_eq!(by_times(idle, queued()), (Some(0.0), Evidence::AllApplied));
        let between = vec![applier(done("u:7", 500_000), none()), applier(done("u:8", 300_000), none())];
        assert_eq!(by_times(between, queued()), (Some(0.3), Evidence::CommitTime));
        let ahead = vec![applier(none(), transaction("u:9", "", Some(-2_000)))];
        assert_eq!(
            by_times(ahead, queued()),
            (Some(0.0), Evidence::CommitTime),
            "the source's clock is ahead"
        );
        let nothing_yet = vec![applier(none(), none())];
        assert_eq!(by_times(nothing_yet, none()), (Some(7.0), Evidence::SecondsBehind));
    }

    #[test]
    fn transactions_without_a_gtid_are_told_apart_by_their_times() {
        let anonymous = |committed| transaction(ANONYMOUS, committed, Some(2_000_000));
        let applied = |committed| vec![applier(anonymous(committed), Transaction::default())];
        assert_eq!(by_times(applied("t1"), anonymous("t1")), (Some(0.0), Evidence::AllApplied));
        assert_eq!(by_times(applied("t1"), anonymous("t2")), (Some(2.0), Evidence::CommitTime));
    }

    #[test]
    fn a_replica_with_a_stopped_thread_has_no_lag_whatever_it_says() {
        for (row, evidence) in [
            (mysql("No", "Yes", Some("0")), Evidence::ReceiverStopped),
            (mysql("Connecting", "Yes", Some("0")), Evidence::ReceiverStopped),
            (mysql("Yes", "No", None), Evidence::ApplierStopped),
            (mysql("No", "No", None), Evidence::ApplierStopped),
            (mysql("Yes", "Yes", None), Evidence::Nothing),
        ] {
            let lag = lag(&row, &[], &[]);
            assert_eq!((lag.seconds, lag.evidence), (None, evidence), "{row:?}");
        }
        let lag = lag(&mysql("Yes", "Yes", Some("12")), &[], &[]);
        assert_eq!((lag.seconds, lag.evidence), (Some(12.0), Evidence::SecondsBehind));
        assert!(lags(&Reading::default()).is_empty());
    }

    #[test]
    fn mariadb_is_judged_by_its_positions_and_its_times_of_events() {
        let mariadb = |received: &str, applied: &str, more: &[(&str, &str)]| {
            let columns = [
                ("Connection_name", "shop"),
                ("Slave_IO_Running", "Yes"),
                ("Slave_SQL_Running", "Yes"),
                ("Seconds_Behind_Master", "3"),
                ("Gtid_IO_Pos", received),
                ("Gtid_Slave_Pos", applied),
            ];
            let lag = lag(&row(&[&columns[..], more].concat()), &[], &[]);
            assert_eq!(lag.channel, "shop");
            (lag.seconds, lag.evidence, lag.transactions)
        };
        let diff = [("Master_Slave_time_diff", "2")];
        for (found, expected) in [
            (mariadb("0-1-8", "0-1-8", &[]), (Some(0.0), Evidence::AllApplied, Some(0))),
            (mariadb("0-1-8,3-4-5", "3-4-4,0-1-6", &[]), (Some(3.0), Evidence::SecondsBehind, Some(3))),
            (mariadb("0-1-8", "0-1-6", &diff), (Some(2.0), Evidence::EventTimes, Some(2))),
            (mariadb("0-1-8", "", &[]), (Some(3.0), Evidence::SecondsBehind, Some(8))),
            (mariadb("", "0-1-8", &[]), (Some(3.0), Evidence::SecondsBehind, None)),
            // The domain of another source, and one of its own writes.
            (mariadb("0-1-8", "0-2-9,7-7-7", &[]), (Some(0.0), Evidence::AllApplied, Some(0))),
        ] {
            assert_eq!(found, expected);
        }
    }
}
