//! What a server does between two looks at it: rates, and how fast its redo log fills.
//!
//! A growth is computed once, between two looks at one run of the server. After a restart, and over a time in which the server was not
//! looked at, there is none.

use std::collections::VecDeque;
use std::time::Duration;

use ebbtide_mysql::sampling::{Reading, Timed};
use ebbtide_observe::metric::Maker;
use ebbtide_observe::{
    AskedCounters, Counter, Facts, Flavour, Interval, Observation, Origin, REDO_SYNC_FLUSH_SHARE, Rates,
    Readings, StatusVariables, Variables,
};

/// Two looks that are further apart say nothing of now.
const LONGEST_INTERVAL: Duration = Duration::from_secs(120);
/// The growth of the checkpoint's age is that of so long: from second to second it goes up and down with each batch of pages.
const WINDOW: Duration = Duration::from_secs(60);
/// With less of it, the growth is not known.
const SHORTEST_WINDOW: Duration = Duration::from_secs(10);

/// InnoDB's counters that are values of the moment. The others are asked less often than the status, and would be rates of an interval
/// that is not theirs.
const GAUGES: [&str; 3] = ["log_lsn_checkpoint_age", "log_max_modified_age_sync", "trx_rseg_history_len"];
/// The position up to which redo was written: MySQL from 8.0.30 on; MariaDB and Percona Server.
const POSITIONS: [&str; 2] = ["innodb_redo_log_current_lsn", "innodb_lsn_current"];
/// What the size of the redo log follows from.
const CAPACITY_VARIABLES: [&str; 5] = [
    "version",
    "version_comment",
    "innodb_redo_log_capacity",
    "innodb_log_file_size",
    "innodb_log_files_in_group",
];
const CAPACITY_STATUS: &str = "innodb_redo_log_capacity_resized";

/// How full a redo log is, and how fast it fills. A field is None where the server does not give what it follows from.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RedoUse {
    /// Bytes of all files of the log.
    pub capacity_bytes: Option<f64>,
    /// Bytes of redo since the checkpoint: what cannot be overwritten.
    pub used_bytes: Option<f64>,
    /// The use at which the server flushes pages before all else; writers wait there, or soon after.
    pub sync_flush_bytes: Option<f64>,
    /// Redo that is written, bytes a second.
    pub written_per_s: Option<f64>,
    /// Growth of the use over the last minute, bytes a second; below 0 where the checkpoint gains on the writers.
    pub growth_per_s: Option<f64>,
}

impl RedoUse {
    /// Seconds until the server flushes before all else, if the use goes on to grow as in the last minute; None where it does not
    /// grow. 0 where it is there.
    #[must_use]
    pub fn seconds_to_sync_flush(&self) -> Option<f64> {
        let room = self.room()?;
        if room == 0.0 {
            return Some(0.0);
        }
        self.growth_per_s.filter(|growth| *growth > 0.0).map(|growth| room / growth)
    }

    /// Seconds of the present writes that fit in until then, if no page were flushed.
    #[must_use]
    pub fn headroom_seconds(&self) -> Option<f64> {
        let room = self.room()?;
        self.written_per_s.filter(|written| *written > 0.0).map(|written| room / written)
    }

    fn room(&self) -> Option<f64> {
        Some((self.sync_flush_bytes? - self.used_bytes?).max(0.0))
    }
}

/// The last look at a server, and what happened since the one before. It has no clock: times are those of the readings.
#[derive(Debug, Default)]
pub struct ServerTrend {
    run: u64,
    asked: Option<(Maker, AskedCounters)>,
    last: Option<Moment>,
    rates: Option<Rates>,
    redo: RedoUse,
    /// Ages of the checkpoint of the last minute, with their times.
    ages: VecDeque<(Duration, f64)>,
}

#[derive(Debug)]
struct Moment {
    at: Duration,
    readings: Readings,
    position: Option<u64>,
}

impl ServerTrend {
    /// Takes a look in. One that was taken in before changes nothing.
    pub fn observe(&mut self, reading: &Reading) {
        let (Some(maker), Some(status)) = (reading.maker, &reading.status) else { return };
        if self.last.as_ref().is_some_and(|last| last.at == status.at && reading.run == self.run) {
            return;
        }
        if reading.run != self.run {
            self.run = reading.run;
            self.last = None;
            self.ages.clear();
        }
        let moment = self.moment(maker, status, reading);
        let before =
            self.last.take().filter(|last| status.at > last.at && status.at - last.at <= LONGEST_INTERVAL);
        if before.is_none() {
            self.ages.clear();
        }
        let rates = before.as_ref().map(|before| {
            Rates::over(&Interval {
                before: &before.readings,
                after: &moment.readings,
                seconds: (moment.at - before.at).as_secs_f64(),
            })
        });
        self.redo = self.redo_use(reading, &moment, before.as_ref(), rates.as_ref());
        self.rates = rates;
        self.last = Some(moment);
    }

    /// What happened between the last two looks, a second. None after the first look, after a restart, and after over two minutes
    /// without a look.
    #[must_use]
    pub const fn rates(&self) -> Option<&Rates> {
        self.rates.as_ref()
    }

    /// The counters of the last look that the project's metrics follow from; None before the first one. `uptime` is among them.
    #[must_use]
    pub fn readings(&self) -> Option<&Readings> {
        self.last.as_ref().map(|last| &last.readings)
    }

    /// The redo log at the last look.
    #[must_use]
    pub const fn redo(&self) -> &RedoUse {
        &self.redo
    }

    fn moment(&mut self, maker: Maker, status: &Timed<Variables>, reading: &Reading) -> Moment {
        let flavour = match maker {
            Maker::MariaDb => Flavour::MariaDb,
            Maker::MySql => Flavour::MySql,
        };
        if self.asked.as_ref().is_none_or(|(of_maker, _)| *of_maker != maker) {
            self.asked = Some((maker, AskedCounters::of(flavour)));
        }
        let asked = self.asked.as_ref().map(|(_, asked)| asked);
        let number = |name: &str| status.value.get(name)?.parse::<u64>().ok();
        let counters = asked.into_iter().flat_map(AskedCounters::status);
        let mut readings: Readings =
            counters.filter_map(|name| Some((Counter::Status(name), number(name)?))).collect();
        for metric in reading.innodb_metrics.iter().flat_map(|metrics| &metrics.value) {
            if let (Some(name), Ok(count)) =
                (GAUGES.into_iter().find(|name| *name == metric.name), u64::try_from(metric.count))
            {
                readings.insert(Counter::InnodbMetric(name), count);
            }
        }
        Moment { at: status.at, readings, position: POSITIONS.into_iter().find_map(number) }
    }

    fn redo_use(
        &mut self,
        reading: &Reading,
        moment: &Moment,
        before: Option<&Moment>,
        rates: Option<&Rates>,
    ) -> RedoUse {
        let gauges = Rates::at(&moment.readings);
        let capacity = capacity_bytes(reading);
        if let Some(age) = gauges.checkpoint_age {
            self.ages.push_back((moment.at, age));
            while self.ages.front().is_some_and(|(time, _)| *time + WINDOW < moment.at) {
                self.ages.pop_front();
            }
        }
        // The position counts all redo. What is written has padding besides, and is the second best.
        let written = before.and_then(|before| {
            let grown = moment.position?.checked_sub(before.position?)?;
            Some(grown as f64 / (moment.at - before.at).as_secs_f64())
        });
        RedoUse {
            capacity_bytes: capacity,
            used_bytes: gauges.checkpoint_age,
            sync_flush_bytes: gauges
                .checkpoint_age_max
                .or_else(|| capacity.map(|capacity| REDO_SYNC_FLUSH_SHARE * capacity)),
            written_per_s: written.or_else(|| rates?.redo_bytes),
            growth_per_s: self.growth(),
        }
    }

    fn growth(&self) -> Option<f64> {
        let ((first, before), (last, after)) = (self.ages.front()?, self.ages.back()?);
        let passed = last.saturating_sub(*first);
        (passed >= SHORTEST_WINDOW).then(|| (after - before) / passed.as_secs_f64())
    }
}

/// Bytes of the redo log's files together, as the doctor knows them.
fn capacity_bytes(reading: &Reading) -> Option<f64> {
    let variables = &reading.variables.as_ref()?.value;
    let sized: Variables =
        CAPACITY_VARIABLES.into_iter().filter_map(|name| Some((name, variables.get(name)?))).collect();
    let status = reading.status.as_ref().and_then(|status| status.value.get(CAPACITY_STATUS));
    let status: Variables = status.into_iter().map(|value| (CAPACITY_STATUS, value)).collect();
    let seen = Observation {
        facts: Some(Facts::of(&sized)),
        variables: Some(sized),
        status: Some(StatusVariables::once(status)),
        ..Observation::of(Origin::Server { at: String::new() })
    };
    seen.redo_capacity_bytes().map(|bytes| bytes as f64)
}

#[cfg(test)]
mod tests {
    use ebbtide_mysql::sampling::InnodbMetric;

    use super::*;

    const MIB: f64 = 1_048_576.0;

    fn timed<T>(seconds: u64, value: T) -> Option<Timed<T>> {
        Some(Timed { at: Duration::from_secs(seconds), value })
    }

    /// Two looks at a MariaDB 10.11.19 of Debian under load, 5 s apart.
    fn recorded(look: usize, seconds: u64) -> Reading {
        let rows = |text: &'static str| text.lines().filter_map(|line| line.split_once('\t'));
        let status = include_str!("../../../captured/tests/fixtures/status.tsv");
        let status = status.split("Variable_name\tValue\n").nth(look).unwrap();
        let variables = include_str!("../../../captured/tests/fixtures/variables.tsv");
        Reading {
            up: true,
            maker: Some(Maker::MariaDb),
            status: timed(seconds, rows(status).collect()),
            variables: timed(0, rows(variables).collect()),
            ..Reading::default()
        }
    }

    #[test]
    fn the_redo_log_of_a_real_mariadb_is_measured_and_foretold() {
        let mut trend = ServerTrend::default();
        trend.observe(&recorded(1, 100));
        let first = *trend.redo();
        assert_eq!(first.capacity_bytes, Some(48.0 * MIB));
        assert_eq!((first.used_bytes, first.sync_flush_bytes), (Some(5_274_942.0), Some(40_050_893.0)));
        assert_eq!((first.written_per_s, trend.rates()), (None, None), "one look is no interval");
        trend.observe(&recorded(2, 105));
        let written = (6_383_029.0 - 5_319_702.0) / 5.0;
        assert_eq!(trend.redo().written_per_s, Some(written));
        assert_eq!(trend.redo().growth_per_s, None, "5 s are too few");
        let headroom = trend.redo().headroom_seconds().unwrap();
        assert!((headroom - (40_050_893.0 - 6_338_269.0) / written).abs() < 1e-6, "{headroom}");
        let rates = trend.rates().unwrap();
        assert_eq!((rates.log_waits, rates.checkpoint_age), (Some(0.0), Some(6_338_269.0)));
        // The same look once more changes nothing.
        let before = *trend.redo();
        trend.observe(&recorded(2, 105));
        assert_eq!((*trend.redo(), trend.rates().is_some()), (before, true));
    }

    /// A MySQL 9.7 whose redo since the checkpoint grows by 1 MiB a second from 10 MiB on.
    fn filling(second: u64, run: u64) -> Reading {
        let lsn = second * 1_048_576 + (100 << 20);
        let checkpoint = 90_u64 << 20;
        let numbers = [
            ("innodb_redo_log_current_lsn", lsn),
            ("innodb_redo_log_checkpoint_lsn", checkpoint),
            ("innodb_redo_log_capacity_resized", 100 << 20),
            ("innodb_log_waits", second * 2),
            ("innodb_buffer_pool_wait_free", second * 3),
        ];
        let variables = [("version", "9.7.4"), ("innodb_redo_log_capacity", "104857600")];
        Reading {
            up: true,
            run,
            maker: Some(Maker::MySql),
            status: timed(
                second,
                numbers.map(|(name, number)| (name, number.to_string())).into_iter().collect(),
            ),
            variables: timed(0, variables.into_iter().collect()),
            ..Reading::default()
        }
    }

    #[test]
    fn the_time_until_the_sync_flush_follows_from_the_growth_of_the_last_minute() {
        let mut trend = ServerTrend::default();
        for second in 0..=30 {
            trend.observe(&filling(second, 0));
        }
        let redo = trend.redo();
        assert_eq!((redo.used_bytes, redo.growth_per_s), (Some(40.0 * MIB), Some(MIB)));
        assert_eq!(redo.written_per_s, Some(MIB));
        assert!((redo.seconds_to_sync_flush().unwrap() - 43.0).abs() < 0.01, "83 MiB of 100: {redo:?}");
        assert_eq!(
            trend.rates().map(|rates| (rates.log_waits, rates.wait_free)),
            Some((Some(2.0), Some(3.0)))
        );
        for second in 31..=80 {
            trend.observe(&filling(second, 0));
        }
        assert_eq!(trend.redo().seconds_to_sync_flush(), Some(0.0), "it is there");
        let steady = RedoUse { growth_per_s: Some(-1.0), used_bytes: Some(1.0), ..*trend.redo() };
        assert_eq!(steady.seconds_to_sync_flush(), None, "the checkpoint keeps up");
    }

    #[test]
    fn a_restart_and_a_long_time_without_a_look_are_gaps_and_no_spikes() {
        let mut trend = ServerTrend::default();
        (0..20).for_each(|second| trend.observe(&filling(second, 0)));
        assert!(trend.rates().is_some() && trend.redo().growth_per_s.is_some());
        trend.observe(&filling(20, 1));
        assert_eq!(
            (trend.rates(), trend.redo().growth_per_s, trend.redo().written_per_s),
            (None, None, None)
        );
        trend.observe(&filling(21, 1));
        assert_eq!(trend.rates().unwrap().log_waits, Some(2.0));
        trend.observe(&filling(500, 1));
        assert_eq!((trend.rates(), trend.redo().growth_per_s), (None, None));
        // Counters that somebody has cleared: FLUSH STATUS.
        let flushed = Reading {
            status: filling(0, 1).status.map(|status| Timed { at: Duration::from_secs(501), ..status }),
            ..filling(0, 1)
        };
        trend.observe(&flushed);
        assert_eq!(trend.rates().unwrap().log_waits, None, "no spike below 0, and no zero");
    }

    /// MySQL before 8.0.30 has the checkpoint in counters that are off by default.
    #[test]
    fn the_checkpoint_of_an_older_mysql_is_known_where_its_counters_are_on() {
        let variables =
            [("version", "8.0.15"), ("innodb_log_file_size", "50331648"), ("innodb_log_files_in_group", "2")];
        let reading = |metrics: Vec<InnodbMetric>| Reading {
            maker: Some(Maker::MySql),
            status: timed(1, [("uptime", "5")].into_iter().collect()),
            variables: timed(0, variables.into_iter().collect()),
            innodb_metrics: timed(0, metrics),
            ..Reading::default()
        };
        let redo = |metrics| {
            let mut trend = ServerTrend::default();
            trend.observe(&reading(metrics));
            *trend.redo()
        };
        let off = redo(Vec::new());
        assert_eq!((off.capacity_bytes, off.used_bytes), (Some(96.0 * MIB), None));
        assert_eq!(off.sync_flush_bytes, Some(REDO_SYNC_FLUSH_SHARE * 96.0 * MIB));
        assert_eq!((off.seconds_to_sync_flush(), off.headroom_seconds()), (None, None));
        let metric = |name: &str, count| InnodbMetric {
            name: name.into(),
            subsystem: "recovery".into(),
            kind: "value".into(),
            count,
        };
        let on =
            redo(vec![metric("log_lsn_checkpoint_age", 1_000), metric("log_max_modified_age_sync", 9_000)]);
        assert_eq!((on.used_bytes, on.sync_flush_bytes), (Some(1_000.0), Some(9_000.0)));
    }
}
