//! The workload of a profile: what a transaction costs, and the pages that it touches.

use ebbtide_volume::GIB;
use ebbtide_workload::log_bytes::LogMaker;
use ebbtide_workload::sysbench::{Schema, Sysbench, Workload};
use ebbtide_workload::{LoadKind, OptionError};

use super::ProfileError;
use super::file::WorkloadTable;
use super::plan::{not_negative, positive, range, size};
use crate::innodb::observed::{self, Observed, ObservedType};
use crate::innodb::{Costs, CurvePoint, MissCurve, Shape, sysbench, tpcc};

/// The page size that descriptions of workloads are for, bytes.
const DESCRIBED_PAGE: u32 = 16 * 1024;

impl WorkloadTable {
    pub(super) fn costs(&self) -> Result<Costs, ProfileError> {
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

    /// The workload with so many times its data, on a maker's server.
    pub(super) fn shape(
        &self,
        factor: f64,
        page_bytes: u32,
        maker: LogMaker,
        seed: u64,
    ) -> Result<Shape, ProfileError> {
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
                LoadKind::Tpcc => self.tpcc(factor, maker)?,
                LoadKind::Sysbench(workload) => self.sysbench(workload, factor, maker, seed)?,
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

    fn tpcc(&self, factor: f64, maker: LogMaker) -> Result<Shape, ProfileError> {
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
        let mut shape = tpcc::shape(scaled(warehouses, factor), kit, keys, maker);
        if self.batched == Some(true) {
            if kit == tpcc::Kit::SysbenchTpcc {
                let (key, value) = ("workload.batched".into(), "true".into());
                return Err(ProfileError::Range { key, value, allowed: "false with this kit" });
            }
            tpcc::batch(&mut shape);
        }
        Ok(shape)
    }

    fn sysbench(
        &self,
        workload: Workload,
        factor: f64,
        maker: LogMaker,
        seed: u64,
    ) -> Result<Shape, ProfileError> {
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
        Ok(sysbench::shape(&sysbench, maker, seed))
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
    pub(super) fn data_bytes(&self) -> Result<f64, ProfileError> {
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
            let shape = table(one.name).shape(1.0, DESCRIBED_PAGE, LogMaker::MariaDb, 1);
            assert!(shape.is_ok(), "{}: {}", one.name, shape.unwrap_err());
        }
        let error = table("none").shape(1.0, DESCRIBED_PAGE, LogMaker::MariaDb, 1).unwrap_err().to_string();
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
            table.shape(1.0, DESCRIBED_PAGE, LogMaker::MariaDb, 1).map(|shape| shape.statements())
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
