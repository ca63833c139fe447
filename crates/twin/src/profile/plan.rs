//! From the keys of a profile to what the model takes, refusing what is missing or cannot be.

use ebbtide_text::parse_duration;
use ebbtide_volume::{MIB, Nanos, parse_size};

use super::ProfileError;
use super::file::{DoublewriteMode, DoublewriteTable, PointState, PointTable, Profile, ServerTable};
use super::machine::MachineFacts;
use crate::innodb::{Costs, Flavour, LEAST_REDO_BYTES, Machine, ModelLoad, PageKind, Point, Settings, Shape};

/// What a profile says, checked.
#[derive(Debug, Clone)]
pub struct Planned {
    /// The server.
    pub settings: Settings,
    /// The machine.
    pub machine: Machine,
    /// The workload.
    pub shape: Shape,
    /// What is given of the costs of a transaction, before any calibration.
    pub costs: Costs,
    /// Whether the processor time among them was given.
    pub cpu_given: bool,
    /// What was measured.
    pub points: Vec<PlannedPoint>,
    /// Whether the pages of a transaction were observed; else the workload is described.
    pub observed: bool,
    /// The kind of workload, as the profile names it.
    pub workload: String,
    /// The buffer pool, times the data; None where the profile does not say how much data there are.
    pub pool_of_data: Option<f64>,
    /// Size of the data, bytes: as the profile says, or the leaf pages of the workload that it describes. None where neither
    /// is known.
    pub data_bytes: Option<f64>,
}

/// A measured point, checked; its volumes are still a text.
pub type PlannedPoint = Point<String>;

/// Time over which a point may be measured: the model runs for as long, several times.
const SHORTEST_POINT: Nanos = Nanos::from_secs(10);
const LONGEST_POINT: Nanos = Nanos::from_secs(86_400);
/// Connections that the model takes.
pub(super) const MOST_CLIENTS: u32 = 10_000;

impl Profile {
    /// Checks the profile. `known` is the instance that it names, where the caller knows it.
    ///
    /// # Errors
    /// What is missing, and where to get it; or the first value that is out of its range.
    pub fn plan(&self, known: MachineFacts, seed: u64) -> Result<Planned, ProfileError> {
        let settings = self.server.settings()?;
        let vcpus = self.machine.vcpus.or(known.vcpus).ok_or(ProfileError::Missing {
            what: "machine.vcpus",
            from: "`nproc` on the server, or give machine.instance",
        })?;
        range("machine.vcpus", vcpus, 1..=1_024, "1 to 1024")?;
        let threads_per_core = self.machine.threads_per_core.unwrap_or(2);
        range("machine.threads_per_core", threads_per_core, 1..=8, "1 to 8")?;
        range("machine.divided_by", self.machine.divided_by.unwrap_or(1), 1..=1_000, "1 to 1000")?;
        let shape = self.workload.shape(1.0, settings.page_bytes, settings.flavour.log_maker(), seed)?;
        let costs = self.workload.costs()?;
        let kind = self.workload.kind.as_deref().unwrap_or_default();
        let data_bytes = self.data_bytes(&shape, &settings);
        Ok(Planned {
            machine: Machine { vcpus, threads_per_core, memory: self.machine.memory(known.memory_bytes)? },
            cpu_given: self.workload.cpu_us.is_some(),
            observed: kind == "observed",
            points: self
                .points
                .iter()
                .enumerate()
                .map(|(n, point)| self.point(n + 1, point, seed))
                .collect::<Result<_, _>>()?,
            workload: kind.to_owned(),
            pool_of_data: data_bytes.map(|data| settings.buffer_pool_bytes as f64 / data),
            data_bytes,
            settings,
            shape,
            costs,
        })
    }

    /// Size of the data, bytes: as the profile says, or the leaf pages of the workload that is described.
    fn data_bytes(&self, shape: &Shape, settings: &Settings) -> Option<f64> {
        let described = || {
            let pages: f64 = shape
                .classes
                .iter()
                .filter_map(|class| match class.kind {
                    PageKind::Reused { pages, .. } => Some(pages),
                    _ => None,
                })
                .sum();
            pages * f64::from(settings.page_bytes)
        };
        self.workload.data_bytes().ok().or_else(|| Some(described())).filter(|bytes| *bytes > 0.0)
    }

    fn point(&self, number: usize, point: &PointTable, seed: u64) -> Result<PlannedPoint, ProfileError> {
        let missing = |what, from| ProfileError::Missing { what, from };
        let volume = point
            .volume
            .clone()
            .ok_or(missing("point.volume", "the volume that was measured, like gp3:size=500GiB"))?;
        let tps = point.tps.ok_or(missing(
            "point.tps",
            "the difference of Com_commit over the measurement, by its seconds",
        ))?;
        let of = |key: &str| format!("point {number}: {key}");
        positive(&of("tps"), tps)?;
        let load = match (point.clients, point.rate) {
            (None, None) => {
                return Err(missing(
                    "point.clients",
                    "connections that were busy, or point.rate for an open loop",
                ));
            }
            (clients, rate) => ModelLoad { clients: clients.unwrap_or(256), rate },
        };
        range(&of("clients"), load.clients, 1..=MOST_CLIENTS, "1 to 10000")?;
        for (key, value) in [("rate", load.rate), ("cpu_pct", point.cpu_pct)] {
            value.map_or(Ok(()), |value| positive(&of(key), value))?;
        }
        for (key, value) in [("reads", point.reads), ("writes", point.writes)] {
            value.map_or(Ok(()), |value| not_negative(&of(key), value))?;
        }
        if let Some(pct) = point.cpu_pct.filter(|pct| *pct > 100.0) {
            let allowed = "more than 0, at most 100: percent of all processors together";
            return Err(ProfileError::Range { key: of("cpu_pct"), value: pct.to_string(), allowed });
        }
        let mut settings = self.server.settings()?;
        if let Some(text) = &point.buffer_pool_size {
            settings.buffer_pool_bytes = size(&of("buffer_pool_size"), text)?;
        }
        let factor = match &point.data_size {
            None => 1.0,
            Some(text) => size(&of("data_size"), text)? as f64 / self.workload.data_bytes()?,
        };
        let shape = self.workload.shape(factor, settings.page_bytes, settings.flavour.log_maker(), seed)?;
        Ok(PlannedPoint {
            volumes: volume,
            instance: None,
            settings,
            shape,
            load,
            tps,
            reads: point.reads,
            writes: point.writes,
            cpu_pct: point.cpu_pct,
            cold: point.state == Some(PointState::Cold),
            time: point.time.as_deref().map(|text| measured_time(&of("time"), text)).transpose()?,
        })
    }
}

impl ServerTable {
    fn settings(&self) -> Result<Settings, ProfileError> {
        let missing = |what, from| ProfileError::Missing { what, from };
        let flavour = self.flavour.as_deref().ok_or(missing(
            "server.flavour",
            "SELECT VERSION(): mysql-5.7, mysql-8.0, mysql-8.4, mariadb-10.5 or mariadb-11",
        ))?;
        let flavour: Flavour =
            flavour.parse().map_err(|error| ProfileError::Conflict(format!("server.flavour: {error}")))?;
        let pool = self.buffer_pool_size.as_deref().ok_or(missing(
            "server.buffer_pool_size",
            "SHOW GLOBAL VARIABLES LIKE 'innodb_buffer_pool_size'",
        ))?;
        let mut settings = Settings::of(flavour, size("server.buffer_pool_size", pool)?);
        self.sizes(&mut settings)?;
        self.flushing(&mut settings)?;
        self.logs(&mut settings)?;
        self.background(&mut settings)?;
        Ok(settings)
    }

    fn sizes(&self, settings: &mut Settings) -> Result<(), ProfileError> {
        if settings.buffer_pool_bytes < 5 * MIB {
            let value = settings.buffer_pool_bytes.to_string();
            return Err(ProfileError::Range {
                key: "server.buffer_pool_size".into(),
                value,
                allowed: "5MiB or more",
            });
        }
        if let Some(text) = &self.page_size {
            let bytes = size("server.page_size", text)?;
            let pages = [4, 8, 16, 32, 64].map(|kib: u32| kib * 1024);
            settings.page_bytes =
                pages.into_iter().find(|page| u64::from(*page) == bytes).ok_or_else(|| {
                    ProfileError::Range {
                        key: "server.page_size".into(),
                        value: text.clone(),
                        allowed: "4KiB, 8KiB, 16KiB, 32KiB or 64KiB",
                    }
                })?;
        }
        if let Some(text) = &self.redo_log_capacity {
            settings.redo_capacity_bytes = size("server.redo_log_capacity", text)?;
        }
        if settings.redo_capacity_bytes < LEAST_REDO_BYTES {
            let value = settings.redo_capacity_bytes.to_string();
            return Err(ProfileError::Range {
                key: "server.redo_log_capacity".into(),
                value,
                allowed: "8MiB or more",
            });
        }
        let mut instances = settings.buffer_pool_instances;
        set(&mut instances, "server.buffer_pool_instances", self.buffer_pool_instances, 1..=64, "1 to 64")?;
        // MariaDB has one pool whatever the variable says.
        if !settings.flavour.is_mariadb() {
            settings.buffer_pool_instances = instances;
        }
        if self.buffer_pool_instances.is_some()
            && matches!(settings.flavour, Flavour::MySql80 | Flavour::MySql84)
        {
            settings.doublewrite_batches = settings.doublewrite_batches.max(2 * instances);
        }
        set(
            &mut settings.doublewrite_pages,
            "server.doublewrite_pages",
            self.doublewrite_pages,
            1..=512,
            "1 to 512",
        )?;
        match self.doublewrite {
            None => {}
            Some(DoublewriteTable::Switch(on)) => settings.doublewrite = on,
            Some(DoublewriteTable::Mode(DoublewriteMode::Fast)) if settings.flavour == Flavour::MariaDb11 => {
                (settings.doublewrite, settings.doublewrite_fast) = (true, true);
            }
            Some(DoublewriteTable::Mode(DoublewriteMode::Fast)) => {
                return Err(ProfileError::Conflict(format!(
                    "server.doublewrite = fast: {} has no such mode: give true, false, or the flavour mariadb-11",
                    settings.flavour
                )));
            }
        }
        Ok(())
    }

    fn flushing(&self, settings: &mut Settings) -> Result<(), ProfileError> {
        let capacity = 100..=10_000_000;
        let io_capacity = self.io_capacity;
        set(
            &mut settings.io_capacity,
            "server.io_capacity",
            io_capacity,
            capacity.clone(),
            "100 to 10000000",
        )?;
        settings.io_capacity_max = settings.io_capacity_max.max(2 * settings.io_capacity);
        set(
            &mut settings.io_capacity_max,
            "server.io_capacity_max",
            self.io_capacity_max,
            capacity,
            "100 to 10000000",
        )?;
        if settings.io_capacity_max < settings.io_capacity {
            let (most, capacity) = (settings.io_capacity_max, settings.io_capacity);
            return Err(ProfileError::Conflict(format!(
                "server.io_capacity_max = {most} is less than server.io_capacity = {capacity}: give at least {capacity}"
            )));
        }
        let percents = [
            ("server.max_dirty_pages_pct", self.max_dirty_pages_pct, &mut settings.max_dirty_pages_pct),
            (
                "server.max_dirty_pages_pct_lwm",
                self.max_dirty_pages_pct_lwm,
                &mut settings.max_dirty_pages_pct_lwm,
            ),
            ("server.adaptive_flushing_lwm", self.adaptive_flushing_lwm, &mut settings.adaptive_flushing_lwm),
        ];
        for (key, given, setting) in percents {
            let Some(value) = given else { continue };
            if !(0.0..=99.999).contains(&value) {
                return Err(ProfileError::Range {
                    key: key.into(),
                    value: value.to_string(),
                    allowed: "0 to 99.999 percent",
                });
            }
            *setting = value;
        }
        set(
            &mut settings.lru_scan_depth,
            "server.lru_scan_depth",
            self.lru_scan_depth,
            100..=10_000_000,
            "100 to 10000000",
        )?;
        set(
            &mut settings.flushing_avg_loops,
            "server.flushing_avg_loops",
            self.flushing_avg_loops,
            1..=1_000,
            "1 to 1000",
        )?;
        set(
            &mut settings.flush_neighbors,
            "server.flush_neighbors",
            self.flush_neighbors,
            0..=2,
            "0, 1 or 2",
        )?;
        settings.adaptive_flushing = self.adaptive_flushing.unwrap_or(settings.adaptive_flushing);
        settings.flush_sync = self.flush_sync.unwrap_or(settings.flush_sync);
        Ok(())
    }

    fn background(&self, settings: &mut Settings) -> Result<(), ProfileError> {
        let idle = self.idle_flush_pct;
        set(&mut settings.idle_flush_pct, "server.idle_flush_pct", idle, 0..=100, "0 to 100 percent")?;
        set(&mut settings.purge_threads, "server.purge_threads", self.purge_threads, 1..=32, "1 to 32")?;
        set(
            &mut settings.purge_batch,
            "server.purge_batch_size",
            self.purge_batch_size,
            1..=5_000,
            "1 to 5000",
        )?;
        if let Some(pct) = self.old_blocks_pct {
            if !(5.0..=95.0).contains(&pct) {
                let (key, value) = ("server.old_blocks_pct".into(), pct.to_string());
                return Err(ProfileError::Range { key, value, allowed: "5 to 95 percent" });
            }
            settings.old_blocks_pct = pct;
        }
        let Some(kept) = &self.change_buffering else { return Ok(()) };
        settings.change_buffering = match kept.to_ascii_lowercase().as_str() {
            // What purge removes is buffered or not: its pages are there.
            "none" | "purges" => 0.0,
            // A changed key is one entry that is marked as deleted, and one that is inserted.
            "inserts" | "deletes" => 0.5,
            "changes" | "all" => 1.0,
            _ => {
                return Err(ProfileError::Range {
                    key: "server.change_buffering".into(),
                    value: kept.clone(),
                    allowed: "none, inserts, deletes, changes, purges or all",
                });
            }
        };
        if settings.flavour == Flavour::MariaDb11 && settings.change_buffering > 0.0 {
            return Err(ProfileError::Conflict(format!(
                "server.change_buffering = {kept}: MariaDB has no change buffer from 11.0 on"
            )));
        }
        Ok(())
    }

    fn logs(&self, settings: &mut Settings) -> Result<(), ProfileError> {
        set(
            &mut settings.flush_log_at_commit,
            "server.flush_log_at_trx_commit",
            self.flush_log_at_trx_commit,
            0..=2,
            "0, 1 or 2",
        )?;
        set(
            &mut settings.sync_binlog,
            "server.sync_binlog",
            self.sync_binlog,
            0..=u32::MAX,
            "0 to 4294967295",
        )?;
        let delay = self.binlog_group_commit_sync_delay;
        set(
            &mut settings.group_commit_delay_us,
            "server.binlog_group_commit_sync_delay",
            delay,
            0..=1_000_000,
            "0 to 1000000 us",
        )?;
        settings.log_bin = self.log_bin.unwrap_or(settings.log_bin);
        settings.file_system = self.file_system.unwrap_or(settings.file_system);
        if let Some(method) = &self.flush_method {
            (settings.flush_after_batch, settings.buffered) = match method.to_ascii_uppercase().as_str() {
                // MariaDB from 11.0 on takes it as O_DIRECT.
                "O_DIRECT_NO_FSYNC" if settings.flavour == Flavour::MariaDb11 => (true, false),
                "O_DIRECT_NO_FSYNC" => (false, false),
                "NOSYNC" | "LITTLESYNC" => (false, true),
                "O_DIRECT" | "ALL_O_DIRECT" => (true, false),
                "FSYNC" | "O_DSYNC" => (true, true),
                _ => {
                    return Err(ProfileError::Range {
                        key: "server.flush_method".into(),
                        value: method.clone(),
                        allowed: "fsync, O_DSYNC, O_DIRECT, O_DIRECT_NO_FSYNC, littlesync or nosync",
                    });
                }
            };
        }
        Ok(())
    }
}

/// How long a point was measured.
fn measured_time(key: &str, text: &str) -> Result<Nanos, ProfileError> {
    let allowed = "10s to 24h";
    let wrong = || ProfileError::Range { key: key.into(), value: text.into(), allowed };
    let time = parse_duration(text).map_err(|error| ProfileError::Conflict(format!("{key}: {error}")))?;
    let time = Nanos::from(time);
    if (SHORTEST_POINT..=LONGEST_POINT).contains(&time) { Ok(time) } else { Err(wrong()) }
}

pub(super) fn size(key: &str, text: &str) -> Result<u64, ProfileError> {
    parse_size(text).map_err(|error| ProfileError::Conflict(format!("{key}: {error}")))
}

pub(super) fn positive(key: &str, value: f64) -> Result<(), ProfileError> {
    if value.is_finite() && value > 0.0 {
        return Ok(());
    }
    Err(ProfileError::Range { key: key.into(), value: value.to_string(), allowed: "more than 0" })
}

pub(super) fn not_negative(key: &str, value: f64) -> Result<(), ProfileError> {
    if value.is_finite() && value >= 0.0 {
        return Ok(());
    }
    Err(ProfileError::Range { key: key.into(), value: value.to_string(), allowed: "0 or more" })
}

pub(super) fn range<T: PartialOrd + ToString>(
    key: &str,
    value: T,
    allowed: std::ops::RangeInclusive<T>,
    words: &'static str,
) -> Result<(), ProfileError> {
    if allowed.contains(&value) {
        return Ok(());
    }
    Err(ProfileError::Range { key: key.into(), value: value.to_string(), allowed: words })
}

fn set<T: PartialOrd + ToString + Copy>(
    setting: &mut T,
    key: &str,
    given: Option<T>,
    allowed: std::ops::RangeInclusive<T>,
    words: &'static str,
) -> Result<(), ProfileError> {
    let Some(value) = given else { return Ok(()) };
    range(key, value, allowed, words)?;
    *setting = value;
    Ok(())
}
