//! Service times of a real volume, read off a fio result.

use std::{collections::BTreeMap, fmt::Write as _};

use ebbtide_volume::{MIB, format_size, parse_size};
use serde::Deserialize;

use crate::{
    Catalog, DataError,
    data::OverridesFile,
    service::{self, Points},
};

/// Fewest I/Os of one kind that a curve is read off.
const MIN_SAMPLES: u64 = 100;
/// Below this many the 99.9 % point is a handful of I/Os.
const ENOUGH_SAMPLES: u64 = 10_000;
/// A run within this share of a limit counts as throttled.
const AT_LIMIT: f64 = 0.97;
/// Latencies this near to depth / IOPS are a queue's; this share of them makes a throttled run.
const QUEUE_BAND: f64 = 0.15;
const QUEUE_SHARE: f64 = 0.5;

/// Percentages at which a curve has points, where fio gives its whole histogram (json+).
const PERCENTAGES: [f64; 16] =
    [1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.99];

/// What a calibration is called and of what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FitOptions {
    /// The catalogue type that the measured volume is (`gp3`).
    pub kind: String,
    /// The name of the new type that gets the measured times; none: they replace the type's own.
    pub name: Option<String>,
    /// Where and how it was measured, for the entry's `source`.
    pub source: String,
    /// Day of the measurement, like 2026-11-20.
    pub date: String,
    /// The volume's IOPS limit, where known: a run that reached it is refused.
    pub iops_limit: Option<u64>,
    /// The volume's throughput limit in MiB/s, where known.
    pub throughput_limit_mib_s: Option<u64>,
}

/// Service times that a run showed: (percent of I/Os, microseconds) points, without the time to
/// transfer the bytes, which the type's own rate adds.
#[derive(Debug, Clone, PartialEq)]
pub struct Fitted {
    /// Of reads, where the run had enough.
    pub read: Option<Vec<(f64, f64)>>,
    /// Of writes, where the run had enough.
    pub write: Option<Vec<(f64, f64)>>,
    /// Of flushes, where the run had enough.
    pub flush: Option<Vec<(f64, f64)>>,
    /// What to be careful about.
    pub warnings: Vec<String>,
    /// The entry for the overrides file.
    pub toml: String,
}

/// A fio result that gives no service times.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CalibrateError {
    /// No fio JSON.
    #[error("this is not a fio result in JSON (run fio with --output-format=json): {0}")]
    NotFio(String),
    /// More than one job, whose percentiles cannot be combined.
    #[error("the fio result has {0} jobs; run one job, or add --group_reporting")]
    Jobs(usize),
    /// Too few reads and writes.
    #[error("the fio result has {0} reads and {1} writes; a curve needs at least {MIN_SAMPLES} of either")]
    TooFew(u64, u64),
    /// The latencies are a queue's.
    #[error(
        "the run was throttled or saturated ({evidence}), so its latencies show a queue and not the service \
         time; measure again below the limit, such as with iodepth=1"
    )]
    Throttled {
        /// The figures that show it.
        evidence: String,
    },
    /// A type that the catalogue does not have.
    #[error("there is no volume type '{0}' to give service times to")]
    UnknownType(String),
    /// A name, source or date that makes no override.
    #[error("the measured times make no override: {0}")]
    Entry(DataError),
}

#[derive(Deserialize)]
struct Fio {
    #[serde(default, rename = "global options")]
    global: BTreeMap<String, String>,
    jobs: Vec<Job>,
}

#[derive(Deserialize)]
struct Job {
    #[serde(default, rename = "job options")]
    options: BTreeMap<String, String>,
    read: Direction,
    write: Direction,
    sync: Option<Sync>,
}

#[derive(Deserialize)]
struct Direction {
    total_ios: u64,
    iops: f64,
    bw_bytes: f64,
    clat_ns: Option<Latency>,
    lat_ns: Option<Latency>,
}

#[derive(Deserialize)]
struct Sync {
    lat_ns: Option<Latency>,
}

impl Sync {
    /// The latencies, where there are enough. (fio 3.33 leaves `total_ios` of syncs at zero.)
    fn enough(&self) -> Option<&Latency> {
        self.lat_ns.as_ref().filter(|latency| latency.samples >= MIN_SAMPLES)
    }
}

#[derive(Deserialize)]
struct Latency {
    #[serde(rename = "N", default)]
    samples: u64,
    min: f64,
    max: f64,
    #[serde(default)]
    percentile: BTreeMap<String, f64>,
    #[serde(default)]
    bins: BTreeMap<String, u64>,
}

/// Reads service times off a fio result (`--output-format=json` or `json+`) of one job, for a type
/// of the built-in catalogue.
///
/// # Errors
/// No fio result, too little in it, or one whose latencies are a throttle's.
pub fn fit(fio_json: &str, options: &FitOptions) -> Result<Fitted, CalibrateError> {
    fit_type(&Catalog::builtin(), fio_json, options)
}

/// As [`fit`], for a type of any catalogue.
///
/// # Errors
/// See [`fit`].
pub fn fit_type(catalog: &Catalog, fio_json: &str, options: &FitOptions) -> Result<Fitted, CalibrateError> {
    let fio: Fio =
        serde_json::from_str(fio_json).map_err(|error| CalibrateError::NotFio(error.to_string()))?;
    let [job] = &fio.jobs[..] else { return Err(CalibrateError::Jobs(fio.jobs.len())) };
    let entry = catalog.entry(&options.kind).ok_or(CalibrateError::UnknownType(options.kind.clone()))?;
    let period = entry.period.last().expect("a type has a period, as was checked");
    let transfer_mib_s = catalog.service(entry, period).transfer_mib_s;
    let run = FioRun { global: &fio.global, job };
    if run.samples().iter().all(|&samples| samples < MIN_SAMPLES) {
        return Err(CalibrateError::TooFew(job.read.total_ios, job.write.total_ios));
    }
    run.check_limits(options)?;
    run.check_queue()?;
    let transfer_us = run.transfer_us(transfer_mib_s);
    let data = |direction: &Direction| {
        let latency = direction.clat_ns.as_ref().or(direction.lat_ns.as_ref());
        latency.filter(|_| direction.total_ios >= MIN_SAMPLES).and_then(|l| points(l, transfer_us))
    };
    let flush = job.sync.as_ref().and_then(Sync::enough);
    let mut fitted = Fitted {
        read: data(&job.read),
        write: data(&job.write),
        flush: flush.and_then(|latency| points(latency, 0.0)),
        warnings: run.warnings(),
        toml: String::new(),
    };
    if fitted.read.is_none() && fitted.write.is_none() {
        return Err(CalibrateError::NotFio("it has no latency percentiles".into()));
    }
    fitted.toml = run.entry(&fitted, options);
    check_entry(&fitted).map_err(CalibrateError::Entry)?;
    Ok(fitted)
}

/// What `with_overrides` would find wrong with the entry.
fn check_entry(fitted: &Fitted) -> Result<(), DataError> {
    toml::from_str::<OverridesFile>(&fitted.toml)?;
    let mut curves = [&fitted.read, &fitted.write, &fitted.flush].into_iter().flatten();
    Ok(curves.try_for_each(|points| service::curve(points).map(drop))?)
}

/// One job and the options that it ran with.
struct FioRun<'a> {
    global: &'a BTreeMap<String, String>,
    job: &'a Job,
}

impl FioRun<'_> {
    fn option(&self, key: &str) -> Option<&str> {
        self.job.options.get(key).or_else(|| self.global.get(key)).map(String::as_str)
    }

    fn samples(&self) -> [u64; 2] {
        [self.job.read.total_ios, self.job.write.total_ios]
    }

    /// I/Os that the job kept in flight: a synchronous engine keeps one for each of its threads.
    fn depth(&self) -> f64 {
        let number = |key| self.option(key).and_then(|text| text.parse::<f64>().ok()).unwrap_or(1.0);
        let engine = self.option("ioengine").unwrap_or("psync");
        let synchronous = ["sync", "psync", "vsync", "pvsync", "pvsync2", "mmap"].contains(&engine);
        number("numjobs") * if synchronous { 1.0 } else { number("iodepth") }
    }

    fn iops(&self) -> f64 {
        self.job.read.iops + self.job.write.iops
    }

    fn check_limits(&self, options: &FitOptions) -> Result<(), CalibrateError> {
        let mib_s = (self.job.read.bw_bytes + self.job.write.bw_bytes) / MIB as f64;
        let reached =
            [(self.iops(), options.iops_limit, "IOPS"), (mib_s, options.throughput_limit_mib_s, "MiB/s")];
        for (measured, limit, unit) in reached {
            if let Some(limit) = limit.filter(|&limit| measured >= limit as f64 * AT_LIMIT) {
                let evidence = format!("{measured:.0} of {limit} {unit}");
                return Err(CalibrateError::Throttled { evidence });
            }
        }
        Ok(())
    }

    /// Refuses a run in which latency is the queue's by Little's law: most of it close to depth
    /// divided by IOPS. At depth 1 that shows nothing, since it holds for any run.
    fn check_queue(&self) -> Result<(), CalibrateError> {
        let depth = self.depth();
        let queue_us = depth / self.iops() * 1e6;
        for (name, direction) in [("read", &self.job.read), ("write", &self.job.write)] {
            let latency = direction.clat_ns.as_ref().or(direction.lat_ns.as_ref());
            let Some(curve) = latency.and_then(|latency| points(latency, 0.0)) else { continue };
            let band = (queue_us * (1.0 - QUEUE_BAND), queue_us * (1.0 + QUEUE_BAND));
            let share = share_below(&curve, band.1) - share_below(&curve, band.0);
            if depth > 1.0 && direction.total_ios >= MIN_SAMPLES && share >= QUEUE_SHARE {
                let evidence = format!(
                    "{:.0} % of the {name} latencies are within {:.0} % of depth {depth:.0} / {:.0} IOPS = \
                     {queue_us:.0} us",
                    share * 100.0,
                    QUEUE_BAND * 100.0,
                    self.iops()
                );
                return Err(CalibrateError::Throttled { evidence });
            }
        }
        Ok(())
    }

    fn block_size(&self) -> Option<u64> {
        self.option("bs").or(self.option("blocksize")).map_or(Some(4096), |text| parse_size(text).ok())
    }

    fn transfer_us(&self, mib_s: Option<u64>) -> f64 {
        match (self.block_size(), mib_s) {
            (Some(bytes), Some(mib_s)) => bytes as f64 / (mib_s as f64 * MIB as f64) * 1e6,
            _ => 0.0,
        }
    }

    fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.option("direct").is_none_or(|direct| direct != "1") {
            warnings.push("the run did not use direct=1: the page cache may have answered".to_owned());
        }
        for (name, samples) in ["reads", "writes"].into_iter().zip(self.samples()) {
            if (1..MIN_SAMPLES).contains(&samples) {
                warnings.push(format!("only {samples} {name}: they were left out"));
            } else if (MIN_SAMPLES..ENOUGH_SAMPLES).contains(&samples) {
                warnings.push(format!("only {samples} {name}: the points above 99 % are a few I/Os"));
            }
        }
        if self.depth() > 1.0 {
            warnings.push(format!(
                "depth {:.0}: latencies may include queueing; iodepth=1 is safer",
                self.depth()
            ));
        }
        let on_device = self.option("filename").is_some_and(|name| name.starts_with("/dev/"));
        if self.job.sync.as_ref().and_then(Sync::enough).is_some() && !on_device {
            warnings
                .push("flushes went through a file system: their times include its own writes".to_owned());
        }
        if self.block_size().is_none() {
            warnings.push("the block size is mixed: transfer time was not taken out".to_owned());
        }
        warnings
    }

    /// The override that gives the type these service times.
    fn entry(&self, fitted: &Fitted, options: &FitOptions) -> String {
        let quoted = |text: &str| toml::Value::from(text).to_string();
        let bs = self.block_size().map_or_else(|| "mixed".into(), format_size);
        let [reads, writes] = self.samples();
        let reason = format!(
            "calibrated with fio: {} of {bs} at depth {:.0}, {reads} reads, {writes} writes",
            self.option("rw").unwrap_or("I/O"),
            self.depth()
        );
        let name = options.name.as_deref().unwrap_or(&options.kind);
        let mut text = format!("[[override]]\ntype = {}\n", quoted(name));
        if name != options.kind {
            let _ = writeln!(text, "like = {}", quoted(&options.kind));
        }
        let _ = writeln!(
            text,
            "reason = {}\nsource = {}\ndate = {}\n\n[override.service]",
            quoted(&reason),
            quoted(&options.source),
            quoted(&options.date)
        );
        for (key, curve) in [("read", &fitted.read), ("write", &fitted.write), ("flush", &fitted.flush)] {
            if let Some(curve) = curve {
                let points: Vec<_> = curve.iter().map(|(percent, us)| format!("[{percent}, {us}]")).collect();
                let _ = writeln!(text, "{key} = [{}]", points.join(", "));
            }
        }
        text
    }
}

/// A curve's points in microseconds, less `transfer_us`; none without percentiles.
fn points(latency: &Latency, transfer_us: f64) -> Option<Points> {
    let inner = if latency.bins.is_empty() { given(latency)? } else { from_bins(&latency.bins)? };
    let mut points = vec![(0.0, latency.min)];
    points.extend(inner.into_iter().filter(|(percent, _)| *percent > 0.0 && *percent < 100.0));
    points.push((100.0, latency.max));
    let mut least = 0.0_f64;
    for (_, value) in &mut points {
        // fio rounds percentiles to its histogram's bins, up to 1 % beyond the exact extremes.
        let us = value.clamp(latency.min, latency.max) / 1e3 - transfer_us;
        least = least.max(us);
        *value = (least * 1e3).round() / 1e3;
    }
    Some(points)
}

/// The percentiles that fio printed.
fn given(latency: &Latency) -> Option<Points> {
    let parsed = latency.percentile.iter().map(|(percent, &ns)| Some((percent.parse::<f64>().ok()?, ns)));
    let mut points = parsed.collect::<Option<Points>>().filter(|points| !points.is_empty())?;
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    Some(points)
}

/// Percentiles of a whole histogram.
fn from_bins(bins: &BTreeMap<String, u64>) -> Option<Points> {
    let parsed = bins.iter().map(|(ns, &count)| Some((ns.parse::<f64>().ok()?, count)));
    let mut bins: Vec<(f64, u64)> = parsed.collect::<Option<_>>()?;
    bins.sort_by(|a, b| a.0.total_cmp(&b.0));
    let total: u64 = bins.iter().map(|bin| bin.1).sum();
    let at = |percent: f64| {
        let wanted = percent / 100.0 * total as f64;
        let mut seen = 0;
        let bin = bins.iter().find(|(_, count)| {
            seen += count;
            seen as f64 >= wanted
        });
        bin.map(|&(ns, _)| (percent, ns))
    };
    PERCENTAGES.into_iter().map(at).collect()
}

/// Share of I/Os (0 to 1) that took less than `us`.
fn share_below(curve: &[(f64, f64)], us: f64) -> f64 {
    let Some(upper) = curve.iter().position(|&(_, value)| value >= us) else { return 1.0 };
    let Some(lower) = upper.checked_sub(1) else { return 0.0 };
    let ((low_percent, low), (high_percent, high)) = (curve[lower], curve[upper]);
    (low_percent + (high_percent - low_percent) * (us - low) / (high - low)) / 100.0
}
