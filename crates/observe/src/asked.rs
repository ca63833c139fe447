//! Which counters a server is asked for: those of the table [`METRICS`], and its uptime.

use std::collections::BTreeSet;

use crate::metric::{Counter, Source};
use crate::{Flavour, METRICS};

/// Seconds since the server's start.
pub const UPTIME: Counter = Counter::Status("uptime");

/// The counters that a flavour's servers are asked for. A name that a version does not have is not answered.
#[derive(Debug)]
pub struct AskedCounters(BTreeSet<Counter>);

impl AskedCounters {
    /// Those of a flavour.
    #[must_use]
    pub fn of(flavour: Flavour) -> Self {
        let maker = flavour.maker();
        let mut counters = BTreeSet::from([UPTIME]);
        for metric in METRICS {
            metric.formula.each_source(&mut |source: &'static Source| {
                if source.0.include(maker) {
                    counters.extend(source.1);
                }
            });
        }
        Self(counters)
    }

    /// Whether a counter is among them.
    #[must_use]
    pub fn has(&self, counter: Counter) -> bool {
        self.0.contains(&counter)
    }

    /// Variables of SHOW GLOBAL STATUS, in lower case.
    pub fn status(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().filter_map(|counter| match *counter {
            Counter::Status(name) => Some(name),
            _ => None,
        })
    }

    /// Rows of INFORMATION_SCHEMA.INNODB_METRICS.
    pub fn metrics(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().filter_map(|counter| match *counter {
            Counter::InnodbMetric(name) => Some(name),
            _ => None,
        })
    }

    /// Beginnings of lines of SHOW ENGINE INNODB STATUS.
    pub fn engine(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().filter_map(|counter| match *counter {
            Counter::EngineStatus(line) => Some(line),
            _ => None,
        })
    }

    /// Instruments of files, each once.
    #[must_use]
    pub fn files(&self) -> BTreeSet<&'static str> {
        let name = |counter: &Counter| match *counter {
            Counter::FileIo(name, _) => Some(name),
            _ => None,
        };
        self.0.iter().filter_map(name).collect()
    }

    /// Instruments of other waits.
    pub fn waits(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().filter_map(|counter| match *counter {
            Counter::Wait(name) => Some(name),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::metric::FileColumn;

    use super::*;

    #[test]
    fn a_server_is_asked_for_the_counters_of_its_maker_alone() {
        let [mariadb, mysql, percona] =
            [Flavour::MariaDb, Flavour::MySql, Flavour::Percona].map(AskedCounters::of);
        assert!(mariadb.status().any(|name| name == "binlog_bytes_written"));
        assert!(!mariadb.has(Counter::BinaryLogs) && mysql.has(Counter::BinaryLogs));
        let metrics = |asked: &AskedCounters| asked.metrics().count();
        assert_eq!([metrics(&mariadb), metrics(&mysql), metrics(&percona)], [3, 8, 8]);
        let redo = "wait/io/file/innodb/innodb_log_file";
        assert!(mysql.has(Counter::FileIo(redo, FileColumn::MiscTime)));
        assert!(!mariadb.files().contains(redo), "MariaDB does not instrument it");
        for asked in [&mariadb, &mysql, &percona] {
            assert!(asked.status().any(|name| name == "uptime"));
            assert!(asked.status().all(|name| name == name.to_lowercase()));
        }
    }
}
