//! Host calibration: what this machine can carry through an ideal volume, measured on the real
//! path to the kernel and to an NBD client.
//!
//! A volume that promises more than the host carries would show the host's limits as its own, so
//! attaching compares the two.

mod load;
mod measure;
mod nbd;
mod ring;

use std::io;
use std::path::Path;

use ebbtide_volume::{Array, InstanceLimits, Limits, MIB, RateLimit};
use serde::{Deserialize, Serialize};

use super::{Home, Host, HostError, Progress};
use crate::engine::PacingReport;

/// What a path carries. Random I/O is of 16 KiB (InnoDB's page), throughput of 256 KiB at depth 8.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct HostFigures {
    /// Random reads a second, one at a time.
    pub read_iops_depth_1: f64,
    /// Random reads a second, 32 at a time.
    pub read_iops_depth_32: f64,
    /// Random writes a second, one at a time.
    pub write_iops_depth_1: f64,
    /// Random writes a second, 32 at a time.
    pub write_iops_depth_32: f64,
    /// Median latency of a lone read in microseconds.
    pub read_latency_us: f64,
    /// Median latency of a lone write in microseconds.
    pub write_latency_us: f64,
    /// MiB/s of reads.
    pub read_mib_s: f64,
    /// MiB/s of writes.
    pub write_mib_s: f64,
}

/// What a host can carry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// When it was measured, in seconds since 1970.
    pub measured_unix_s: u64,
    /// The kernel's release.
    pub kernel: String,
    /// Processors that this process may use.
    pub cpus: usize,
    /// Whether it was the short form.
    pub quick: bool,
    /// Volumes that were attached meanwhile; their load made the figures worse.
    pub others_attached: usize,
    /// Through FUSE and a loop device; none where block devices cannot be made.
    pub block: Option<HostFigures>,
    /// Through NBD on a Unix socket.
    pub nbd: HostFigures,
    /// How late answers are while nothing else runs.
    pub pacing_idle: PacingReport,
    /// How late answers are while every processor is busy.
    pub pacing_loaded: PacingReport,
}

impl Calibration {
    /// The calibration of a home, where there is one that was measured on this kernel and number of
    /// processors.
    #[must_use]
    pub fn load(file: &Path) -> Option<Self> {
        let stored: Self = serde_json::from_slice(&std::fs::read(file).ok()?).ok()?;
        (stored.kernel == ebbtide_proc::machine::kernel() && stored.cpus == cpus()).then_some(stored)
    }

    fn save(&self, home: &Home) -> io::Result<()> {
        home.save_calibration(&serde_json::to_vec_pretty(self)?)
    }

    /// In which figures a volume exceeds what this host carries, with both; empty where it does
    /// not. What a volume leaves unlimited promises nothing, and an instance's limits bound it.
    #[must_use]
    pub fn exceeded_by(
        &self,
        array: &Array,
        instance: Option<&InstanceLimits>,
        through_nbd: bool,
    ) -> Vec<String> {
        let (path, figures) = match (through_nbd, &self.block) {
            (false, Some(block)) => ("a block device", block),
            _ => ("NBD", &self.nbd),
        };
        let mut exceeded = Vec::new();
        let iops = most(array, |limits| limits.iops, instance.map(|instance| instance.iops));
        let carried = figures.read_iops_depth_32.min(figures.write_iops_depth_32);
        if let Some(iops) = iops.filter(|&iops| iops as f64 > carried) {
            exceeded.push(format!("it may do {iops} IOPS, the host carries {carried:.0} through {path}"));
        }
        let bytes = most(array, |limits| limits.throughput, instance.map(|instance| instance.throughput));
        let carried = figures.read_mib_s.min(figures.write_mib_s);
        let wanted = bytes.map(|bytes| bytes as f64 / MIB as f64);
        if let Some(wanted) = wanted.filter(|&wanted| wanted > carried) {
            exceeded.push(format!(
                "it may do {wanted:.0} MiB/s, the host carries {carried:.0} MiB/s through {path}"
            ));
        }
        let median = |limits: &Limits| limits.service.median_read().0;
        let quickest = array.members().iter().map(|member| median(member.limits())).min();
        let us = quickest.map_or(0.0, |ns| ns as f64 / 1e3);
        if us > 0.0 && us < figures.read_latency_us {
            exceeded.push(format!(
                "it answers a read in {us:.0} us, the host takes {:.0} us through {path}",
                figures.read_latency_us
            ));
        }
        exceeded
    }
}

/// The most that all members together may do; none where one of them is unlimited.
fn most(
    array: &Array,
    limit: impl Fn(&Limits) -> Option<RateLimit>,
    instance: Option<RateLimit>,
) -> Option<u64> {
    let members = array.members().iter().map(|member| limit(member.limits()));
    let all: Option<u64> = members.map(|limit| limit.map(|limit| limit.ceiling)).sum();
    all.map(|all| instance.map_or(all, |instance| all.min(instance.ceiling)))
}

fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

impl Host {
    /// Measures what this host carries and keeps the result in the home.
    ///
    /// # Errors
    /// Where the measurement cannot be made, [`HostError::NoSpace`] above all; the former calibration
    /// stays, and nothing else does.
    pub fn calibrate(&self, quick: bool, progress: Progress<'_>) -> Result<Calibration, HostError> {
        self.calibrate_unless(&|| false, quick, progress)
    }

    /// As [`Self::calibrate`], but gives up soon after `ended` returns true: within the second or so that a part
    /// of the measurement takes.
    ///
    /// # Errors
    /// Also where it was given up, as an interruption.
    pub fn calibrate_unless(
        &self,
        ended: &(dyn Fn() -> bool + Sync),
        quick: bool,
        progress: Progress<'_>,
    ) -> Result<Calibration, HostError> {
        let _reserved = self.shared.reserve(measure::NAME, "calibrating")?;
        // Its store is closed before that is removed.
        let measured = measure::Bench::new(self.home(), quick, ended).and_then(|bench| {
            let measured = bench.run(progress);
            bench.close();
            measured
        });
        let removed = measure::remove_scratch(self.home());
        let (block, nbd, pacing_idle, pacing_loaded) = measured?;
        removed?;
        let calibration = Calibration {
            measured_unix_s: self.now().0 / 1_000_000_000,
            kernel: ebbtide_proc::machine::kernel(),
            cpus: cpus(),
            quick,
            others_attached: self.shared.attachments().len(),
            block,
            nbd,
            pacing_idle,
            pacing_loaded,
        };
        let file = self.home().calibration_file();
        calibration.save(self.home()).map_err(HostError::io(format!("write {}", file.display())))?;
        Ok(calibration)
    }
}

#[cfg(test)]
mod tests {
    use ebbtide_volume::{Nanos, QuantileCurve, ServiceTimes};

    use super::*;

    fn calibration() -> Calibration {
        let figures = HostFigures {
            read_iops_depth_1: 20_000.0,
            read_iops_depth_32: 100_000.0,
            write_iops_depth_1: 20_000.0,
            write_iops_depth_32: 90_000.0,
            read_latency_us: 50.0,
            write_latency_us: 50.0,
            read_mib_s: 3_000.0,
            write_mib_s: 2_000.0,
        };
        Calibration {
            measured_unix_s: 0,
            kernel: ebbtide_proc::machine::kernel(),
            cpus: cpus(),
            quick: true,
            others_attached: 0,
            block: Some(figures),
            nbd: HostFigures { read_iops_depth_32: 50_000.0, ..figures },
            pacing_idle: PacingReport::default(),
            pacing_loaded: PacingReport::default(),
        }
    }

    fn array(members: usize, iops: Option<u64>, mib_s: Option<u64>, read_us: u64) -> Array {
        let limits = Limits {
            iops: iops.map(RateLimit::flat),
            throughput: mib_s.map(|mib_s| RateLimit::flat(mib_s * MIB)),
            service: ServiceTimes {
                read: QuantileCurve::constant(Nanos::from_us(read_us)),
                ..ServiceTimes::instant()
            },
            ..Limits::unlimited(1 << 30)
        };
        Array::striped(vec![limits; members], 1 << 16, Nanos::ZERO).unwrap()
    }

    #[test]
    fn a_volume_that_the_host_cannot_carry_is_named_with_both_figures() {
        let host = calibration();
        let fits = array(2, Some(45_000), Some(1_000), 500);
        assert_eq!(host.exceeded_by(&fits, None, false), Vec::<String>::new());
        let over = host.exceeded_by(&array(2, Some(45_001), Some(1_001), 40), None, false);
        assert_eq!(over.len(), 3, "{over:?}");
        assert!(over[0].contains("90002 IOPS") && over[0].contains("90000"), "{over:?}");
        assert!(over[1].contains("2002 MiB/s") && over[1].contains("2000"), "{over:?}");
        assert!(over[2].contains("40 us") && over[2].contains("50 us"), "{over:?}");
        let through_nbd = host.exceeded_by(&fits, None, true);
        assert!(through_nbd[0].contains("50000 through NBD"), "{through_nbd:?}");
    }

    #[test]
    fn an_unlimited_volume_promises_nothing_and_an_instance_bounds_the_promise() {
        let host = calibration();
        assert_eq!(host.exceeded_by(&array(1, None, None, 0), None, false), Vec::<String>::new());
        let instance = InstanceLimits { iops: RateLimit::flat(18_750), throughput: RateLimit::flat(MIB) };
        let fast = array(1, Some(256_000), Some(4_000), 500);
        assert_eq!(host.exceeded_by(&fast, None, false).len(), 2);
        assert_eq!(host.exceeded_by(&fast, Some(&instance), false), Vec::<String>::new());
    }

    #[test]
    fn a_calibration_of_another_kernel_does_not_count() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::open(dir.path()).unwrap();
        let file = home.calibration_file();
        assert_eq!(Calibration::load(&file), None);
        calibration().save(&home).unwrap();
        assert_eq!(Calibration::load(&file), Some(calibration()));
        Calibration { kernel: "2.4.0".into(), ..calibration() }.save(&home).unwrap();
        assert_eq!(Calibration::load(&file), None);
    }
}
