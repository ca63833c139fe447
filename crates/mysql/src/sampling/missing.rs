//! What a server does not give: why, and the statement that would enable it.

use std::collections::BTreeMap;

use ebbtide_observe::Version;
use ebbtide_observe::metric::Maker;

use super::collector::Collector;
use super::connection::Refusal;
use super::reading::{Missing, Reading};

/// Errors for want of a privilege: `ER_DBACCESS_DENIED_ERROR`, `ER_TABLEACCESS_DENIED_ERROR`, `ER_COLUMNACCESS_DENIED_ERROR`,
/// `ER_SPECIFIC_ACCESS_DENIED_ERROR`.
const NO_PRIVILEGE: [u16; 4] = [1044, 1142, 1143, 1227];
/// Errors of a statement that the server has ended because it took too long: MySQL's `ER_QUERY_TIMEOUT`, MariaDB's `ER_STATEMENT_TIMEOUT`,
/// and `ER_LOCK_WAIT_TIMEOUT`.
const TOO_SLOW: [u16; 3] = [3024, 1969, 1205];

/// Counters of InnoDB that are off by default, and that tell why pages are flushed.
const FLUSH_COUNTERS: [&str; 2] = ["buffer_flush_adaptive_total_pages", "buffer_flush_sync_total_pages"];
/// MySQL before 8.0.30 has the checkpoint's age in these alone.
const CHECKPOINT_COUNTERS: [&str; 2] = ["log_lsn_checkpoint_age", "log_max_modified_age_sync"];
/// From this version on MySQL has the checkpoint in its status.
const CHECKPOINT_IN_STATUS: Version = Version::new(8, 0, 30);

/// What a server does not give to `account`; `refused` is what it has refused the last time.
pub(super) fn missing(
    reading: &Reading,
    refused: &BTreeMap<Collector, Refusal>,
    account: &str,
) -> Vec<Missing> {
    let Some(maker) = reading.maker else { return Vec::new() };
    let mut missing: Vec<Missing> =
        refused.iter().map(|(collector, refusal)| of_refusal(*collector, refusal, maker, account)).collect();
    if reading.release.is_none() {
        missing.push(Missing {
            subject: subject(Collector::Replica).to_owned(),
            reason: "the server's version is not known here, nor the words that it has for replication"
                .to_owned(),
            enable: None,
        });
    }
    missing.extend(times_of_transactions(reading, maker));
    missing.extend(response_times(reading));
    if !refused.contains_key(&Collector::InnodbMetrics) {
        missing.extend(counters(reading, maker));
    }
    missing
}

/// Settings of the session that a server has refused: statements of the sampling have no such limit there.
pub(super) fn missing_settings(refused: &[(&'static str, Refusal)]) -> Vec<Missing> {
    let row = |(setting, Refusal { code, message }): &(&'static str, Refusal)| Missing {
        subject: "limits of the session".to_owned(),
        reason: format!("the server answered '{setting}' with error {code}: {message}"),
        enable: None,
    };
    refused.iter().map(row).collect()
}

/// What a collector brings, in words.
const fn subject(collector: Collector) -> &'static str {
    match collector {
        Collector::Status => "status",
        Collector::Variables => "variables",
        Collector::Replica => "replication",
        Collector::Appliers | Collector::Receivers => "times of replicated transactions",
        Collector::InnodbMetrics => "counters of InnoDB",
        Collector::PageCompression => "compression of pages",
        Collector::CompressedPool => "compressed pages in memory",
        Collector::ResponseTimes => "times of statements",
        Collector::BinaryLogs => "size of the binary log",
    }
}

fn of_refusal(collector: Collector, refusal: &Refusal, maker: Maker, account: &str) -> Missing {
    let Refusal { code, message } = refusal;
    let privilege = collector.privilege(maker).filter(|_| NO_PRIVILEGE.contains(code));
    let reason = if TOO_SLOW.contains(code) {
        format!("the server was too slow, and ended the statement (error {code}: {message})")
    } else {
        format!("the server answered error {code}: {message}")
    };
    Missing {
        subject: subject(collector).to_owned(),
        reason,
        enable: privilege
            .map(|[privilege, level]| format!("GRANT {privilege} ON {level} TO {}", quoted(account))),
    }
}

/// An account such as `monitor@%` in the words of GRANT.
fn quoted(account: &str) -> String {
    let quoted = |text: &str| format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"));
    let (user, host) = account.rsplit_once('@').unwrap_or((account, "%"));
    format!("{}@{}", quoted(user), quoted(host))
}

fn times_of_transactions(reading: &Reading, maker: Maker) -> Option<Missing> {
    let has_source = reading.replica.as_ref().is_some_and(|replica| !replica.value.is_empty());
    let variables = &reading.variables.as_ref()?.value;
    let off = variables.get("performance_schema").is_some_and(|word| word.eq_ignore_ascii_case("off"));
    (has_source && maker == Maker::MySql && off).then(|| Missing {
        subject: subject(Collector::Appliers).to_owned(),
        reason: "performance_schema is OFF, so that the lag is known in whole seconds alone".to_owned(),
        enable: Some("performance_schema=ON in the server's option file, and a restart".to_owned()),
    })
}

fn response_times(reading: &Reading) -> Option<Missing> {
    let variables = &reading.variables.as_ref()?.value;
    let off = variables.get("query_response_time_stats").is_some_and(|word| word.eq_ignore_ascii_case("off"));
    off.then(|| Missing {
        subject: subject(Collector::ResponseTimes).to_owned(),
        reason: "query_response_time_stats is OFF".to_owned(),
        enable: Some("SET GLOBAL query_response_time_stats = ON".to_owned()),
    })
}

/// The counters that are off and wanted.
fn counters(reading: &Reading, maker: Maker) -> Vec<Missing> {
    let Some(metrics) = &reading.innodb_metrics else { return Vec::new() };
    let off = |names: &[&str]| {
        let is_off = |name: &&&str| !metrics.value.iter().any(|metric| metric.name == **name);
        names.iter().filter(is_off).map(|name| (*name).to_owned()).collect::<Vec<String>>()
    };
    let without_status =
        maker == Maker::MySql && reading.release.is_some_and(|release| release < CHECKPOINT_IN_STATUS);
    let checkpoint = if without_status { off(&CHECKPOINT_COUNTERS) } else { Vec::new() };
    let row = |(subject, names): (&str, Vec<String>)| {
        let enable = names.iter().map(|name| format!("SET GLOBAL innodb_monitor_enable = '{name}'"));
        let enable = enable.collect::<Vec<String>>().join("; ");
        (!names.is_empty()).then(|| Missing {
            subject: subject.to_owned(),
            reason: format!("InnoDB does not count {}", names.join(" and ")),
            enable: Some(enable),
        })
    };
    let wanted = [("use of the redo log", checkpoint), ("reasons of page flushes", off(&FLUSH_COUNTERS))];
    wanted.into_iter().filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ebbtide_observe::Variables;

    use super::super::reading::{InnodbMetric, Timed};
    use super::*;

    fn timed<T>(value: T) -> Option<Timed<T>> {
        Some(Timed { at: Duration::ZERO, value })
    }

    fn metrics(names: &[&str]) -> Option<Timed<Vec<InnodbMetric>>> {
        let metric = |name: &&str| InnodbMetric {
            name: (*name).to_owned(),
            subsystem: "log".into(),
            kind: "value".into(),
            count: 1,
        };
        timed(names.iter().map(metric).collect())
    }

    fn server(maker: Maker, version: &str) -> Reading {
        Reading { maker: Some(maker), release: Version::parse(version), ..Reading::default() }
    }

    #[test]
    fn what_is_refused_for_want_of_a_privilege_has_the_statement_that_grants_it() {
        for (maker, collector, statement) in [
            (Maker::MariaDb, Collector::Replica, "GRANT REPLICA MONITOR ON *.* TO 'o''neil'@'10.%'"),
            (Maker::MariaDb, Collector::BinaryLogs, "GRANT BINLOG MONITOR ON *.* TO 'o''neil'@'10.%'"),
            (Maker::MySql, Collector::Replica, "GRANT REPLICATION CLIENT ON *.* TO 'o''neil'@'10.%'"),
            (Maker::MySql, Collector::InnodbMetrics, "GRANT PROCESS ON *.* TO 'o''neil'@'10.%'"),
            (Maker::MySql, Collector::Appliers, "GRANT SELECT ON performance_schema.* TO 'o''neil'@'10.%'"),
        ] {
            let refusal = Refusal { code: 1227, message: "Access denied".into() };
            let refused = BTreeMap::from([(collector, refusal)]);
            let missing = missing(&server(maker, "10.11.19"), &refused, "o'neil@10.%");
            assert_eq!(missing[0].enable.as_deref(), Some(statement));
            assert!(missing[0].reason.contains("error 1227: Access denied"), "{missing:?}");
        }
    }

    #[test]
    fn a_limit_of_the_session_that_is_refused_is_listed_with_what_the_server_said() {
        let refusal = Refusal { code: 1193, message: "Unknown system variable 'max_execution_time'".into() };
        let found = missing_settings(&[("SET SESSION max_execution_time = 2000", refusal)]);
        assert_eq!((found.len(), found[0].subject.as_str()), (1, "limits of the session"));
        assert!(found[0].reason.contains("max_execution_time = 2000' with error 1193: Unknown"), "{found:?}");
        assert!(missing_settings(&[]).is_empty());
    }

    #[test]
    fn what_was_too_slow_has_no_statement_that_enables_it() {
        let refused = BTreeMap::from([(
            Collector::InnodbMetrics,
            Refusal { code: 3024, message: "Query execution was interrupted".into() },
        )]);
        let missing = missing(&server(Maker::MySql, "8.4.6"), &refused, "m@%");
        assert_eq!(missing.len(), 1);
        assert!(missing[0].enable.is_none() && missing[0].reason.contains("too slow"), "{missing:?}");
    }

    #[test]
    fn the_checkpoint_is_missing_where_neither_status_nor_counters_have_it() {
        let subjects = |reading: Reading| {
            let missing = missing(&reading, &BTreeMap::new(), "m@%");
            missing.into_iter().map(|missing| (missing.subject, missing.enable.unwrap())).collect::<Vec<_>>()
        };
        let old = Reading { innodb_metrics: metrics(&FLUSH_COUNTERS), ..server(Maker::MySql, "8.0.15") };
        let found = subjects(old);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].0, "use of the redo log");
        assert_eq!(
            found[0].1,
            "SET GLOBAL innodb_monitor_enable = 'log_lsn_checkpoint_age'; \
             SET GLOBAL innodb_monitor_enable = 'log_max_modified_age_sync'"
        );
        for (maker, version) in [(Maker::MySql, "9.7.4"), (Maker::MariaDb, "11.8.9")] {
            let reading = Reading { innodb_metrics: metrics(&["log_waits"]), ..server(maker, version) };
            let found = subjects(reading);
            assert_eq!(found.len(), 1, "{found:?}");
            assert_eq!(found[0].0, "reasons of page flushes");
        }
        let all = [&FLUSH_COUNTERS[..], &CHECKPOINT_COUNTERS[..]].concat();
        let reading = Reading { innodb_metrics: metrics(&all), ..server(Maker::MySql, "5.7.44") };
        assert!(subjects(reading).is_empty());
    }

    #[test]
    fn what_is_off_is_named_with_what_turns_it_on() {
        let variables = |pairs: &[(&str, &str)]| timed(pairs.iter().copied().collect::<Variables>());
        let reading = Reading {
            variables: variables(&[("query_response_time_stats", "OFF"), ("performance_schema", "OFF")]),
            replica: timed(vec![BTreeMap::new()]),
            ..server(Maker::MySql, "5.7.44")
        };
        let found = missing(&reading, &BTreeMap::new(), "m@%");
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].enable.as_deref().unwrap().contains("and a restart"));
        assert_eq!(found[1].enable.as_deref(), Some("SET GLOBAL query_response_time_stats = ON"));
        let unknown = Reading { release: None, ..server(Maker::MySql, "") };
        assert!(missing(&unknown, &BTreeMap::new(), "m@%")[0].reason.contains("version is not known"));
        assert!(missing(&Reading::default(), &BTreeMap::new(), "m@%").is_empty());
    }
}
