//! From the keys of a profile to what the model takes, refusing what is missing or cannot be.

use ebbtide_volume::{GIB, MIB, parse_size};
use ebbtide_workload::sysbench::{Schema, Sysbench, Workload};
use ebbtide_workload::{LoadKind, OptionError};

use super::ProfileError;
use super::file::{DoublewriteMode, DoublewriteTable, PointTable, Profile, ServerTable, WorkloadTable};
use super::machine::MachineFacts;
use crate::innodb::observed::{self, Observed, ObservedType};
use crate::innodb::{
    Costs, CurvePoint, Flavour, LEAST_REDO_BYTES, Machine, MissCurve, ModelLoad, PageKind, Settings, Shape,
    sysbench, tpcc,
};

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

/// A measured point, checked; its volume is still a text.
#[derive(Debug, Clone)]
pub struct PlannedPoint {
    /// The volume.
    pub volume: String,
    /// The settings that the server had.
    pub settings: Settings,
    /// The workload on the data that there were.
    pub shape: Shape,
    /// The load.
    pub load: ModelLoad,
    /// Transactions a second.
    pub tps: f64,
    /// Pages read by a transaction.
    pub reads: Option<f64>,
    /// Pages written by a transaction.
    pub writes: Option<f64>,
    /// Processors busy, percent.
    pub cpu_pct: Option<f64>,
}

/// The page size that descriptions of workloads are for, bytes.
const DESCRIBED_PAGE: u32 = 16 * 1024;
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
        let shape = self.workload.shape(1.0, settings.page_bytes, seed)?;
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
        let shape = self.workload.shape(factor, settings.page_bytes, seed)?;
        Ok(PlannedPoint {
            volume,
            settings,
            shape,
            load,
            tps,
            reads: point.reads,
            writes: point.writes,
            cpu_pct: point.cpu_pct,
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

impl WorkloadTable {
    fn costs(&self) -> Result<Costs, ProfileError> {
        for (key, value) in [("workload.cpu_us", self.cpu_us), ("workload.statements", self.statements)] {
            value.map_or(Ok(()), |value| positive(key, value))?;
        }
        let round_trip_us = self.round_trip_us.unwrap_or(0.0);
        // Twice the longest that the load emulates.
        if !(0.0..=2e7).contains(&round_trip_us) {
            let value = round_trip_us.to_string();
            return Err(ProfileError::Range {
                key: "workload.round_trip_us".into(),
                value,
                allowed: "0 to 20000000 us",
            });
        }
        let think_ms = self.think_ms.unwrap_or(0.0);
        if !(0.0..=3.6e6).contains(&think_ms) {
            let value = think_ms.to_string();
            return Err(ProfileError::Range {
                key: "workload.think_ms".into(),
                value,
                allowed: "0 to 3600000 ms",
            });
        }
        let cpu_us = self.cpu_us.unwrap_or(1_000.0);
        Ok(Costs { cpu_us, round_trip_us, think_us: think_ms * 1e3, ..Costs::default() })
    }

    /// The workload with so many times its data.
    fn shape(&self, factor: f64, page_bytes: u32, seed: u64) -> Result<Shape, ProfileError> {
        let kind = self.kind.as_deref().ok_or(ProfileError::Missing {
            what: "workload.kind",
            from: "tpcc, observed, or a script of sysbench such as oltp_read_write",
        })?;
        let mut shape = match kind {
            "observed" => self.observed(factor, page_bytes)?,
            _ if page_bytes != DESCRIBED_PAGE => {
                return Err(ProfileError::Conflict(format!(
                    "server.page_size: {kind} is described for pages of 16KiB only: measure its pages, and give \
                     workload.kind = \"observed\""
                )));
            }
            name => match name.parse().map_err(|error: OptionError| {
                ProfileError::Conflict(format!("workload.kind: {error}, or observed"))
            })? {
                LoadKind::Tpcc => self.tpcc(factor)?,
                LoadKind::Sysbench(workload) => self.sysbench(workload, factor, seed)?,
            },
        };
        for (key, value) in
            [("workload.redo_bytes", self.redo_bytes), ("workload.binlog_bytes", self.binlog_bytes)]
        {
            value.map_or(Ok(()), |value| not_negative(key, value))?;
        }
        shape.scale_logs(self.redo_bytes, self.binlog_bytes);
        Ok(shape)
    }

    fn tpcc(&self, factor: f64) -> Result<Shape, ProfileError> {
        let warehouses = self.warehouses.ok_or(ProfileError::Missing {
            what: "workload.warehouses",
            from: "SELECT COUNT(*) FROM warehouse",
        })?;
        range("workload.warehouses", warehouses, 1..=1_000_000, "1 to 1000000")?;
        let kit = match self.kit.as_deref() {
            None | Some("tpcc-mysql") => tpcc::Kit::TpccMysql,
            Some("sysbench-tpcc") => tpcc::Kit::SysbenchTpcc,
            Some(other) => {
                let (key, value) = ("workload.kit".into(), other.into());
                return Err(ProfileError::Range { key, value, allowed: "tpcc-mysql or sysbench-tpcc" });
            }
        };
        let keys = match self.keys.as_deref() {
            None => kit.keys(),
            Some("nurand") => tpcc::Keys::Nurand,
            Some("uniform") => tpcc::Keys::Uniform,
            Some(other) => {
                let (key, value) = ("workload.keys".into(), other.into());
                return Err(ProfileError::Range { key, value, allowed: "nurand or uniform" });
            }
        };
        let mut shape = tpcc::shape(scaled(warehouses, factor), kit, keys);
        if self.batched == Some(true) {
            if kit == tpcc::Kit::SysbenchTpcc {
                let (key, value) = ("workload.batched".into(), "true".into());
                return Err(ProfileError::Range { key, value, allowed: "false with this kit" });
            }
            tpcc::batch(&mut shape);
        }
        Ok(shape)
    }

    fn sysbench(&self, workload: Workload, factor: f64, seed: u64) -> Result<Shape, ProfileError> {
        let table_size = self.table_size.ok_or(ProfileError::Missing {
            what: "workload.table_size",
            from: "--table-size of sysbench, or SELECT COUNT(*) FROM sbtest1",
        })?;
        let tables = self.tables.unwrap_or(1);
        range("workload.tables", tables, 1..=100_000, "1 to 100000")?;
        range("workload.table_size", table_size, 1..=2_147_483_647, "1 to 2147483647")?;
        let distribution = self.distribution()?;
        let schema = Schema { tables, table_size: scaled(table_size, factor), ..Schema::default() };
        let mix = self.mix(table_size)?;
        let sysbench = Sysbench { workload, schema, mix, distribution, clients: 1, marks: false };
        Ok(sysbench::shape(&sysbench, seed))
    }

    fn observed(&self, factor: f64, page_bytes: u32) -> Result<Shape, ProfileError> {
        if self.pages.is_empty() {
            return Err(ProfileError::Missing {
                what: "[[workload.pages]]",
                from: "Innodb_buffer_pool_reads and Innodb_pages_written, each by Com_commit, with the pool that the \
                       server had",
            });
        }
        let redo_bytes = self.redo_bytes.ok_or(ProfileError::Missing {
            what: "workload.redo_bytes",
            from: "Innodb_os_log_written by Com_commit",
        })?;
        let of_data = match &self.pages_of_data {
            None => 1.0,
            Some(text) => self.data_bytes()? / size("workload.pages_of_data", text)? as f64,
        };
        let mut points = Vec::new();
        for table in &self.pages {
            let pool = size("workload.pages.pool", &table.pool)? as f64;
            for (key, value) in
                [("workload.pages.reads", table.reads), ("workload.pages.writes", table.writes)]
            {
                if !(0.0..=1e6).contains(&value) {
                    return Err(ProfileError::Range {
                        key: key.into(),
                        value: value.to_string(),
                        allowed: "0 to 1000000 pages",
                    });
                }
            }
            let pool_pages = pool / f64::from(page_bytes) * 0.96 * of_data * factor;
            points.push(CurvePoint { pool_pages, reads: table.reads, writes: table.writes });
        }
        points.sort_by(|a, b| a.pool_pages.total_cmp(&b.pool_pages));
        if let Some(pair) = points.windows(2).find(|pair| pair[1].pool_pages <= pair[0].pool_pages) {
            let gib = pair[0].pool_pages / 0.96 * f64::from(page_bytes) / GIB as f64;
            return Err(ProfileError::Conflict(format!(
                "workload.pages: two entries have the same pool ({gib:.1} GiB after scaling): keep one"
            )));
        }
        if let Some(pair) = points.windows(2).find(|pair| pair[1].reads > pair[0].reads * 1.1) {
            return Err(ProfileError::Conflict(format!(
                "workload.pages: a larger pool reads more pages ({} after {}): the two were not measured of one workload",
                pair[1].reads, pair[0].reads
            )));
        }
        let data_pages = self
            .data_bytes()
            .ok()
            .map(|bytes| bytes * factor / f64::from(page_bytes))
            .filter(|pages| *pages >= 1.0);
        let shares: f64 = self.types.iter().map(|of| of.share).sum();
        for of in &self.types {
            positive("workload.types.share", of.share)?;
            positive("workload.types.size", of.size)?;
        }
        let types = self.types.iter().map(|of| ObservedType {
            name: of.name.clone(),
            share: of.share / shares,
            size: of.size,
        });
        Ok(observed::shape(&Observed {
            curve: MissCurve { points, data_pages },
            redo_bytes,
            binlog_bytes: self.binlog_bytes.unwrap_or(0.0),
            statements: self.statements.unwrap_or(1.0),
            types: types.collect(),
        }))
    }

    /// Size of the data, bytes.
    fn data_bytes(&self) -> Result<f64, ProfileError> {
        match (&self.data_size, self.warehouses) {
            (Some(text), _) => Ok(size("workload.data_size", text)? as f64),
            // 100 MiB of a warehouse, measured of sysbench-tpcc's 1000.
            (None, Some(warehouses)) => Ok(f64::from(warehouses) / 10.0 * GIB as f64),
            (None, None) => Err(ProfileError::Missing {
                what: "workload.data_size",
                from: "the sum of data_length and index_length in information_schema.tables, or `du` of the data directory",
            }),
        }
    }
}

/// A count with so many times the data; at least one.
fn scaled(count: u32, factor: f64) -> u32 {
    let scaled = crate::innodb::whole((f64::from(count) * factor).round());
    u32::try_from(scaled).unwrap_or(u32::MAX).max(1)
}

fn size(key: &str, text: &str) -> Result<u64, ProfileError> {
    parse_size(text).map_err(|error| ProfileError::Conflict(format!("{key}: {error}")))
}

fn positive(key: &str, value: f64) -> Result<(), ProfileError> {
    if value.is_finite() && value > 0.0 {
        return Ok(());
    }
    Err(ProfileError::Range { key: key.into(), value: value.to_string(), allowed: "more than 0" })
}

fn not_negative(key: &str, value: f64) -> Result<(), ProfileError> {
    if value.is_finite() && value >= 0.0 {
        return Ok(());
    }
    Err(ProfileError::Range { key: key.into(), value: value.to_string(), allowed: "0 or more" })
}

fn range<T: PartialOrd + ToString>(
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

#[cfg(test)]
mod tests {
    use ebbtide_workload::WORKLOADS;

    use super::*;

    #[test]
    fn each_workload_of_the_list_can_be_the_kind_of_a_profile() {
        let table = |kind: &str| WorkloadTable {
            kind: Some(kind.to_owned()),
            warehouses: Some(1),
            table_size: Some(10_000),
            ..WorkloadTable::default()
        };
        for one in WORKLOADS {
            let shape = table(one.name).shape(1.0, DESCRIBED_PAGE, 1);
            assert!(shape.is_ok(), "{}: {}", one.name, shape.unwrap_err());
        }
        let error = table("none").shape(1.0, DESCRIBED_PAGE, 1).unwrap_err().to_string();
        assert!(error.starts_with("workload.kind: there is no workload 'none': use one of "), "{error}");
        assert!(error.ends_with(", key_value, tpcc, or observed"), "{error}");
    }

    #[test]
    fn a_profile_of_tpcc_says_how_its_statements_are_divided() {
        let of = |batched: Option<bool>, kit: &str| {
            let table = WorkloadTable {
                kind: Some("tpcc".into()),
                warehouses: Some(10),
                kit: Some(kit.into()),
                batched,
                ..WorkloadTable::default()
            };
            table.shape(1.0, DESCRIBED_PAGE, 1).map(|shape| shape.statements())
        };
        for single in [None, Some(false)] {
            assert!((of(single, "tpcc-mysql").unwrap() - 35.7).abs() < 0.2);
        }
        assert!((of(Some(true), "tpcc-mysql").unwrap() - 13.8).abs() < 0.2);
        assert!(of(Some(false), "sysbench-tpcc").is_ok());
        let error = of(Some(true), "sysbench-tpcc").unwrap_err().to_string();
        assert!(error.contains("workload.batched"), "{error}");
    }
}
