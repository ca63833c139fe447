//! Service times from their data, and those of instance-store disks from published IOPS.

use ebbtide_volume::{MIB, Mechanics, Nanos, QuantileCurve, ServiceTimes};

use crate::{
    CurveError, ServiceError,
    data::{MechanicsEntry, Quorum, ServiceEntry, StoreRow, StoreRules},
    numbers::{whole, whole_u16, whole_u32},
};

/// Points of a curve: (percent of I/Os, microseconds).
pub(crate) type Points = Vec<(f64, f64)>;

/// A curve through the points.
pub(crate) fn curve(points: &[(f64, f64)]) -> Result<QuantileCurve, CurveError> {
    if points.iter().any(|(percent, us)| !(percent.is_finite() && us.is_finite() && *us >= 0.0)) {
        return Err(CurveError::Point);
    }
    let points = points.iter().map(|&(percent, us)| (whole_u32(percent * 1e4), whole(us * 1e3)));
    Ok(QuantileCurve::new(points.collect())?)
}

/// The curve of an operation.
fn curve_of(operation: &'static str, points: &[(f64, f64)]) -> Result<QuantileCurve, ServiceError> {
    curve(points).map_err(|cause| ServiceError::Curve { operation, cause })
}

/// The mean of a curve in microseconds: the area under its straight lines.
pub(crate) fn mean_us(points: &[(f64, f64)]) -> f64 {
    points.windows(2).map(|w| (w[1].0 - w[0].0) / 100.0 * f64::midpoint(w[0].1, w[1].1)).sum()
}

impl ServiceEntry {
    /// The times for the physics, of a device of so many bytes.
    pub(crate) fn times(&self, size_bytes: u64) -> Result<ServiceTimes, ServiceError> {
        let quorum = |quorum: &Quorum| curve_of("write", &quorum.points()?);
        self.times_with(size_bytes, quorum)
    }

    /// Whether its times can be made. The curve of a quorum is left out: computing it takes a hundred times as long as
    /// loading the rest of the catalogue, and it has a curve wherever its zones have one.
    pub(crate) fn check(&self) -> Result<(), ServiceError> {
        let quorum = |quorum: &Quorum| quorum.check().map(|()| QuantileCurve::constant(Nanos::ZERO));
        self.times_with(ebbtide_volume::GIB, quorum).map(drop)
    }

    fn times_with(
        &self,
        size_bytes: u64,
        quorum: impl FnOnce(&Quorum) -> Result<QuantileCurve, ServiceError>,
    ) -> Result<ServiceTimes, ServiceError> {
        let transfer = self.transfer_mib_s.map_or(0.0, |mib_s| 1e12 / (mib_s as f64 * MIB as f64));
        Ok(ServiceTimes {
            read: curve_of("read", &self.read)?,
            write: self.write_curve(quorum)?,
            sequential: self.sequential.as_ref().map(|points| curve_of("sequential", points)).transpose()?,
            flush: match &self.flush {
                Some(points) => curve_of("flush", points)?,
                None => QuantileCurve::constant(Nanos::ZERO),
            },
            transfer_ps_per_byte: whole_u32(transfer),
            flush_alone: self.flush_alone,
            parallelism: self.parallelism,
            write_parallelism: self.write_parallelism,
            mechanics: self.mechanics.map(|entry| entry.mechanics(size_bytes)).transpose()?,
        })
    }

    fn write_curve(
        &self,
        of_quorum: impl FnOnce(&Quorum) -> Result<QuantileCurve, ServiceError>,
    ) -> Result<QuantileCurve, ServiceError> {
        match (&self.write_quorum, self.write.is_empty()) {
            (None, _) => curve_of("write", &self.write),
            (Some(quorum), true) => of_quorum(quorum),
            (Some(_), false) => Err(ServiceError::WriteTwice),
        }
    }
}

impl MechanicsEntry {
    /// The disk for the physics, which has the full stroke where data sheets have the average seek. Its stroke is
    /// that of the volume: a smaller one is a disk of the same seeks.
    fn mechanics(self, size_bytes: u64) -> Result<Mechanics, ServiceError> {
        let seeks = [self.track_to_track_us, self.average_seek_us];
        if self.rpm == 0 || seeks.iter().any(|us| !us.is_finite() || *us < 0.0) || seeks[0] > seeks[1] {
            return Err(ServiceError::Mechanics);
        }
        // The mean of the square root of the distance between two random places is 8/15.
        let full_stroke_us = seeks[0] + (seeks[1] - seeks[0]) * 15.0 / 8.0;
        Ok(Mechanics {
            turn: Nanos(60_000_000_000 / u64::from(self.rpm)),
            settle: Nanos(whole(seeks[0] * 1e3)),
            full_stroke: Nanos(whole(full_stroke_us * 1e3)),
            capacity_bytes: size_bytes,
            queue: self.queue,
        })
    }
}

impl StoreRow {
    /// As many stations as keep the shape's own read latency, and curves scaled so that all
    /// stations together give the published IOPS.
    pub(crate) fn service(&self, shape: &ServiceEntry, rules: &StoreRules) -> ServiceEntry {
        let io_mib = rules.io_kib as f64 / 1024.0;
        let transfer_us = shape.transfer_mib_s.map_or(0.0, |mib_s| io_mib / mib_s as f64 * 1e6);
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

    /// The assumed throughput in MiB/s.
    pub(crate) fn throughput_mib_s(&self, rules: &StoreRules) -> u64 {
        let reads_mib_s = self.read_iops as f64 * rules.io_kib as f64 / 1024.0;
        whole(reads_mib_s * rules.throughput_per_read)
    }
}
