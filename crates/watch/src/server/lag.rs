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

use ebbtide_mysql::sampling::{Applier, Reading, Receiver, ReplicaRow};

use super::replica::gtid;

const ANONYMOUS: &str = "ANONYMOUS";
const MICROSECONDS: f64 = 1e6;

/// What a lag is known by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LagEvidence {
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

impl LagEvidence {
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
    /// What it does, in the server's word: `Yes`, `No`, `Connecting`, and MariaDB's `Preparing`.
    pub receiver_word: String,
    /// Whether the thread that applies runs.
    pub applying: bool,
    /// What it does, in the server's word.
    pub applier_word: String,
    /// Seconds that it is to be behind (`SQL_Delay`); 0 without a delay.
    pub delay_s: f64,
    /// The error that a thread has met last: that of the applier before that of the receiver; None without one.
    pub error: Option<String>,
    /// The lag, s, 0 or more; None where it is not known.
    pub seconds: Option<f64>,
    /// What it is known by.
    pub evidence: LagEvidence,
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
    // What was received after the appliers were asked is not applied in what they said: a transaction that came to a quiet replica just
    // now would be as late as the one before it is old.
    let receivers: &[Receiver] = match (&reading.receivers, &reading.appliers) {
        (Some(receivers), Some(appliers)) if receivers.at <= appliers.at => &receivers.value,
        _ => &[],
    };
    replica.value.iter().map(|row| lag(row, appliers, receivers)).collect()
}

fn lag(row: &ReplicaRow, appliers: &[Applier], receivers: &[Receiver]) -> ReplicaLag {
    let text = |names: [&str; 2]| names.iter().find_map(|name| row.get(*name)).map_or("", String::as_str);
    let channel = text(["Channel_Name", "Connection_name"]);
    let receiver_word = text(["Replica_IO_Running", "Slave_IO_Running"]).to_owned();
    let applier_word = text(["Replica_SQL_Running", "Slave_SQL_Running"]).to_owned();
    let (receiving, applying) = (receiver_word == "Yes", applier_word == "Yes");
    let transactions = transactions(row);
    let (seconds, evidence) = match (applying, receiving) {
        (false, _) => (None, LagEvidence::ApplierStopped),
        (true, false) => (None, LagEvidence::ReceiverStopped),
        (true, true) => {
            let receiver = receivers.iter().find(|receiver| receiver.channel == channel);
            let appliers = appliers.iter().filter(|applier| applier.channel == channel).collect::<Vec<_>>();
            let number = |names| text(names).parse::<f64>().ok();
            by_commit_times(&appliers, receiver)
                .or((transactions == Some(0)).then_some((0.0, LagEvidence::AllApplied)))
                .or_else(|| Some((number(["Master_Slave_time_diff"; 2])?, LagEvidence::EventTimes)))
                .or_else(|| {
                    let behind = number(["Seconds_Behind_Source", "Seconds_Behind_Master"])?;
                    Some((behind, LagEvidence::SecondsBehind))
                })
                .map_or((None, LagEvidence::Nothing), |(seconds, evidence)| {
                    (Some(seconds.max(0.0)), evidence)
                })
        }
    };
    ReplicaLag {
        channel: channel.to_owned(),
        receiving,
        receiver_word,
        applying,
        applier_word,
        delay_s: text(["SQL_Delay"; 2]).parse().unwrap_or(0.0),
        error: error(row),
        seconds,
        evidence,
        transactions,
    }
}

/// The last error of a channel, as `error 1062: Duplicate entry`.
fn error(row: &ReplicaRow) -> Option<String> {
    let of_thread = |number: &str, words: &str| {
        let number = row.get(number).filter(|number| !number.is_empty() && *number != "0")?;
        Some(format!("error {number}: {}", row.get(words).map_or("", String::as_str)))
    };
    of_thread("Last_SQL_Errno", "Last_SQL_Error").or_else(|| of_thread("Last_IO_Errno", "Last_IO_Error"))
}

/// The lag by the performance schema of MySQL.
fn by_commit_times(appliers: &[&Applier], receiver: Option<&Receiver>) -> Option<(f64, LagEvidence)> {
    // Of several transactions that are applied at a time, the oldest one counts.
    if let Some(age) = appliers.iter().filter_map(|applier| applier.applying.age_us).max() {
        return Some((age as f64 / MICROSECONDS, LagEvidence::CommitTime));
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
        return Some((0.0, LagEvidence::AllApplied));
    }
    // Something waits, and nothing is applied at the moment: the lag is at most the age of what was applied last.
    let newest = appliers.iter().filter_map(|applier| applier.applied.age_us).min()?;
    Some((newest as f64 / MICROSECONDS, LagEvidence::CommitTime))
}

/// Transactions that MariaDB has received and not applied: for each domain, the difference of the sequence numbers.
fn transactions(row: &ReplicaRow) -> Option<u64> {
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

    fn row(columns: &[(&str, &str)]) -> ReplicaRow {
        columns.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn mysql(io: &str, sql: &str, behind: Option<&str>) -> ReplicaRow {
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
    fn by_times(appliers: Vec<Applier>, queued: Transaction) -> (Option<f64>, LagEvidence) {
        let receiver = Receiver { running: true, queued, ..Receiver::default() };
        let reading = Reading {
            replica: timed(vec![mysql("Yes", "Yes", Some("7"))]),
            appliers: timed(appliers),
            receivers: timed(vec![receiver]),
            ..Reading::default()
        };
        let found = lags(&reading);
        assert_eq!(found.len(), 1);
        (found[0].seconds, found[0].evidence)
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
        assert_eq!(by_times(appliers, queued()), (Some(4.5), LagEvidence::CommitTime));
        let idle = vec![applier(done("u:9", 100_000), none()), applier(done("u:8", 300_000), none())];
        assert_eq!(by_times(idle, queued()), (Some(0.0), LagEvidence::AllApplied));
        let between = vec![applier(done("u:7", 500_000), none()), applier(done("u:8", 300_000), none())];
        assert_eq!(by_times(between, queued()), (Some(0.3), LagEvidence::CommitTime));
        let ahead = vec![applier(none(), transaction("u:9", "", Some(-2_000)))];
        assert_eq!(
            by_times(ahead, queued()),
            (Some(0.0), LagEvidence::CommitTime),
            "the source's clock is ahead"
        );
        let nothing_yet = vec![applier(none(), none())];
        assert_eq!(by_times(nothing_yet, none()), (Some(7.0), LagEvidence::SecondsBehind));
    }

    #[test]
    fn a_transaction_that_comes_to_a_quiet_replica_is_no_lag_of_an_hour() {
        let hour_old = transaction("u:8", "t", Some(3_600_000_000));
        let queued = transaction("u:9", "t", Some(1_000));
        let reading = |receivers_s: u64, appliers_s: u64| Reading {
            replica: timed(vec![mysql("Yes", "Yes", Some("0"))]),
            receivers: Some(Timed {
                at: Duration::from_secs(receivers_s),
                value: vec![Receiver { running: true, queued: queued.clone(), ..Receiver::default() }],
            }),
            appliers: Some(Timed {
                at: Duration::from_secs(appliers_s),
                value: vec![applier(hour_old.clone(), Transaction::default())],
            }),
            ..Reading::default()
        };
        let found = |receivers_s, appliers_s| lags(&reading(receivers_s, appliers_s)).remove(0).seconds;
        assert_eq!(found(2, 1), Some(0.0), "the appliers were asked before it came");
        assert_eq!(found(1, 2), Some(3_600.0), "it waits");
    }

    #[test]
    fn transactions_without_a_gtid_are_told_apart_by_their_times() {
        let anonymous = |committed| transaction(ANONYMOUS, committed, Some(2_000_000));
        let applied = |committed| vec![applier(anonymous(committed), Transaction::default())];
        assert_eq!(by_times(applied("t1"), anonymous("t1")), (Some(0.0), LagEvidence::AllApplied));
        assert_eq!(by_times(applied("t1"), anonymous("t2")), (Some(2.0), LagEvidence::CommitTime));
    }

    #[test]
    fn a_replica_with_a_stopped_thread_has_no_lag_whatever_it_says() {
        for (row, evidence) in [
            (mysql("No", "Yes", Some("0")), LagEvidence::ReceiverStopped),
            (mysql("Connecting", "Yes", Some("0")), LagEvidence::ReceiverStopped),
            (mysql("Yes", "No", None), LagEvidence::ApplierStopped),
            (mysql("No", "No", None), LagEvidence::ApplierStopped),
            (mysql("Yes", "Yes", None), LagEvidence::Nothing),
        ] {
            let lag = lag(&row, &[], &[]);
            assert_eq!((lag.seconds, lag.evidence), (None, evidence), "{row:?}");
        }
        let lag = lag(&mysql("Yes", "Yes", Some("12")), &[], &[]);
        assert_eq!((lag.seconds, lag.evidence), (Some(12.0), LagEvidence::SecondsBehind));
        assert_eq!((lag.receiver_word.as_str(), lag.delay_s, lag.error), ("Yes", 0.0, None));
        assert!(lags(&Reading::default()).is_empty());
    }

    #[test]
    fn the_error_and_the_delay_of_a_channel_are_the_servers() {
        let columns = [
            ("Slave_IO_Running", "Connecting"),
            ("Slave_SQL_Running", "No"),
            ("SQL_Delay", "3600"),
            ("Last_IO_Errno", "2003"),
            ("Last_IO_Error", "error connecting"),
            ("Last_SQL_Errno", "1062"),
            ("Last_SQL_Error", "Duplicate entry"),
        ];
        let found = lag(&row(&columns), &[], &[]);
        assert_eq!(found.error.as_deref(), Some("error 1062: Duplicate entry"));
        assert_eq!((found.receiver_word.as_str(), found.applier_word.as_str()), ("Connecting", "No"));
        assert_eq!(found.delay_s, 3_600.0);
        let columns =
            columns.map(|(name, value)| if name == "Last_SQL_Errno" { (name, "0") } else { (name, value) });
        assert_eq!(lag(&row(&columns), &[], &[]).error.as_deref(), Some("error 2003: error connecting"));
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
            (mariadb("0-1-8", "0-1-8", &[]), (Some(0.0), LagEvidence::AllApplied, Some(0))),
            (mariadb("0-1-8,3-4-5", "3-4-4,0-1-6", &[]), (Some(3.0), LagEvidence::SecondsBehind, Some(3))),
            (mariadb("0-1-8", "0-1-6", &diff), (Some(2.0), LagEvidence::EventTimes, Some(2))),
            (mariadb("0-1-8", "", &[]), (Some(3.0), LagEvidence::SecondsBehind, Some(8))),
            (mariadb("", "0-1-8", &[]), (Some(3.0), LagEvidence::SecondsBehind, None)),
            // The domain of another source, and one of its own writes.
            (mariadb("0-1-8", "0-2-9,7-7-7", &[]), (Some(0.0), LagEvidence::AllApplied, Some(0))),
        ] {
            assert_eq!(found, expected);
        }
    }
}
