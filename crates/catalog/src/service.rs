//! Service times from their data, and those of instance-store disks from published IOPS.

use ebbtide_volume::{MIB, QuantileCurve, ServiceTimes};

use crate::{
    data::{ServiceEntry, StoreRow},
    numbers::{whole, whole_u16, whole_u32},
};

/// Points of a curve: (percent of I/Os, microseconds).
pub(crate) type Points = Vec<(f64, f64)>;

/// Size of the I/Os that instance-store IOPS are published for.
const STORE_IO_BYTES: f64 = 4096.0;

/// Throughput of instance-store disks per byte of 4 KiB random reads. Assumed: the families publish
/// sequential rates of 1.2 (i3: 16 GB/s at 3.3 M IOPS) to 2 times (i3en: 16 GB/s at 2 M) that.
const STORE_THROUGHPUT_FACTOR: u64 = 3;
const STORE_THROUGHPUT_DIVISOR: u64 = 2;

/// A curve through the points.
pub(crate) fn curve(points: &[(f64, f64)]) -> Result<QuantileCurve, String> {
    if points.iter().any(|(percent, us)| !(percent.is_finite() && us.is_finite() && *us >= 0.0)) {
        return Err("a point is not a pair of a percentage and microseconds".into());
    }
    let points = points.iter().map(|&(percent, us)| (whole_u32(percent * 1e4), whole(us * 1e3)));
    QuantileCurve::new(points.collect()).map_err(|error| error.to_string())
}

/// The mean of a curve in microseconds: the area under its straight lines.
pub(crate) fn mean_us(points: &[(f64, f64)]) -> f64 {
    points.windows(2).map(|w| (w[1].0 - w[0].0) / 100.0 * f64::midpoint(w[0].1, w[1].1)).sum()
}

impl ServiceEntry {
    /// The times for the physics.
    pub(crate) fn times(&self) -> Result<ServiceTimes, String> {
        let named =
            |name: &str, points: &Points| curve(points).map_err(|e| format!("service times of {name}: {e}"));
        let transfer = self.transfer_mib_s.map_or(0.0, |mib_s| 1e12 / (mib_s as f64 * MIB as f64));
        Ok(ServiceTimes {
            read: named("read", &self.read)?,
            write: named("write", &self.write)?,
            sequential: self.sequential.as_ref().map(|points| named("sequential", points)).transpose()?,
            flush: match &self.flush {
                Some(points) => named("flush", points)?,
                None => QuantileCurve::constant(ebbtide_volume::Nanos::ZERO),
            },
            transfer_ps_per_byte: whole_u32(transfer),
            parallelism: self.parallelism,
        })
    }
}

impl StoreRow {
    /// As many stations as keep the shape's own read latency, and curves scaled so that all
    /// stations together give the published IOPS.
    pub(crate) fn service(&self, shape: &ServiceEntry) -> ServiceEntry {
        let transfer_us =
            shape.transfer_mib_s.map_or(0.0, |m| STORE_IO_BYTES / (m as f64 * MIB as f64) * 1e6);
        let stations = whole_u16(self.read_iops as f64 * (mean_us(&shape.read) + transfer_us) / 1e6).max(1);
        let scaled = |points: &Points, iops: u64| {
            let mean = f64::from(stations) * 1e6 / iops as f64 - transfer_us;
            let factor = mean / mean_us(points);
            points.iter().map(|&(percent, us)| (percent, us * factor)).collect::<Points>()
        };
        ServiceEntry {
            read: scaled(&shape.read, self.read_iops),
            write: scaled(&shape.write, self.write_iops),
            parallelism: Some(stations),
            ..shape.clone()
        }
    }

    /// The assumed throughput in MiB/s, rounded up.
    pub(crate) fn throughput_mib_s(&self) -> u64 {
        (self.read_iops * 4096 * STORE_THROUGHPUT_FACTOR / STORE_THROUGHPUT_DIVISOR).div_ceil(MIB)
    }
}
